/** Posts a signed delivery from the command line, as the service would send it. */
import { request } from 'undici'
import { USER_AGENT } from '../../../actors/webhooks/delivery/sender.js'
import type { Clock } from '../../kernel/clock.js'
import { systemRandom } from '../../kernel/random.js'
import { localSigner, UNSEALED } from './local-signer.js'

const TIMEOUT_MS = 15_000
const MAX_AGE_SECS = 300

/**
 * Posts an event's body with a fresh delivery id.
 * @throws when the secret cannot sign, or the receiver does not answer.
 */
export async function postSigned(
  to: string,
  eventType: string,
  body: string,
  secret: string,
  clock: Clock,
): Promise<{ readonly status: number; readonly deliveryId: string }> {
  const deliveryId = systemRandom(clock).uuid()
  const signed = await localSigner().signDelivery({
    ...UNSEALED,
    secret: Buffer.from(secret, 'utf8'),
    previousSecret: null,
    timestampSecs: clock.nowSecs(),
    maxAgeSecs: MAX_AGE_SECS,
    deliveryId,
    eventType,
    payload: Buffer.from(body, 'utf8'),
  })
  if (signed.tag === 'refused') throw new Error(`the ${signed.field} cannot be used for signing`)
  const answer = await request(to, {
    method: 'POST',
    headers: { ...signed.headers, 'content-type': 'application/json', 'user-agent': USER_AGENT },
    body,
    headersTimeout: TIMEOUT_MS,
    bodyTimeout: TIMEOUT_MS,
  })
  await answer.body.dump()
  return { status: answer.statusCode, deliveryId }
}
