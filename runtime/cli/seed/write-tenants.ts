/** Writes the tenants of `svc seed`, some in one transaction, each with its events numbered and chained. */
import { chargePaid, openCharge } from '../../../actors/commerce/payments/charges.js'
import { SANDBOX_PROVIDER } from '../../../actors/commerce/payments/sandbox-provider.js'
import { insertPrice, insertProduct } from '../../../storage/commerce/products.js'
import {
  existingTenants,
  insertRows,
  SEEDED_TABLES,
  type SeedRow,
} from '../../../storage/operations/seed-rows.js'
import { numberEvents } from '../../../storage/platform/event-numbers.js'
import { appendStatement, type NewEvent } from '../../../storage/platform/outbox.js'
import type { Sealer } from '../../../storage/platform/sealing/sealer.js'
import { partsOf } from '../../../storage/platform/sealing/stamps.js'
import type { Database, Transaction } from '../../../storage/platform/sql.js'
import { secretHint, webhookSecretContext } from '../../../storage/webhooks/webhooks.js'
import type { Clock } from '../../kernel/clock.js'
import {
  mixedTenant,
  type Plan,
  type SeededTenant,
  type TenantAccess,
  tenantIdOf,
} from './mixed.js'

const CHARGES_PER_SHOP = 5
const AMOUNT_MINOR = 1999
const CURRENCY = 'USD'

type SeedNeeds = {
  readonly database: Database
  readonly sealer: Sealer
  readonly clock: Clock
}

/**
 * Writes the tenants with these numbers in one transaction, except those that exist. So an interrupted run continues when it
 * is repeated with the same seed.
 * @returns how to use each tenant, and how many rows and events were written.
 */
export async function writeTenants(
  needs: SeedNeeds,
  plan: Plan,
  indexes: readonly number[],
): Promise<{ access: TenantAccess[]; tenants: number; rows: number; events: number }> {
  const { database, sealer } = needs
  const all = indexes.map((index) => mixedTenant(plan, index))
  const ids = indexes.map((index) => tenantIdOf(plan.seed, index))
  // Creates tenants: this crosses them.
  const known = await database.system((tx) => existingTenants(tx, ids))
  const tenants = all.filter(({ id }) => !known.has(id))
  const secrets = new Map<string, SeedRow>()
  for (const { id, webhook } of tenants) {
    if (webhook === undefined) continue
    const context = webhookSecretContext(webhook.id)
    const value = await sealer.seal(id, context, Buffer.from(webhook.secret, 'utf8'))
    const hex = (bytes: Buffer | null) => bytes && `\\x${bytes.toString('hex')}`
    const { sealed, stamp } = partsOf(value)
    const hint = secretHint(webhook.secret)
    secrets.set(webhook.id, { secret: hex(sealed), secret_stamp: hex(stamp), secret_hint: hint })
  }
  const written = await database.system(async (tx) => {
    let rows = 0
    for (const table of SEEDED_TABLES) {
      const batch = tenants.flatMap((tenant) => tenant.rows[table])
      const whole =
        table === 'webhooks'
          ? batch.map((row) => ({ ...row, ...secrets.get(String(row['id'])) }))
          : batch
      rows += await insertRows(tx, table, whole)
    }
    let events = 0
    for (const tenant of tenants) {
      const sold = tenant.hasShop ? await openShop(tx, tenant, needs.clock) : []
      events += await recordEvents(tx, tenant.id, [...tenant.events, ...sold])
    }
    return { rows, events }
  })
  return { access: all.map(({ access }) => access), tenants: tenants.length, ...written }
}

/** Records the events as a service does, and numbers and chains them immediately. */
async function recordEvents(
  tx: Transaction,
  tenantId: string,
  events: readonly NewEvent[],
): Promise<number> {
  if (events.length === 0) return 0
  await tx.query(appendStatement(events))
  await numberEvents(tx, tenantId)
  return events.length
}

/** A product with paid charges, booked in the ledger. @returns the events of the payments. */
async function openShop(
  tx: Transaction,
  { id: tenantId, random }: SeededTenant,
  clock: Clock,
): Promise<NewEvent[]> {
  const createdAt = clock.now()
  const product = { id: random.uuid(), tenantId, name: 'Membership', createdAt }
  await insertProduct(tx, product)
  const price = { id: random.uuid(), tenantId, productId: product.id, createdAt }
  const money = { amountMinor: AMOUNT_MINOR, currency: CURRENCY }
  await insertPrice(tx, { ...price, ...money, interval: null, intervalCount: null })
  const events: NewEvent[] = []
  const deps = { clock, random }
  for (let count = 0; count < CHARGES_PER_SHOP; count += 1) {
    const chargeId = random.uuid()
    const opened = await openCharge(tx, deps, {
      id: chargeId,
      tenantId,
      rail: SANDBOX_PROVIDER,
      ...money,
      metadata: {},
      productId: product.id,
      priceId: price.id,
      quantity: 1,
      dueAt: null,
      createdAt,
    })
    const payment = { tenantId, chargeId, rail: SANDBOX_PROVIDER, railReference: chargeId }
    const paid = await chargePaid(tx, deps, { ...payment, direct: false })
    events.push(...(opened?.events ?? []), ...(paid?.events ?? []))
  }
  return events
}
