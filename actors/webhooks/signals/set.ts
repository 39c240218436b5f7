/** Security event tokens (RFC 8417, SSF 1.0 section 10). They have no `sub` and no `exp`. */
import type { ActorRef, AskOptions } from '../../../runtime/kernel/actor.js'
import type { SignalEvent } from '../../../storage/webhooks/signal-events.js'
import type { SigningKeysProtocol } from '../../oauth/signing-keys/protocol.js'

const SET_TYPE = 'secevent+jwt'

/** The claims as JSON. An event about a stream is its own cause. */
export function setClaims(
  { id, txn, subject, type, event, issuedAt }: SignalEvent,
  issuer: string,
  receiver: string,
): string {
  return JSON.stringify({
    iss: issuer,
    aud: receiver,
    iat: Math.floor(issuedAt.getTime() / 1000),
    jti: id,
    txn: txn ?? id,
    sub_id: subject,
    events: { [type]: event },
  })
}

/** Undefined: no key is available. */
export async function signedSet(
  keys: ActorRef<SigningKeysProtocol>,
  claims: string,
  options: AskOptions,
): Promise<string | undefined> {
  const signed = await keys.signSecurityEvent({ typ: SET_TYPE, claims }, options)
  return signed.tag === 'signed' ? signed.token : undefined
}
