/** Own service: it kills a process of its deployment. */
/**
 * A service is killed repeatedly while an agent has payments signed. Retries with the same idempotency keys get the same
 * signatures, and the budget is spent exactly. 60 payments and 3 kills. With TEST_LONG 1,200 and 30.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import test from 'ava'
import { svcBeside } from '../../flows/vault/command.js'
import { type Answer, apiOf } from '../../support/api.js'
import { NETWORK, newAccount } from '../../support/commerce/chain.js'
import { budget, walletAgent, WALLETS } from '../../support/commerce/wallet.js'
import { sql } from '../../support/storage/sql.js'
import { ownService } from '../../support/service/own-service.js'
import { freePort } from '../../support/service.js'
import { numberAll } from '../../support/storage/numbered.js'
import { IS_LONG } from '../../support/runs.js'

const PAYMENTS = IS_LONG ? 1_200 : 60
const KILLS = IS_LONG ? 30 : 3
/** One sixth of the payments finds the budget used up. */
const PAID = (PAYMENTS / 6) * 5
const AT_ONCE = 6
const USDC = '0x036CbD53842c5426634e7929541eC2318f3dCF7e'

test(`of ${PAYMENTS} payments ${PAID} are signed, once each, in ${KILLS} kills`, async (t) => {
  t.timeout(IS_LONG ? 1_800_000 : 240_000)
  // Holds the database and the keys. The signing process is killed.
  const holder = await ownService({
    transport: 'plain_http',
    environment: { ...WALLETS, SVC_DEPLOYMENT__BACKGROUND_TASKS_ENABLED: 'false' },
  })
  const api = apiOf(holder)
  t.teardown(() => api.end())
  const workspace = await api.workspace()
  const payTo = newAccount().address
  const policy = { recipients: [payTo], budgets: [budget(USDC, 1n, BigInt(PAID))] }
  const agent = await walletAgent(api, workspace, policy)
  const port = await freePort()
  const start = () =>
    svcBeside(t, holder, {
      ...WALLETS,
      SVC_SERVER__PORT: String(port),
      SVC_SERVER__ENDPOINT_THROTTLE__ENABLED: 'false',
    })
  let signer = await start()

  const offer = { scheme: 'exact', network: NETWORK, asset: USDC, payTo, amount: '1' }
  const accepts = [{ ...offer, maxTimeoutSeconds: 300 }]
  const body = JSON.stringify({ payment_required: { x402Version: 2, accepts } })
  async function ask(key: string): Promise<Pick<Answer, 'status'> & { nonce: unknown }> {
    const answer = await fetch(`http://127.0.0.1:${port}/api/v1/wallet/x402-payments`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${agent.token}`,
        'content-type': 'application/json',
        'idempotency-key': key,
      },
      body,
    })
    const { nonce } = (await answer.json()) as { nonce?: unknown }
    return { status: answer.status, nonce }
  }

  let restarting: Promise<void> = Promise.resolve()
  let kills = 0
  const every = Math.floor(PAYMENTS / (KILLS + 1))
  /** Kills the process while the requests of the other buyers are under way. */
  function perhapsKill(begun: number): void {
    if (kills === KILLS || begun < (kills + 1) * every) return
    kills += 1
    signer.child.kill('SIGKILL')
    restarting = signer.ended().then(async () => {
      signer = await start()
    })
  }
  const nonces = new Map<string, unknown>()
  let refused = 0
  async function payOne(key: string): Promise<void> {
    for (;;) {
      await restarting
      const answer = await ask(key).catch(() => undefined)
      if (answer?.status === 201) return void nonces.set(key, answer.nonce)
      if (answer?.status === 429) return void (refused += 1)
      if (answer !== undefined && answer.status < 500 && answer.status !== 409) {
        throw new Error(String(answer.status))
      }
      await sleep(50)
    }
  }
  let begun = 0
  const paying = async () => {
    while (begun < PAYMENTS) {
      begun += 1
      const paid = payOne(`payment-${begun}`)
      perhapsKill(begun)
      await paid
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, paying))
  await restarting

  t.is(kills, KILLS)
  t.is(nonces.size, PAID)
  t.is(refused, PAYMENTS - PAID)
  t.is(new Set(nonces.values()).size, PAID, 'a signature for each key')
  for (const [key, nonce] of nonces) t.deepEqual(await ask(key), { status: 201, nonce })
  await numberAll(holder.db.database)
  const [rows] = await sql<Record<string, number>>(holder)`
    select (select count(*)::int from wallet_signatures) as signed,
    (select sum(amount)::int from wallet_spends) as spent,
    (select count(*)::int from all_events where type = 'wallet.tx.signed') as told`
  t.deepEqual(rows, { signed: PAID, spent: PAID, told: PAID })
})
