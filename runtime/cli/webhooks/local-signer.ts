/** The signer of the service on the command line, for a secret from a file instead of a sealed one. */
import type { ActorRef } from '../../kernel/actor.js'
import { systemClock as clock } from '../../kernel/clock.js'
import { spawnInline } from '../../kernel/inline.js'
import { webhookSignerActor } from '../../../actors/webhooks/signer/actor.js'
import type { WebhookSignerProtocol } from '../../../actors/webhooks/signer/protocol.js'

/** No subscription: the secret is not sealed for one. */
export const UNSEALED = { tenantId: '', webhookId: '' }

/** A signer whose messages have secrets as bytes. */
export function localSigner(): ActorRef<WebhookSignerProtocol> {
  // A copy, because the signer wipes what it opens.
  const sealer = { open: async (_: string, __: string, secret: Uint8Array) => secret.slice() }
  return spawnInline(webhookSignerActor, { sealer, clock }).ref
}
