/** Webhook subscriptions and their encrypted secrets. docs/reference/webhooks.md, Subscriptions. */
import { createHash } from 'node:crypto'
import type { Webhook } from '../../actors/domain/entities/webhooks.js'
import { numberEvents } from '../platform/event-numbers.js'
import { tenantInForce } from '../platform/in-force.js'
import { partsOf, stamped } from '../platform/sealing/stamps.js'
import { lockUntilEnd } from '../platform/portable/locks.js'
import {
  allRows,
  changedRows,
  execute,
  firstRow,
  isChanged,
  type Statement,
  type Transaction,
} from '../platform/sql.js'
import { listing } from '../platform/portable/tenant-rows.js'

/** The valid secrets, encrypted with `webhookSecretContext` as context. */
type SealedSecrets = {
  secret: Uint8Array
  /** The secret before the last rotation while both are valid. */
  previousSecret: Uint8Array | null
}

const COLUMNS = `id, tenant_id as "tenantId", url, event_types as "eventTypes", description, active,
  secret_last_rotated_at as "secretLastRotatedAt", created_at as "createdAt",
  updated_at as "updatedAt"`

const SECRET = `${stamped('secret')} as secret`
const SECRETS = `${SECRET},
  case when previous_secret_expires_at > statement_timestamp() then ${stamped('previous_secret')} end
    as "previousSecret"`

/** Encryption context of a subscription's secrets. */
export const webhookSecretContext = (webhookId: string) => ({
  rewritten: `webhook:${webhookId}:secret`,
})

/**
 * Inserts the subscription unless the tenant has `max` of them. Creations of one tenant are
 * serialized, so that the count is exact. Earlier events get their numbers first: the subscription does not get them.
 * @returns undefined when the tenant has reached its limit.
 */
export async function insertWebhook(
  tx: Transaction,
  row: Omit<Webhook, 'secretLastRotatedAt' | 'updatedAt'> & {
    secret: Uint8Array
    secretHint?: number
  },
  max: number,
): Promise<Webhook | undefined> {
  await lockUntilEnd(tx, { kind: 'webhooks', tenantId: row.tenantId })
  await numberEvents(tx, row.tenantId)
  const { sealed, stamp } = partsOf(row.secret)
  return firstRow<Webhook>(tx, {
    name: 'webhook.insert',
    text: `with made as (
             insert into webhooks (tenant_id, id, url, event_types, description, active, secret,
               secret_hint, secret_last_rotated_at, created_at, updated_at, secret_stamp)
             select $1, $2, $3, $4, $5, $6, $7, $10, $8, $8, $8, $11::bytea
             where (select count(*) from webhooks where tenant_id = $1 and deleted_at is null) < $9
             returning *),
           lane as (
             insert into webhook_lanes (tenant_id, webhook_id) select tenant_id, id from made)
           select ${COLUMNS} from made`,
    values: [
      row.tenantId,
      row.id,
      row.url,
      row.eventTypes,
      row.description,
      row.active,
      sealed,
      row.createdAt,
      max,
      row.secretHint ?? null,
      stamp,
    ],
  })
}

export const findWebhook = (tx: Transaction, tenantId: string, id: string) =>
  firstRow<Webhook>(tx, {
    name: 'webhook.find',
    text: `select ${COLUMNS} from webhooks
           where tenant_id = $1 and id = $2 and deleted_at is null`,
    values: [tenantId, id],
  })

/** One page, newest first, after the row that `createdAt` and `id` name. */
export const listWebhookRows = listing<Webhook>(
  'webhook.list',
  `select ${COLUMNS} from webhooks where tenant_id = $1 and deleted_at is null`,
)

type WebhookChange = Pick<
  Webhook,
  'tenantId' | 'id' | 'url' | 'eventTypes' | 'description' | 'active'
> & { now: Date }

/** Replaces the members of a PUT. Activating a subscription resets its failure state. */
export async function replaceWebhookRow(
  tx: Transaction,
  change: WebhookChange,
): Promise<Webhook | undefined> {
  await numberEvents(tx, change.tenantId)
  return firstRow<Webhook>(tx, {
    name: 'webhook.replace',
    text: `with changed as (
             update webhooks set url = $3, event_types = $4, description = $5, active = $6,
               updated_at = $7
             where tenant_id = $1 and id = $2 and deleted_at is null
             returning *),
           lane as (
             update webhook_lanes l set held_until = null, failures = 0, failing_since = null
             from changed c where l.tenant_id = c.tenant_id and l.webhook_id = c.id)
           select ${COLUMNS} from changed`,
    values: [
      change.tenantId,
      change.id,
      change.url,
      change.eventTypes,
      change.description,
      change.active,
      change.now,
    ],
  })
}

/** Deactivates a subscription whose receiver is gone or has failed for days. */
export const deactivateWebhook = (tx: Transaction, tenantId: string, id: string, now: Date) =>
  isChanged(tx, {
    name: 'webhook.deactivate',
    text: `update webhooks set active = false, updated_at = $3
           where tenant_id = $1 and id = $2 and active`,
    values: [tenantId, id, now],
  })

/** Marks a subscription deleted and wipes its secrets. Its history stays until the sweep. */
export const deleteWebhookRow = (tx: Transaction, tenantId: string, id: string, now: Date) =>
  isChanged(tx, {
    name: 'webhook.delete',
    text: `update webhooks set deleted_at = $3, updated_at = $3, active = false, secret = null,
             previous_secret = null, previous_secret_expires_at = null, secret_hint = null,
             previous_secret_hint = null
           where tenant_id = $1 and id = $2 and deleted_at is null`,
    values: [tenantId, id, now],
  })

export const findRotatedSecret = (tx: Transaction, tenantId: string, id: string) =>
  firstRow<{ secret: Uint8Array; rotatedAt: Date }>(tx, {
    name: 'webhook.rotated_secret',
    text: `select ${SECRET}, secret_last_rotated_at as "rotatedAt" from webhooks
           where tenant_id = $1 and id = $2 and deleted_at is null`,
    values: [tenantId, id],
  })

/** Shortens the overlap to end at `previousUntil`. @returns when the overlap ends. */
export const shortenOverlap = (
  tx: Transaction,
  overlap: { tenantId: string; id: string; current: Uint8Array; previousUntil: Date },
) =>
  firstRow<{ previousExpiresAt: Date | null }>(tx, {
    name: 'webhook.shorten_overlap',
    text: `update webhooks
           set previous_secret_expires_at = least(previous_secret_expires_at,
             case when previous_secret_expires_at is not null then $4::timestamptz end)
           where tenant_id = $1 and id = $2 and secret = $3 and deleted_at is null
           returning previous_secret_expires_at as "previousExpiresAt"`,
    values: [overlap.tenantId, overlap.id, partsOf(overlap.current).sealed, overlap.previousUntil],
  })

/**
 * Replaces the secret `current`, which stays valid for the overlap.
 * @returns undefined when `current` is not the secret any more.
 */
export const rotateWebhookSecretRow = (
  tx: Transaction,
  rotation: {
    tenantId: string
    id: string
    current: Uint8Array
    secret: Uint8Array
    secretHint: number
    now: Date
    previousUntil: Date
  },
) => {
  const { sealed, stamp } = partsOf(rotation.secret)
  return firstRow<Webhook>(tx, {
    name: 'webhook.rotate_secret',
    text: `update webhooks set previous_secret = secret, previous_secret_stamp = secret_stamp,
             previous_secret_expires_at = $5, previous_secret_hint = secret_hint,
             secret = $3, secret_stamp = $8, secret_hint = $6,
             secret_last_rotated_at = $4, updated_at = $4
           where tenant_id = $1 and id = $2 and secret = $7 and deleted_at is null
           returning ${COLUMNS}`,
    values: [
      rotation.tenantId,
      rotation.id,
      sealed,
      rotation.now,
      rotation.previousUntil,
      rotation.secretHint,
      partsOf(rotation.current).sealed,
      stamp,
    ],
  })
}

export const findWebhookSecrets = (tx: Transaction, tenantId: string, id: string) =>
  firstRow<SealedSecrets>(tx, {
    name: 'webhook.secrets',
    text: `select ${SECRETS} from webhooks
           where tenant_id = $1 and id = $2 and deleted_at is null`,
    values: [tenantId, id],
  })

/** A 16-bit hint that is stored to find subscriptions by their secret. */
export function secretHint(secret: string): number {
  return createHash('sha256').update(secret, 'utf8').digest().readUInt16BE()
}

export type HintedWebhook = SealedSecrets & {
  tenantId: string
  id: string
  eventTypes: string[]
  hinted: boolean
}

/**
 * Active subscriptions of which a valid secret may have this hint, for the fulfillment lookup.
 * Crosses tenants: the caller does not name one.
 */
export const webhooksByHint = (tx: Transaction, hint: number) =>
  allRows<HintedWebhook>(tx, {
    name: 'webhook.by_hint',
    text: `select tenant_id as "tenantId", id, event_types as "eventTypes",
             secret_hint is not null as hinted, ${SECRETS} from webhooks
           where active and deleted_at is null and ${tenantInForce('webhooks.tenant_id')}
             and (secret_hint = $1 or previous_secret_hint = $1 or secret_hint is null)
           limit 1000`,
    values: [hint],
  })

/** Stores the hint of a secret from before hints existed. */
export const storeHint = (tx: Transaction, id: string, hint: number) =>
  execute(tx, {
    name: 'webhook.store_hint',
    text: 'update webhooks set secret_hint = $2 where id = $1 and secret_hint is null and active',
    values: [id, hint],
  })

/** The active subscriptions of these tenants. For the fan-out, which crosses tenants. */
export const activeWebhooks = (tx: Transaction, tenantIds: readonly string[]) =>
  allRows<Pick<Webhook, 'tenantId' | 'id' | 'eventTypes'>>(tx, {
    name: 'webhook.active',
    text: `select tenant_id as "tenantId", id, event_types as "eventTypes" from webhooks
           where tenant_id = any($1::uuid[]) and active and deleted_at is null`,
    values: [tenantIds],
  })

export type WebhookTarget = Pick<Webhook, 'tenantId' | 'id' | 'url' | 'active'> & {
  /** The tenant is suspended: due deliveries wait. */
  paused: boolean
  secret: Uint8Array | null
  previousSecret: Uint8Array | null
}

const TARGET = `select tenant_id as "tenantId", id, url, active,
  not ${tenantInForce('webhooks.tenant_id')} as paused, ${SECRETS} from webhooks`

/** The targets of these subscriptions, of any tenant. */
export const webhookTargets = (tx: Transaction, ids: readonly string[]) =>
  allRows<WebhookTarget>(tx, {
    name: 'webhook.targets',
    text: `${TARGET} where id = any($1::uuid[])`,
    values: [ids],
  })

/** Reads the target of one subscription. Unlike a list of ids, PostgreSQL does not plan it again each time. */
export function selectingTarget(id: string): Statement {
  return { name: 'webhook.target', text: `${TARGET} where id = $1`, values: [id] }
}

/** Wipes secrets whose overlap has ended. Needs a crossing transaction. @returns how many. */
export const wipePreviousSecrets = (tx: Transaction, limit: number) =>
  changedRows(tx, {
    name: 'webhook.wipe_previous',
    text: `update webhooks set previous_secret = null, previous_secret_expires_at = null,
             previous_secret_hint = null
           where id in (select id from webhooks
             where previous_secret_expires_at <= statement_timestamp()
             limit $1 for update skip locked)`,
    values: [limit],
  })

/**
 * Deletes subscriptions marked deleted, with the rest of their history. Needs a crossing
 * transaction.
 */
export const sweepDeletedWebhooks = (tx: Transaction, before: Date, limit: number) =>
  changedRows(tx, {
    name: 'webhook.sweep',
    text: `delete from webhooks where id in (
             select id from webhooks where deleted_at < $1 limit $2 for update skip locked)`,
    values: [before, limit],
  })
