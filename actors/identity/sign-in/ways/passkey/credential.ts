/**
 * Verification of authenticator responses (WebAuthn Level 3 sections 7.1 and 7.2). The signature counter is checked by
 * the SQL statement that stores it, so only one of two concurrent responses passes.
 */
import type { AuthenticationResponseJSON, RegistrationResponseJSON } from '@simplewebauthn/server'
import { z } from 'zod'
import type { PasskeyRow } from '../../../../../storage/identity/passkeys.js'
import { webauthn } from './library.js'
import type { RelyingParty } from './settings.js'

/** Ed25519, ES256, RS256 (COSE), in order of preference. */
export const ALGORITHMS = [-8, -7, -257]
const CREDENTIAL_CHARACTERS_MAX = 32 * 1024

const Bytes = z.string().regex(/^[A-Za-z0-9_-]+$/)
const Shared = {
  id: Bytes.max(1364),
  rawId: Bytes.max(1364),
  type: z.literal('public-key'),
  authenticatorAttachment: z.string().max(32).nullish(),
}
const Asserted = z.object({
  ...Shared,
  response: z.object({
    clientDataJSON: Bytes,
    authenticatorData: Bytes,
    signature: Bytes,
    userHandle: z.string().max(128).nullish(),
  }),
})
const Created = z.object({
  ...Shared,
  response: z.object({
    clientDataJSON: Bytes,
    attestationObject: Bytes,
    transports: z.array(z.string().max(32)).max(16).nullish(),
  }),
})
const ClientData = z.object({ challenge: Bytes.max(128) })

type Asserting = z.infer<typeof Asserted>
type Creating = z.infer<typeof Created>

/** Parses an assertion; null when invalid. */
export const readAsserting = (text: string): Asserting | null => read(text, Asserted)
/** Parses an attestation; null when invalid. */
export const readCreating = (text: string): Creating | null => read(text, Created)

/** The challenge in the client data; null if the data is malformed. */
export function challengeOf({
  response: { clientDataJSON },
}: {
  readonly response: { readonly clientDataJSON: string }
}): string | null {
  const text = Buffer.from(clientDataJSON, 'base64url').toString('utf8')
  return read(text, ClientData)?.challenge ?? null
}

function read<T>(text: string, schema: z.ZodType<T>): T | null {
  if (text.length > CREDENTIAL_CHARACTERS_MAX) return null
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    return null
  }
  const parsed = schema.safeParse(value)
  return parsed.success ? parsed.data : null
}

export const base64url = (bytes: Uint8Array): string => Buffer.from(bytes).toString('base64url')

/** The user handle (`user.id`) of an account for authenticators. It reveals nothing else. */
export function userHandleOf(accountId: string): Uint8Array<ArrayBuffer> {
  return new Uint8Array(Buffer.from(accountId.replaceAll('-', ''), 'hex'))
}

export type Signed = {
  readonly counter: number
  readonly backedUp: boolean
  readonly userVerified: boolean
}

/** Verifies an assertion; null when invalid. A passkey that counts as a factor needs user verification. */
export async function verifySignature(
  { id, origins }: RelyingParty,
  passkey: PasskeyRow,
  asserting: Asserting,
  challenge: string,
): Promise<Signed | null> {
  const { userHandle } = asserting.response
  const own = base64url(userHandleOf(passkey.accountId))
  if (userHandle !== undefined && userHandle !== null && userHandle !== own) return null
  const { verifyAuthenticationResponse } = await webauthn()
  const verified = await orNull(() =>
    verifyAuthenticationResponse({
      response: asserting as AuthenticationResponseJSON,
      expectedChallenge: challenge,
      expectedOrigin: [...origins],
      expectedRPID: id,
      requireUserVerification: passkey.userVerified,
      // Zero: the stored counter is checked later, in one SQL statement.
      credential: {
        id: asserting.id,
        publicKey: new Uint8Array(passkey.publicKey),
        counter: 0,
      },
    }),
  )
  if (verified === null || !verified.verified) return null
  const { credentialDeviceType, credentialBackedUp, newCounter, userVerified } =
    verified.authenticationInfo
  // WebAuthn section 7.2 step 20: the backup eligibility of a credential never changes.
  if ((credentialDeviceType === 'singleDevice') !== passkey.deviceBound) return null
  return { counter: newCounter, backedUp: credentialBackedUp, userVerified }
}

export type NewCredential = {
  readonly credentialId: Uint8Array
  readonly publicKey: Uint8Array
  readonly counter: number
  readonly deviceBound: boolean
  readonly backedUp: boolean
  readonly userVerified: boolean
  readonly transports: readonly string[]
  readonly aaguid: string
}

/**
 * Verifies a new credential; null when invalid. One that the browser created without asking needs neither user presence nor
 * user verification (WebAuthn Level 3 section 7.1), and counts as not verified.
 */
export async function verifyCreation(
  { id, origins }: RelyingParty,
  creating: Creating,
  challenge: string,
  isConditional: boolean,
): Promise<NewCredential | null> {
  const { verifyRegistrationResponse } = await webauthn()
  const verified = await orNull(() =>
    verifyRegistrationResponse({
      response: creating as RegistrationResponseJSON,
      expectedChallenge: challenge,
      expectedOrigin: [...origins],
      expectedRPID: id,
      requireUserPresence: !isConditional,
      requireUserVerification: !isConditional,
      supportedAlgorithmIDs: ALGORITHMS,
    }),
  )
  if (verified === null || !verified.verified) return null
  const { credential, aaguid, credentialDeviceType, credentialBackedUp } = verified.registrationInfo
  return {
    credentialId: Buffer.from(credential.id, 'base64url'),
    publicKey: credential.publicKey,
    counter: credential.counter,
    deviceBound: credentialDeviceType === 'singleDevice',
    backedUp: credentialBackedUp,
    userVerified: !isConditional,
    transports: transportsOf(creating.response.transports ?? []),
    aaguid,
  }
}

const TRANSPORTS = ['ble', 'cable', 'hybrid', 'internal', 'nfc', 'smart-card', 'usb']

function transportsOf(named: readonly string[]): string[] {
  return [...new Set(named)].filter((transport) => TRANSPORTS.includes(transport))
}

/** The library throws on any invalid input of the browser. */
async function orNull<T>(work: () => Promise<T>): Promise<T | null> {
  try {
    return await work()
  } catch {
    return null
  }
}

/** RFC 8176: `hwk` for a device-bound key, otherwise `swk`; `mfa` with user verification. */
export function methodsOfPasskey(
  { deviceBound }: Pick<PasskeyRow, 'deviceBound'>,
  { userVerified }: Pick<Signed, 'userVerified'>,
): string[] {
  return [deviceBound ? 'hwk' : 'swk', 'user', ...(userVerified ? ['mfa'] : [])]
}

/** The assurance level of a response. Without user verification it proves possession only. */
export const levelOfPasskey = (
  { deviceBound }: Pick<PasskeyRow, 'deviceBound'>,
  { userVerified }: Pick<Signed, 'userVerified'>,
): 1 | 2 | 3 => {
  if (!userVerified) return 1
  return deviceBound ? 3 : 2
}
