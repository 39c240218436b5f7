/** Security event tokens (RFC 8417, SSF 1.0 section 10). They have no `sub` and no `exp`. */
import type { ActorRef, AskOptions } from '../../../runtime/kernel/actor.js'
import type { Clock } from '../../../runtime/kernel/clock.js'
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

const KEPT_MS = 60_000
const KEPT_MAX = 5_000

/** The tokens of the last minute: a receiver that polls again without an acknowledgement costs no signatures. */
export class KeptSets {
  readonly #clock: Pick<Clock, 'monotonicMs'>
  readonly #kept = new Map<string, { readonly token: string; readonly untilMs: number }>()

  constructor(clock: Pick<Clock, 'monotonicMs'>) {
    this.#clock = clock
  }

  get(eventId: string): string | undefined {
    const kept = this.#kept.get(eventId)
    return kept !== undefined && kept.untilMs > this.#clock.monotonicMs() ? kept.token : undefined
  }

  put(eventId: string, token: string): void {
    this.#kept.delete(eventId)
    if (this.#kept.size >= KEPT_MAX) this.#kept.delete(this.#kept.keys().next().value!)
    this.#kept.set(eventId, { token, untilMs: this.#clock.monotonicMs() + KEPT_MS })
  }
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
