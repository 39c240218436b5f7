/**
 * Signs webhook deliveries, and verifies them. Each thread that sends deliveries has a signer, so that no message with a
 * payload crosses to another thread.
 */
import { boundHandlers, defineActor, type Handler } from '../../../runtime/kernel/actor.js'
import { ExpiringLru } from '../../../storage/platform/sealing/expiring-lru.js'
import { KEY_LIFETIME_MS } from '../../../storage/platform/sealing/seal.js'
import { webhookSigner, type WebhookSignerProtocol } from './protocol.js'
import { receive } from '../../domain/webhooks/receive.js'
import { keysOf, openSecret, type SignerNeeds, type SignerTools } from './secrets.js'
import { sign } from './signing.js'

/** More than the attempts that a thread makes at the same time. */
const INFLIGHT_MAX = 4096

type SignerHandler<K extends keyof WebhookSignerProtocol> = Handler<
  SignerTools,
  WebhookSignerProtocol,
  K
>

const signDelivery: SignerHandler<'signDelivery'> = async (tools, message, context) => {
  const { secret, previousSecret } = message
  const keys = await keysOf(tools, message, secret, context)
  if (previousSecret === null) return sign(message, keys)
  return sign(message, keys, await keysOf(tools, message, previousSecret, context))
}

const verifyDelivery: SignerHandler<'verifyDelivery'> = async (tools, message) => {
  const { headers, body, nowSecs } = message
  const secrets = await Promise.all(
    message.secrets.map((sealed) => openSecret(tools, message, sealed)),
  )
  return receive(headers, body, { secrets, nowSecs })
}

export const webhookSignerActor = defineActor<WebhookSignerProtocol, SignerNeeds>({
  address: webhookSigner,
  asks: {},
  mailbox: { capacity: INFLIGHT_MAX, inflightMax: INFLIGHT_MAX },
  supervision: { onFailure: 'resume' },
  create: (needs) =>
    boundHandlers<WebhookSignerProtocol, SignerTools>(
      { signDelivery, verifyDelivery },
      { ...needs, keys: new ExpiringLru(needs.clock, KEY_LIFETIME_MS) },
    ),
})
