/** An answer to a challenge, from its text to the passkey that gave it. */
import type { MessageContext } from '../../../runtime/kernel/actor.js'
import { findPasskey, type PasskeyRow } from '../../../storage/identity/passkeys.js'
import type { Database } from '../../../storage/platform/sql.js'
import type { Bound, Ceremonies } from './ceremonies.js'
import { challengeOf, readAsserting, type Signed, verifySignature } from './credential.js'
import type { RelyingParty } from './settings.js'

/** A passkey whose signature is right; its counter is still to be spent. */
export type Proved = { readonly passkey: PasskeyRow; readonly signed: Signed }

/**
 * Reads and verifies an answer. The challenge is used up first, whatever comes of the rest. Null when
 * anything about it is wrong; `passkey` is told where the credential is known, for the lockout.
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
): Promise<{ readonly passkey: PasskeyRow | undefined; readonly signed: Signed | null }> {
  const asserting = readAsserting(credential)
  const challenge = asserting && challengeOf(asserting)
  if (asserting === null || challenge === null) return { passkey: undefined, signed: null }
  const isOurs = await needs.ceremonies.spend(bound, challenge, context)
  const credentialId = Buffer.from(asserting.id, 'base64url')
  // A credential does not say whose it is: accounts belong to no tenant.
  const passkey = await needs.database.system((tx) => findPasskey(tx, credentialId), context)
  if (passkey === undefined || !isOurs) return { passkey, signed: null }
  const signed = await verifySignature(needs.relyingParty, passkey, asserting, challenge)
  return { passkey, signed }
}
