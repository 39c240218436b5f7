/** Own service: it kills processes of its deployment. */
/**
 * Two async planes are killed (SIGKILL) repeatedly while subscriptions renew, payouts are sent and
 * settlements move: each period is charged once, and the ledger equals the provider's books.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import test from 'ava'
import { svcBeside } from '../../flows/vault/command.js'
import { sql } from '../../support/storage/sql.js'
import { ownService } from '../../support/service/own-service.js'
import { COMMERCE, openShop, PUBLIC } from '../../support/commerce/shop.js'
import { auditBooks } from '../../support/commerce/checkout-fixture.js'
import { IS_LONG } from '../../support/runs.js'

const SUBSCRIPTIONS = IS_LONG ? 200 : 30
const KILLS = IS_LONG ? 20 : 4
const STOPS_MAX = 10

test(`of ${SUBSCRIPTIONS} renewals none is lost or doubled by ${KILLS} kills`, async (t) => {
  t.timeout(IS_LONG ? 1_200_000 : 240_000)
  const running = await ownService({
    environment: { ...COMMERCE, SVC_DEPLOYMENT__BACKGROUND_TASKS_ENABLED: 'false' },
  })
  const shop = await openShop(running)
  t.teardown(async () => {
    await shop.api.close()
    await running.end()
  })
  const { db } = running
  const { tenantId } = shop.workspace
  const priceId = await shop.price({ recurring: { interval: 'year' }, amount_minor: 500 })
  for (let count = 0; count < SUBSCRIPTIONS; count += 1) {
    const { body } = await shop.api.post(`${PUBLIC}/subscription-checkout-sessions`, undefined, {
      price_id: priceId,
      customer_email: `buyer${count}@example.com`,
    })
    await shop.pay(body['checkout_url'])
  }
  const start = () => svcBeside(t, running, { ...COMMERCE, SVC_RUNTIME_PLANE: 'async' })
  /** Advances time: future work becomes due. */
  const makeDue = async () => {
    await sql(db.database)`update subscriptions set due_at = now() where due_at is not null`
    await sql(db.database)`update settlements set due_at = now() where due_at is not null`
  }
  /** Expires the leases of killed processes. */
  const endLeases = async () => {
    await sql(db.database)`
      update subscriptions s set due_at = now() where due_at is not null and exists (
      select from charges c where c.subscription_id = s.id and c.status = 'pending')`
    await sql(db.database)`update settlements set due_at = now() where due_at is not null`
  }
  const periods = async () => {
    const [row] = await sql<{ sum: number }>(db.database)`
      select coalesce(sum(period), 0)::int as sum from subscriptions where tenant_id = ${tenantId}`
    return row!.sum
  }

  let workers = await Promise.all([start(), start()])
  for (let kill = 1; kill <= KILLS; kill += 1) {
    await makeDue()
    const before = await periods()
    // In the middle of a round, at a later point each time.
    const wanted = before + Math.ceil((SUBSCRIPTIONS * (kill % 4)) / 4) + 1
    for (let turn = 0; turn < 2_000 && (await periods()) < wanted; turn += 1) await sleep(5)
    const [victim, other] = workers as [(typeof workers)[0], (typeof workers)[0]]
    victim.child.kill('SIGKILL')
    await victim.ended()
    workers = [other, await start()]
  }
  await makeDue()
  const rest = async () => {
    const [row] = await sql<{ open: number }>(db.database)`
      select ((select count(*) from charges where status = 'pending')
      + (select count(*) from settlements where status <> 'released')
      + (select count(*) from subscriptions where due_at <= now()))::int as open`
    return row!.open
  }
  // Compares ledger and provider while no worker runs, because during a renewal one of them is
  // ahead.
  for (let stop = 0; stop === 0 || (stop < STOPS_MAX && (await rest()) > 0); stop += 1) {
    if (stop > 0) workers = await Promise.all([start(), start()])
    for (let turn = 0; turn < 2_000 && (await rest()) > 0; turn += 1) {
      if (turn % 200 === 0) await endLeases()
      await sleep(20)
    }
    for (const { child } of workers) child.kill('SIGTERM')
    for (const worker of workers) t.is(await worker.ended(), 0)
  }
  t.is(await rest(), 0, 'everything comes to its end')
  const wrong = await sql(db.database)`
    select s.id from subscriptions s where status <> 'active' or period <> (
    select count(*) from charges c where c.subscription_id = s.id and c.status = 'succeeded')
    or period <> (select max(subscription_period) from charges c
    where c.subscription_id = s.id and c.status = 'succeeded')`
  t.deepEqual(wrong, [], 'as many paid charges as periods')
  const books = await auditBooks(db.database, tenantId)
  t.like(books, { total: '0', unbalanced: 0, apart: 0, strangers: 0 })
  t.is(books.clearing, books.paid)
  const [rail] = await sql<{ sum: string }>(db.database)`
    select sum(amount_minor)::text as sum from sandbox_payments where outcome = 'succeed'`
  t.is(rail?.sum, books.paid, 'the rail took nothing that we do not know of')
  t.log({ periods: await periods(), kills: KILLS })
  t.true((await periods()) > SUBSCRIPTIONS)
})
