/** From the response to a challenge to the passkey that signed it. */
import type { MessageContext } from '../../../../../runtime/kernel/actor.js'
import { findPasskey, type PasskeyRow } from '../../../../../storage/identity/passkeys.js'
import type { Database } from '../../../../../storage/platform/sql.js'
import type { Bound, Ceremonies } from './ceremonies.js'
import { challengeOf, readAsserting, type Signed, verifySignature } from './credential.js'
import type { RelyingParty } from './settings.js'

type Proof = {
  readonly passkey: PasskeyRow | undefined
  readonly signed: Signed | null
  /** The credential that answered our challenge, and that no account has. */
  readonly unknownId?: string | undefined
}

/**
 * Parses and verifies a response. The challenge is used up first, whatever the result. Null when anything is invalid.
 * `passkey` is set as soon as the credential is known, for the lockout.
 */
export async function prove(
  needs: {
    readonly database: Database
    readonly ceremonies: Ceremonies
    readonly relyingParty: RelyingParty
  },
  bound: Bound,
  credential: string,
  context: MessageContext,
): Promise<Proof> {
  const asserting = readAsserting(credential)
  const challenge = asserting && challengeOf(asserting)
  if (asserting === null || challenge === null) return { passkey: undefined, signed: null }
  const isOurs = await needs.ceremonies.spend(bound, challenge, context)
  const credentialId = Buffer.from(asserting.id, 'base64url')
  // A credential id names no tenant: accounts are global.
  const passkey = await needs.database.system((tx) => findPasskey(tx, credentialId), context)
  if (passkey === undefined)
    return { passkey, signed: null, unknownId: isOurs ? asserting.id : undefined }
  if (!isOurs) return { passkey, signed: null }
  const signed = await verifySignature(needs.relyingParty, passkey, asserting, challenge)
  return { passkey, signed }
}

/** Two devices use one key, so one of them is a clone (WebAuthn section 6.1.1). */
export const COPIED = {
  type: 'security.suspicious_activity',
  sessionId: null,
  fields: { reason: 'passkey_counter' },
} as const
