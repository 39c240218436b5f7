/** Subscriptions: listing, reading, creating, replacing and deleting them. */
import { createOnce } from '../../platform/creation.js'
import type { Transaction } from '../../../storage/platform/sql.js'
import { cancelDeliveries } from '../../../storage/webhooks/deliveries.js'
import {
  replaceWebhookRow,
  findWebhook,
  insertWebhook,
  deleteWebhookRow,
  secretHint,
  listWebhookRows,
  webhookSecretContext,
} from '../../../storage/webhooks/webhooks.js'
import { isUuid } from '../../domain/ids.js'
import { pageOf } from '../../platform/paging.js'
import { auditSubscription } from './audit.js'
import type { WebhooksHandler } from './needs.js'
import type { TooManyWebhooks, WebhookCreated, WebhookUnknown } from './protocol.js'
import { draftFault, newWebhookSecret, secretFault } from './rules.js'
import { inTenant } from '../../platform/in-tenant.js'

const UNKNOWN: WebhookUnknown = { tag: 'unknown' }

export const listWebhooks: WebhooksHandler<'listWebhooks'> = async (needs, message, context) => {
  const { items, next } = await pageOf(needs, message.tenantId, message, context, listWebhookRows)
  return { tag: 'listed', webhooks: items, next }
}

export const getWebhook: WebhooksHandler<'getWebhook'> = async (
  { database },
  { tenantId, webhookId },
  context,
) => {
  if (!isUuid(webhookId)) return UNKNOWN
  const webhook = await inTenant(database, tenantId, context, (tx) =>
    findWebhook(tx, tenantId, webhookId),
  )
  return webhook === undefined ? UNKNOWN : { tag: 'found', webhook }
}

export const createWebhook: WebhooksHandler<'createWebhook'> = async (
  needs,
  { caller, draft, secret: supplied, idempotency },
  { signal, requestId },
) => {
  const { sealer, clock, random, urlRules, offered, subscriptionsMax: max } = needs
  const { tenantId } = caller.principal
  const fault =
    draftFault(draft, urlRules, offered) ?? (supplied === null ? undefined : secretFault(supplied))
  if (fault !== undefined) return fault
  const id = random.uuid()
  const secret = supplied ?? newWebhookSecret(random)
  const sealed = await sealer.seal(tenantId, webhookSecretContext(id), Buffer.from(secret, 'utf8'))
  const row = {
    id,
    tenantId,
    ...draft,
    eventTypes: [...new Set(draft.eventTypes)],
    createdAt: clock.now(),
    secret: sealed,
    secretHint: secretHint(secret),
  }
  const insert = async (tx: Transaction): Promise<WebhookCreated | TooManyWebhooks> => {
    const webhook = await insertWebhook(tx, row, max)
    if (webhook === undefined) return { tag: 'too_many', max }
    auditSubscription(tx, needs, { caller, did: 'created', webhookId: id, requestId, webhook })
    const shown = supplied === null ? secret : null
    return { tag: 'created', webhook, secret: shown, replayed: false }
  }
  return createOnce(needs, { caller, idempotency }, { signal }, insert, (outcome) =>
    outcome.tag === 'created' ? { ...outcome, secret: null } : undefined,
  )
}

export const replaceWebhook: WebhooksHandler<'replaceWebhook'> = async (
  needs,
  { caller, webhookId, draft },
  { signal, requestId },
) => {
  const { database, clock, urlRules, offered } = needs
  const { tenantId } = caller.principal
  const fault = draftFault(draft, urlRules, offered)
  if (fault !== undefined) return fault
  if (!isUuid(webhookId)) return UNKNOWN
  const eventTypes = [...new Set(draft.eventTypes)]
  const change = { tenantId, id: webhookId, ...draft, eventTypes, now: clock.now() }
  return inTenant(database, tenantId, { signal }, async (tx) => {
    const webhook = await replaceWebhookRow(tx, change)
    if (webhook === undefined) return UNKNOWN
    if (!webhook.active) await cancelDeliveries(tx, tenantId, webhookId)
    auditSubscription(tx, needs, { caller, did: 'changed', webhookId, requestId, webhook })
    return { tag: 'replaced', webhook }
  })
}

export const deleteWebhook: WebhooksHandler<'deleteWebhook'> = async (
  needs,
  { caller, webhookId },
  { signal, requestId },
) => {
  const { database, clock } = needs
  const { tenantId } = caller.principal
  if (!isUuid(webhookId)) return UNKNOWN
  return inTenant(database, tenantId, { signal }, async (tx) => {
    if (!(await deleteWebhookRow(tx, tenantId, webhookId, clock.now()))) return UNKNOWN
    await cancelDeliveries(tx, tenantId, webhookId)
    auditSubscription(tx, needs, { caller, did: 'deleted', webhookId, requestId })
    return { tag: 'removed' }
  })
}
