/** Own service: it kills a process of its deployment. */
/**
 * A service is killed repeatedly while it takes payments, before and after its facilitator has
 * settled: every payment ends once, on the chain and in the ledger. 60 payments and 4 kills. With
 * TEST_LONG 1,000 and 50.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import test from 'ava'
import { svcBeside } from '../../flows/vault/command.js'
import { sharedChain } from '../../support/commerce/chain.js'
import { type Mischief, startFacilitator } from '../../support/commerce/facilitator.js'
import { chainEnvironment } from '../../support/commerce/market.js'
import { merchantIn } from '../../support/commerce/merchant.js'
import { ownService } from '../../support/service/own-service.js'
import { freePort } from '../../support/service.js'
import type { Answer, Json } from '../../support/identity/tenant-agent.js'
import {
  authorize,
  decode,
  encode,
  PRICE_ATOMIC,
  shopOf,
} from '../../support/commerce/x402-shop.js'
import { numberAll } from '../../support/storage/numbered.js'
import { IS_LONG } from '../../support/runs.js'

const PAYMENTS = IS_LONG ? 1_000 : 60
const KILLS = IS_LONG ? 50 : 4
const BUYERS = 8

test(`of ${PAYMENTS} payments none is lost or settled twice in ${KILLS} kills`, async (t) => {
  t.timeout(IS_LONG ? 1_800_000 : 240_000)
  const chain = await sharedChain()
  const facilitator = await startFacilitator(chain)
  const environment = {
    ...chainEnvironment({ ...chain, facilitatorUrl: facilitator.url }),
    SVC_COMMERCE__X402_MAX_TIMEOUT_SECS: '900',
    SVC_SERVER__REQUEST_TIMEOUT_SECS: '4',
    SVC_SERVER__ENDPOINT_THROTTLE__ENABLED: 'false',
  }
  // Holds the database and the keys. The selling process is killed.
  const holder = await ownService({
    transport: 'plain_http',
    environment: { SVC_DEPLOYMENT__BACKGROUND_TASKS_ENABLED: 'false' },
  })
  t.teardown(async () => {
    await holder.end()
    await facilitator.close()
  })
  const { db } = holder
  const port = await freePort()
  const baseUrl = `http://127.0.0.1:${port}`
  const start = () => svcBeside(t, holder, { ...environment, SVC_SERVER__PORT: String(port) })
  let seller = await start()

  // It is killed after a number of settlements: before the facilitator acts, or after.
  let settles = 0
  let kills = 0
  let restarting: Promise<void> = Promise.resolve()
  const every = Math.floor(PAYMENTS / (KILLS + 1))
  const deadly: Mischief = async ({ operation }, honest) => {
    if (operation !== 'settle') return undefined
    settles += 1
    if (kills === KILLS || settles < (kills + 1) * every) return undefined
    kills += 1
    const acts = kills % 2 === 0
    const said = acts ? await honest() : undefined
    seller.child.kill('SIGKILL')
    restarting = seller.ended().then(async () => {
      seller = await start()
    })
    return said ?? { success: false, errorReason: 'nobody_listens' }
  }
  facilitator.mischief = deadly

  const merchant = await merchantIn(db.database)
  const shop = shopOf({ ...holder, baseUrl }, merchant, chain)
  const link = await shop.link()
  const who = await shop.buyer(PAYMENTS)
  const { body: challenge } = await shop.get(link)
  const accepted = (challenge['accepts'] as Json[])[0]!

  const answers: { nonce: string; answer: Answer }[] = []
  async function payOne(): Promise<void> {
    const exact = await authorize(who, {
      token: chain.token,
      to: link.payTo,
      value: PRICE_ATOMIC,
      validBefore: BigInt(Math.floor(Date.now() / 1000) + 900),
    })
    const proof = encode({ x402Version: 2, accepted, payload: exact })
    for (;;) {
      await restarting
      // A broken connection leaves the outcome unknown: send the same proof again.
      const answer = await shop.post(link, proof).catch(() => undefined)
      const isFinal = answer !== undefined && answer.status !== 503 && answer.status !== 504
      if (isFinal) {
        answers.push({ nonce: exact.authorization['nonce']!, answer })
        return
      }
      await sleep(200)
    }
  }
  let begun = 0
  const buying = async () => {
    while (begun < PAYMENTS) {
      begun += 1
      await payOne()
    }
  }
  await Promise.all(Array.from({ length: BUYERS }, buying))
  await restarting

  t.is(kills, KILLS)
  t.deepEqual([...new Set(answers.map(({ answer }) => answer.status))], [200])
  const charges = new Set(answers.map(({ answer }) => answer.body['charge_id']))
  t.is(charges.size, PAYMENTS)
  const transfers = await chain.transfersTo(link.payTo)
  t.is(transfers.length, PAYMENTS, 'each was settled once on the chain')
  const hashes = new Set(transfers.map(({ transaction }) => transaction as string))
  for (const { answer } of answers) {
    const settlement = decode(answer.headers.get('payment-response'))
    t.true(hashes.delete(String(settlement['transaction'])), 'a separate transaction')
  }
  await numberAll(db.database)
  const { rows } = await db.database.tenant(merchant.tenantId, (tx) =>
    tx.query<Record<string, number>>({
      name: 'test.books',
      text: `select
        (select count(*)::int from charges where status = 'succeeded') as succeeded,
        (select count(*)::int from charges) as charges,
        (select count(*)::int from all_events where type = 'commerce.payment.pending') as pending_told,
        (select count(*)::int from all_events where type = 'commerce.payment.succeeded') as told,
        (select count(*)::int from ledger_entries where kind = 'charge') as booked,
        (select count(*)::int from x402_payments where state = 'settled') as settled`,
    }),
  )
  t.deepEqual(rows[0], {
    succeeded: PAYMENTS,
    charges: PAYMENTS,
    pending_told: PAYMENTS,
    told: PAYMENTS,
    booked: PAYMENTS,
    settled: PAYMENTS,
  })
  t.log({ payments: PAYMENTS, kills, settlesAsked: settles })
})
