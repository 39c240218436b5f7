/** Own service: it kills a process of its deployment. */
/**
 * The process is killed (SIGKILL) while a request to the card provider is pending: no payment is
 * made twice or lost, and our ledger equals the provider's books.
 */
import test, { type ExecutionContext } from 'ava'
import { svcBeside } from '../../flows/vault/command.js'
import {
  type Called,
  type Mishap,
  startCardProvider,
} from '../../support/commerce/card-provider.js'
import { cardShop } from '../../support/commerce/card-shop.js'
import { sql } from '../../support/storage/sql.js'
import { ownService } from '../../support/service/own-service.js'
import { freePort } from '../../support/service.js'
import { COMMERCE } from '../../support/commerce/shop.js'

const provider = await startCardProvider()
const environment = { ...COMMERCE, ...provider.environment, SVC_COMMERCE__CARD__TIMEOUT_SECS: '30' }
/** Does no background work, and keeps running when the worker is killed. */
const running = await ownService({
  environment: { ...environment, SVC_DEPLOYMENT__BACKGROUND_TASKS_ENABLED: 'false' },
})
const { fresh, close } = cardShop(running, provider)
test.after.always(async () => {
  await close()
  await running.end()
  await provider.close()
})

/** A process that does the background work. One is killed and replaced by another. */
function worker(t: ExecutionContext) {
  return svcBeside(t, running, { ...environment, SVC_RUNTIME_PLANE: 'async' })
}

/** Makes the next call of a kind hang. @returns a promise that resolves when it is reached. */
function hangAt(kind: (call: Called) => boolean, mishap: Mishap): Promise<void> {
  return new Promise((resolve) => {
    provider.mishap = (call) => {
      if (!kind(call)) return 'none'
      provider.mishap = () => 'none'
      setImmediate(resolve)
      return mishap
    }
  })
}

/** Expires the leases of killed workers. */
async function endLeases(tenantId: string): Promise<void> {
  await sql(running)`
    update subscriptions s set due_at = now() where tenant_id = ${tenantId} and due_at is not null
    and exists (select from charges c where c.subscription_id = s.id and c.status = 'pending')`
  await sql(running)`
    update charges set due_at = now() where tenant_id = ${tenantId} and status = 'pending'
    and rail is not null and subscription_period is distinct from 2`
  await sql(running)`
    update refunds set due_at = now() where tenant_id = ${tenantId} and status = 'pending'`
}

const toPayments = ({ method, path }: Called) => method === 'POST' && path === '/v1/payment_intents'
const toConfirm = ({ path }: Called) => path.endsWith('/confirm')

for (const [step, kind] of [
  ['creation', toPayments],
  ['confirmation', toConfirm],
] as const) {
  for (const mishap of ['hang_before', 'hang_after'] as const) {
    test.serial(`a renewal is charged once: killed at its ${step}, ${mishap}`, async (t) => {
      t.timeout(120_000)
      const shop = await fresh()
      const { tenantId } = shop.workspace
      const priceId = await shop.price({ recurring: { interval: 'month' }, amount_minor: 900 })
      const { id } = await shop.subscribed(priceId)
      const reached = hangAt(kind, mishap)
      const victim = await worker(t)
      await shop.makeDue('subscriptions')
      await reached
      victim.child.kill('SIGKILL')
      await victim.ended()
      const pending = await sql<{ id: string }>(running)`
        select id from charges where tenant_id = ${tenantId} and status = 'pending'`
      t.is(pending.length, 1, 'what was begun is known')
      await endLeases(tenantId)
      const next = await worker(t)
      await shop.subscriptionWhen(id, ({ period }) => period === 2)
      next.child.kill('SIGTERM')
      t.is(await next.ended(), 0)
      const payments = provider.paymentsOf(pending[0]!.id)
      t.is(payments.filter(({ status }) => status === 'succeeded').length, 1)
      t.is(payments.length, 1, 'one creation under one idempotency key')
      t.like(await shop.charge(pending[0]!.id), { status: 'succeeded' })
      t.deepEqual(await shop.books(), { total: '0', clearing: '1800', unbalanced: 0 })
    })
  }
}

for (const mishap of ['hang_before', 'hang_after'] as const) {
  test.serial(`a refund is made once: killed at it, ${mishap}`, async (t) => {
    t.timeout(120_000)
    const shop = await fresh()
    const { tenantId } = shop.workspace
    const chargeId = await shop.bought()
    const path = `/api/v1/commerce/charges/${chargeId}/refund`
    // Fails here, so that a worker takes it over and is killed during its request.
    const first = hangAt(
      ({ method, path: to }) => method === 'POST' && to === '/v1/refunds',
      'error_before',
    )
    await shop.api.post(path, shop.token, { amount_minor: 700 })
    await first
    // The provider stores a server error under its key for a day. Afterwards it has forgotten it.
    provider.forgetKeys()
    const reached = hangAt(
      ({ method, path: to }) => method === 'POST' && to === '/v1/refunds',
      mishap,
    )
    const victim = await worker(t)
    await endLeases(tenantId)
    await reached
    victim.child.kill('SIGKILL')
    await victim.ended()
    provider.forgetKeys()
    await endLeases(tenantId)
    const next = await worker(t)
    await shop.chargeWhen(chargeId, (charge) => charge['refunded_amount_minor'] === 700)
    next.child.kill('SIGTERM')
    t.is(await next.ended(), 0)
    const made = [...provider.refunds.values()].filter(
      (one) => one['payment_intent'] === provider.paymentsOf(chargeId)[0]!.id,
    )
    t.deepEqual(
      made.map(({ amount }) => amount),
      [700],
    )
    t.deepEqual(await shop.books(), { total: '0', clearing: '1299', unbalanced: 0 })
  })

  test.serial(`a buyer pays once: killed while the page is made, ${mishap}`, async (t) => {
    t.timeout(120_000)
    const shop = await fresh()
    const { tenantId } = shop.workspace
    const opened = await shop.checkout()
    const chargeId = opened['charge_id']
    const path = new URL(String(opened['checkout_url'])).pathname
    const port = await freePort()
    const front = await svcBeside(t, running, {
      ...environment,
      SVC_SERVER__PORT: String(port),
      SVC_SERVER__ENDPOINT_THROTTLE__ENABLED: 'false',
      SVC_OIDC__ISSUER_URL: `http://localhost:${port}`,
      SVC_DEPLOYMENT__BACKGROUND_TASKS_ENABLED: 'false',
    })
    const buyer = shop.browserAt(`http://localhost:${port}`)
    const reached = hangAt(({ path: to }) => to === '/v1/checkout/sessions', mishap)
    const pressed = buyer.submit(await buyer.get(path), { rail: 'card' }).catch(() => undefined)
    await reached
    front.child.kill('SIGKILL')
    await front.ended()
    await pressed
    t.is((await shop.charge(chargeId))['status'], 'pending')

    const again = shop.browserAt(running.baseUrl)
    const sent = await again.submit(await again.get(path), { rail: 'card' })
    t.regex(sent.location ?? '', /\/c\/pay\/cs_/)
    provider.buyerPays(sent.location)
    await endLeases(tenantId)
    const next = await worker(t)
    await shop.chargeWhen(chargeId, ({ status }) => status === 'succeeded')
    next.child.kill('SIGTERM')
    t.is(await next.ended(), 0)
    t.is(provider.paymentsOf(chargeId).length, 1)
    t.deepEqual(await shop.books(), { total: '0', clearing: '1999', unbalanced: 0 })
  })
}

test.serial('all that the provider has is in our books', async (t) => {
  const [row] = await sql<{ clearing: string }>(running)`
    select coalesce(sum(balance_minor), 0)::text as clearing from ledger_accounts
    where account = 'clearing' and rail = 'card'`
  t.is(row!.clearing, String(provider.held()))
})
