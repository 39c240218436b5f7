/** The secrets of subscriptions, opened for the signer, and the keys that it keeps in memory. */
import type { MessageContext } from '../../../runtime/kernel/actor.js'
import type { Clock } from '../../../runtime/kernel/clock.js'
import type { ExpiringLru } from '../../../storage/platform/sealing/expiring-lru.js'
import { SealBroken } from '../../../storage/platform/sealing/seal.js'
import type { Sealer } from '../../../storage/platform/sealing/sealer.js'
import { webhookSecretContext } from '../../../storage/webhooks/webhooks.js'
import type { SecretOwner } from './protocol.js'
import { type SigningKeys, signingKeysOf } from './signing.js'

export type SignerNeeds = { readonly sealer: Pick<Sealer, 'open'>; readonly clock: Clock }
/** The needs of the signer, with the keys by their sealed secret. */
export type SignerTools = SignerNeeds & { readonly keys: ExpiringLru<SigningKeys> }

/** The keys of a sealed secret. A secret that cannot be opened has none. */
export function keysOf(
  tools: SignerTools,
  owner: SecretOwner,
  sealed: Uint8Array,
  { log }: Pick<MessageContext, 'log'>,
): Promise<SigningKeys> {
  const { tenantId, webhookId } = owner
  const { buffer, byteOffset, length } = sealed
  const bytes = Buffer.from(buffer, byteOffset, length).toString('latin1')
  const name = `${tenantId}/${webhookId}/${bytes}`
  return tools.keys.get(name, async () => {
    try {
      return signingKeysOf(await openSecret(tools, owner, sealed))
    } catch (error) {
      if (!(error instanceof SealBroken)) throw error
      log.error({ err: error, webhookId }, 'webhooks: a secret cannot be opened')
      return null
    }
  })
}

/** Opens a secret, and wipes its bytes. */
export async function openSecret(
  { sealer }: SignerNeeds,
  { tenantId, webhookId }: SecretOwner,
  sealed: Uint8Array,
): Promise<string> {
  const opened = await sealer.open(tenantId, webhookSecretContext(webhookId), sealed)
  const { buffer, byteOffset, length } = opened
  const secret = Buffer.from(buffer, byteOffset, length).toString('utf8')
  opened.fill(0)
  return secret
}
