/** WebAuthn challenges: created, sent to a browser with the options of a ceremony, and used up by the response. */
import type { AuthenticatorTransport } from '@simplewebauthn/server'
import type { Registry } from 'prom-client'
import type { Clock } from '../../../../../runtime/kernel/clock.js'
import type { Random } from '../../../../../runtime/kernel/random.js'
import type { MessageContext } from '../../../../../runtime/kernel/actor.js'
import {
  insertPasskeyCeremony,
  type PasskeyCeremony,
  spendPasskeyCeremony,
} from '../../../../../storage/identity/passkey-ceremonies.js'
import type { PasskeyRow } from '../../../../../storage/identity/passkeys.js'
import type { Database } from '../../../../../storage/platform/sql.js'
import { sha256 } from '../../../../domain/secret-hashes.js'
import { ALGORITHMS, base64url, userHandleOf } from './credential.js'
import { webauthn } from './library.js'
import { namesOf, type Owner } from './signals.js'
import type { RelyingParty } from './settings.js'
import { inTenant } from '../../../../platform/in-tenant.js'
import { counter } from '../../../../platform/metrics.js'

const CHALLENGE_BYTES = 32

export const ceremonyOutcomes = (registry: Registry) =>
  counter(registry, 'svc_passkey_ceremonies_total', 'Authenticator responses by outcome.', [
    'step',
    'outcome',
  ])

export type Bound = Pick<PasskeyCeremony, 'tenantId' | 'purpose' | 'sessionId'> & {
  /** Secret of the browser. */
  readonly browser: string
}

/** `name` is the relying party's. */
export type WantedPasskey = { readonly name: string; readonly deviceBound: boolean }

export interface Ceremonies {
  /** Options for an assertion. Without allowed passkeys, any discoverable credential of the authenticator matches. */
  request(bound: Bound, allowed: readonly PasskeyRow[], context: MessageContext): Promise<object>
  /** Options for a new credential. Existing credentials of the account are excluded. */
  create(
    bound: Bound,
    owner: Owner,
    known: readonly PasskeyRow[],
    wanted: WantedPasskey,
    context: MessageContext,
  ): Promise<object>
  /** Uses up a challenge. False when it was not issued to this browser, has expired or was used. */
  spend(bound: Bound, challenge: string, context: MessageContext): Promise<boolean>
}

export function ceremonies(needs: {
  readonly database: Database
  readonly clock: Clock
  readonly random: Random
  readonly relyingParty: RelyingParty
}): Ceremonies {
  const { database, clock, random, relyingParty } = needs
  const timeout = relyingParty.ceremonySecs * 1000

  async function challenge(
    bound: Bound,
    context: MessageContext,
  ): Promise<Uint8Array<ArrayBuffer>> {
    const bytes = new Uint8Array(random.bytes(CHALLENGE_BYTES))
    const expiresAt = new Date(clock.now().getTime() + timeout)
    const ceremony = ceremonyOf(bound, Buffer.from(bytes).toString('base64url'))
    await inTenant(database, bound.tenantId, context, (tx) =>
      insertPasskeyCeremony(tx, ceremony, expiresAt),
    )
    return bytes
  }

  return {
    async request(bound, allowed, context) {
      const { generateAuthenticationOptions } = await webauthn()
      return generateAuthenticationOptions({
        rpID: relyingParty.id,
        challenge: await challenge(bound, context),
        timeout,
        userVerification: 'required',
        allowCredentials: allowed.map(described),
      })
    },
    async create(bound, owner, known, { name, deviceBound }, context) {
      const names = namesOf(owner)
      const { generateRegistrationOptions } = await webauthn()
      const options = await generateRegistrationOptions({
        rpName: name,
        rpID: relyingParty.id,
        userID: userHandleOf(owner.accountId),
        userName: names.name,
        userDisplayName: names.displayName,
        challenge: await challenge(bound, context),
        timeout,
        attestationType: 'none',
        excludeCredentials: known.map(described),
        authenticatorSelection: {
          residentKey: 'required',
          userVerification: bound.purpose === 'conditional' ? 'preferred' : 'required',
        },
        supportedAlgorithmIDs: ALGORITHMS,
      })
      return deviceBound ? { ...options, hints: ['security-key', 'client-device'] } : options
    },
    spend(bound, text, context) {
      const ceremony = ceremonyOf(bound, text)
      return inTenant(database, bound.tenantId, context, (tx) =>
        spendPasskeyCeremony(tx, ceremony, clock.now()),
      )
    },
  }
}

function ceremonyOf({ browser, ...bound }: Bound, challenge: string): PasskeyCeremony {
  return { ...bound, challengeSha256: sha256(challenge), browserSha256: sha256(browser) }
}

export function described({ credentialId, transports }: PasskeyRow) {
  return {
    id: base64url(credentialId),
    transports: transports as AuthenticatorTransport[],
  }
}
