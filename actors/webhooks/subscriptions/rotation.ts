/** Rotates the secret of a subscription. docs/reference/webhooks.md, Secrets. */
import {
  findRotatedSecret,
  rotateWebhookSecretRow,
  secretHint,
  shortenOverlap,
  webhookSecretContext,
} from '../../../storage/webhooks/webhooks.js'
import { isUuid } from '../../domain/ids.js'
import { newWebhookSecret, secretFault } from './rules.js'
import { auditSubscription } from './audit.js'
import type { WebhooksHandler } from './needs.js'
import { inTenant } from '../../platform/in-tenant.js'

/**
 * A supplied secret that is valid already stays, together with the previous one. A repetition of
 * the request can only shorten the overlap.
 */
export const rotateWebhookSecret: WebhooksHandler<'rotateWebhookSecret'> = async (
  needs,
  { caller, webhookId, secret: supplied, overlapSecs },
  { signal, requestId },
) => {
  const { database, sealer, clock, random } = needs
  const fault = supplied === null ? undefined : secretFault(supplied)
  if (fault !== undefined) return fault
  if (!isUuid(webhookId)) return { tag: 'unknown' }
  const { tenantId } = caller.principal
  const context = webhookSecretContext(webhookId)
  const secret = supplied ?? newWebhookSecret(random)
  const sealed = await sealer.seal(tenantId, context, Buffer.from(secret, 'utf8'))
  const find = () =>
    inTenant(database, tenantId, { signal }, (tx) => findRotatedSecret(tx, tenantId, webhookId))

  // After a concurrent rotation the update matches no row. The secret is then read again.
  for (let found = await find(); found !== undefined; found = await find()) {
    const { secret: current, rotatedAt } = found
    const now = clock.now()
    const previousUntil = new Date(now.getTime() + overlapSecs * 1000)
    if (supplied !== null) {
      const decrypted = Buffer.from(await sealer.open(tenantId, context, current))
      // The response to the first request may have been lost. A second rotation would invalidate
      // the previous secret.
      if (decrypted.equals(Buffer.from(supplied, 'utf8'))) {
        const ends = await inTenant(database, tenantId, { signal }, (tx) =>
          shortenOverlap(tx, { tenantId, id: webhookId, current, previousUntil }),
        )
        if (ends === undefined) continue
        const previous = ends.previousExpiresAt ?? rotatedAt
        return { tag: 'rotated', webhookId, secret: null, rotatedAt, previousExpiresAt: previous }
      }
    }
    const rotation = { tenantId, id: webhookId, current, secret: sealed, now, previousUntil }
    const hinted = { ...rotation, secretHint: secretHint(secret) }
    const rotated = await inTenant(database, tenantId, { signal }, async (tx) => {
      if ((await rotateWebhookSecretRow(tx, hinted)) === undefined) return false
      const change = { caller, did: 'secret_rotated', webhookId, requestId } as const
      auditSubscription(tx, needs, change)
      return true
    })
    if (!rotated) continue
    return {
      tag: 'rotated',
      webhookId,
      secret: supplied === null ? secret : null,
      rotatedAt: now,
      previousExpiresAt: previousUntil,
    }
  }
  return { tag: 'unknown' }
}
