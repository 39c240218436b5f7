/**
 * Lets a merchant look up a charge with a webhook secret (docs/reference/commerce.md, Fulfillment
 * lookup). The secret identifies the tenant, so only charges of that tenant are found. Secrets are
 * compared as digests, all of them, in constant time.
 */
import { timingSafeEqual } from 'node:crypto'
import type { Handler } from '../../../../runtime/kernel/actor.js'
import { findCharge } from '../../../../storage/commerce/charges.js'
import type { Sealer } from '../../../../storage/platform/sealing/sealer.js'
import type { Transaction } from '../../../../storage/platform/sql.js'
import {
  type HintedWebhook,
  secretHint,
  storeHint,
  webhookSecretContext,
  webhooksByHint,
} from '../../../../storage/webhooks/webhooks.js'
import { chargeOf } from '../records.js'
import { selectedTypes } from '../../../domain/webhooks/event-filters.js'
import { isUuid } from '../../../domain/ids.js'
import { sha256 } from '../../../domain/secret-hashes.js'
import type { CheckoutNeeds } from './needs.js'
import type { CheckoutProtocol } from './protocol.js'
import { inTenant } from '../../../platform/in-tenant.js'

const SECRET_BYTES_MAX = 256
const PAYMENTS = 'commerce.payment.'

export const getFulfillment: Handler<CheckoutNeeds, CheckoutProtocol, 'getFulfillment'> = async (
  needs,
  { chargeId, secret },
  { signal },
) => {
  if (secret === null || secret === '' || Buffer.byteLength(secret) > SECRET_BYTES_MAX) {
    return { tag: 'unauthorized' }
  }
  const tenantIds = await tenantsOf(needs, secret, signal)
  if (tenantIds.size === 0) return { tag: 'unauthorized' }
  for (const tenantId of isUuid(chargeId) ? tenantIds : []) {
    const find = (tx: Transaction) => findCharge(tx, tenantId, chargeId)
    const charge = await inTenant(needs.database, tenantId, { signal }, find)
    if (charge !== undefined) return { tag: 'found', charge: chargeOf(charge) }
  }
  return { tag: 'unknown_charge' }
}

/**
 * Tenants that have this secret: none or one, or more when several tenants chose the same secret.
 */
async function tenantsOf(
  { database, sealer }: CheckoutNeeds,
  secret: string,
  signal: AbortSignal,
): Promise<ReadonlySet<string>> {
  const hint = secretHint(secret)
  const candidates = await database.system((tx) => webhooksByHint(tx, hint), { signal })
  const digest = sha256(secret)
  const tenantIds = new Set<string>()
  for (const webhook of candidates) {
    const secrets = await secretsOf(sealer, webhook)
    if (!webhook.hinted) {
      await database.system((tx) => storeHint(tx, webhook.id, secretHint(secrets[0]!)))
    }
    // Compares every candidate, including those after a match.
    const matches = secrets
      .map((candidate) => timingSafeEqual(sha256(candidate), digest))
      .includes(true)
    const scoped = selectedTypes(webhook.eventTypes).some((type) => type.startsWith(PAYMENTS))
    if (matches && scoped) tenantIds.add(webhook.tenantId)
  }
  return tenantIds
}

async function secretsOf(sealer: Sealer, webhook: HintedWebhook): Promise<readonly string[]> {
  const { tenantId, id, secret, previousSecret } = webhook
  const context = webhookSecretContext(id)
  const sealed = previousSecret === null ? [secret] : [secret, previousSecret]
  return Promise.all(
    sealed.map(async (value) =>
      Buffer.from(await sealer.open(tenantId, context, value)).toString('utf8'),
    ),
  )
}
