/** The checks of payments whose outcome is not known. */
import { randomBytes } from 'node:crypto'
import test from 'ava'
import { Registry } from 'prom-client'
import { reconciliationWorker } from '../../../../../actors/commerce/payments/reconciliation/worker.js'
import type { FacilitatorRequest } from '../../../../../actors/commerce/payments/x402/offers.js'
import { reconciliationMetrics } from '../../../../../actors/commerce/payments/x402/metrics.js'
import { systemClock } from '../../../../../runtime/kernel/clock.js'
import { spawnInline } from '../../../../../runtime/kernel/inline.js'
import { systemRandom } from '../../../../../runtime/kernel/random.js'
import { claimX402Payment } from '../../../../../storage/commerce/x402-payments.js'
import { freshDatabase } from '../../../../support/storage/database.js'
import { sql } from '../../../../support/storage/sql.js'
import { merchantIn } from '../../../../support/commerce/merchant.js'

const random = systemRandom(systemClock)

test('a facilitator that does not answer about one payment delays no other', async (t) => {
  const { database } = await freshDatabase(t)
  const { tenantId } = await merchantIn(database)
  const asked = new Map<string, () => void>()
  const about = (name: string) => new Promise<void>((resolve) => asked.set(name, resolve))
  const ends: (() => void)[] = []
  const worker = spawnInline(reconciliationWorker, {
    database,
    clock: systemClock,
    random,
    facilitator: {
      verify: () => Promise.reject(new Error('a payment of unknown outcome is verified')),
      settle: (request: FacilitatorRequest) => {
        asked.get((request as unknown as { name: string }).name)!()
        const nothing = { tag: 'unknown', error: 'timeout', transaction: null } as const
        return new Promise((resolve) => ends.push(() => resolve(nothing)))
      },
      close: () => Promise.resolve(),
    },
    chains: new Map(),
    watched: new Map(),
    metrics: reconciliationMetrics(new Registry()),
  })
  t.teardown(async () => {
    for (const end of ends) end()
    await worker.stop()
  })

  /** A payment that is due. Resolves when the facilitator is asked about it. */
  async function due(name: string): Promise<void> {
    const isAsked = about(name)
    const [id, address] = [random.uuid(), `0x${randomBytes(20).toString('hex')}`]
    const payment = {
      tenantId,
      id,
      paymentLinkId: random.uuid(),
      checkoutSessionId: null,
      chargeId: random.uuid(),
      version: 2,
      network: 'eip155:8453',
      asset: address,
      payer: address,
      nonce: randomBytes(32).toString('hex'),
      payTo: address,
      amount: '1',
      validBefore: '4000000000',
      proofSha256: randomBytes(32),
      payloadSha256: randomBytes(32),
      paymentIdentifier: null,
      request: { name },
      createdAt: systemClock.now(),
    } as const
    await database.tenant(tenantId, (tx) => claimX402Payment(tx, payment, random.uuid(), 1))
    const text = `update x402_payments set state = 'unknown', due_at = now(), lease = null,
                  leased_until = null where tenant_id = $1 and id = $2`
    await sql(database, text, [tenantId, id])
    await isAsked
  }
  for (const name of ['first', 'second', 'third']) await due(name)
  t.is(ends.length, 3, 'nothing was answered in between')
})
