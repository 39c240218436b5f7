/** Own service: its kms, its loops and its threads fail, and it is stopped. */
/** A part of the service fails while everything else works: the kms, a background loop, a thread of a pool. And it drains. */
import { syncBuiltinESMExports } from 'node:module'
import { setTimeout as sleep } from 'node:timers/promises'
import threads, { type WorkerOptions } from 'node:worker_threads'
import test from 'ava'
import { type Clock, systemClock } from '../../../runtime/kernel/clock.js'
import { FAILING_MS_MAX } from '../../../runtime/kernel/loops.js'
import {
  bootstrap,
  callerOf,
  clientToken,
  complete,
  demand,
  login,
  start,
} from '../../support/agents/journey.js'
import { COMMERCE } from '../../support/commerce/shop.js'
import type { TestService } from '../../support/service.js'
import { ownService } from '../../support/service/own-service.js'
import { isReady, metric, METRICS_TOKEN, until, watchLive } from '../../support/service/watch.js'
import type { TestKms } from '../../support/storage/kms.js'
import { sql } from '../../support/storage/sql.js'
import { IS_LONG } from '../../support/runs.js'

/** A table that each loop needs, made unavailable by renaming it. The long form fails a second one. */
const LOOPS: Readonly<Record<string, string>> = {
  'billing: rounds': 'payouts',
  ...(IS_LONG ? { 'notify: queue': 'outgoing_mail' } : {}),
}

/** Every thread started from here on whose data names the pool's module. */
const powThreads: threads.Worker[] = []
const { Worker } = threads
threads.Worker = class extends Worker {
  constructor(file: string | URL, options?: WorkerOptions) {
    super(file, options)
    if (JSON.stringify(options?.workerData ?? null).includes('/proof-of-work/'))
      powThreads.push(this)
  }
}
syncBuiltinESMExports()

const log: string[] = []
/** The tests before the last one leave it as they found it. */
let running: TestService
test.before(async () => {
  running = await ownService({
    onLog: (line) => void log.push(line),
    environment: { SVC_SERVER__METRICS_BEARER_TOKEN: METRICS_TOKEN, SVC_SERVER__DRAIN_SECS: '2' },
  })
})
test.after.always(() => running?.end())

test.serial(
  'while the kms is away or stopped, requests that unwrap no key still work, and the process stays ready',
  async (t) => {
    const http = callerOf(running.baseUrl)
    const space = await bootstrap(http)
    const pulse = watchLive(http)
    t.true(await isReady(http))
    const logged = (words: string) => () => log.some((line) => line.includes(words))

    for (const take of [(kms: TestKms) => kms.interrupt(), (kms: TestKms) => kms.freeze()]) {
      log.length = 0
      await take(running.kms)
      await until('noticed', logged('kms lost'))
      for (let turn = 0; turn < 2; turn += 1) {
        demand(await http.call('/.well-known/jwks.json'), 200)
        demand(await clientToken(http, space), 200)
        demand(await login(http, space), 200)
        const authorization = `Bearer ${space.accessToken}`
        demand(await http.call('/api/v1/agents/me', { headers: { authorization } }), 200)
        demand(await complete(http, await start(http)), 201)
        t.true(await isReady(http))
      }
      t.is((await http.call('/health/startup')).status, 200, 'a start is not undone')
      await running.kms.resume()
      await until('found', logged('kms found'))
      await bootstrap(http)
    }
    t.is((await pulse.stop()).bad, 0)
    t.is(await metric(http, 'svc_actor_restarts_total'), 0)
    t.is(await metric(http, 'svc_actor_unavailable_total', { reason: 'failed' }), 0)
  },
)

/** With a pause between two looks, because a look reads all metrics. */
async function looks(what: string, fits: () => Promise<boolean>): Promise<void> {
  for (let turn = 0; turn < 300; turn += 1) {
    if (await fits()) return
    await sleep(100)
  }
  throw new Error(what)
}

test.serial(
  'a loop that fails for a minute makes the process not ready, and is named',
  async (t) => {
    t.timeout(240_000)
    let aheadMs = 0
    const clock: Clock = { ...systemClock, monotonicMs: () => systemClock.monotonicMs() + aheadMs }
    const lines: string[] = []
    const running = await ownService({
      clock,
      onLog: (line) => lines.push(line),
      environment: {
        ...COMMERCE,
        SVC_SERVER__METRICS_BEARER_TOKEN: METRICS_TOKEN,
        // The gateway sets deadlines by the real clock. The actors' clock is ahead here.
        SVC_SERVER__REQUEST_TIMEOUT_SECS: '300',
      },
    })
    t.teardown(() => running.end())
    const status = async () => (await fetch(`${running.baseUrl}/health/ready`)).status
    const shown = async () =>
      (
        await fetch(`${running.baseUrl}/metrics`, {
          headers: { authorization: `Bearer ${METRICS_TOKEN}` },
        })
      ).text()
    const failures = async (actor: string, loop: string) => {
      const name = `svc_loop_failed_rounds_total{actor="${actor}",loop="${loop}"} `
      const line = (await shown()).split('\n').find((one) => one.startsWith(name))
      return line === undefined ? 0 : Number(line.slice(name.length))
    }
    await looks('the service is ready', async () => (await status()) === 200)
    // Loops on the main thread use its clock, and their rounds are a second apart.
    for (const [each, table] of Object.entries(LOOPS)) {
      const [actor = '', loop = ''] = each.split(': ')
      await sql(running, `alter table ${table} rename to ${table}_away`)
      const before = await failures(actor, loop)
      await looks(`${each} fails`, async () => (await failures(actor, loop)) >= before + 2)
      t.is(await status(), 200, `${each}: a second is no minute`)
      aheadMs += FAILING_MS_MAX
      await looks(`${each} is noticed`, async () => (await status()) === 503)
      t.true((await shown()).includes(`svc_loop_failing{actor="${actor}",loop="${loop}"} 1`))
      await looks(`${each} is in the log`, async () =>
        lines.some((line) => line.includes('not ready') && line.includes(`${each} fails`)),
      )
      t.is((await fetch(`${running.baseUrl}/health/live`)).status, 200)
      await sql(running, `alter table ${table}_away rename to ${table}`)
      await looks(`${each} works again`, async () => (await status()) === 200)
    }
    // The loop of a thread counts its rounds as well. The thread's clock measures how long they fail.
    await sql(running)`alter table webhook_lanes rename to webhook_lanes_away`
    await looks(
      'the webhook worker fails',
      async () => (await failures('deliveries', 'deliveries')) >= 2,
    )
    await sql(running)`alter table webhook_lanes_away rename to webhook_lanes`
  },
)

/** False for workers of a service that has ended. */
const isAlive = ({ threadId }: threads.Worker) => threadId !== -1

test.serial('registrations succeed while the threads that verify them keep dying', async (t) => {
  const http = callerOf(running.baseUrl)
  await bootstrap(http)
  t.true(powThreads.some(isAlive), 'the threads of the pool are known')
  let killed = 0
  for (let round = 0; round < 2; round += 1) {
    const begun = await Promise.all(Array.from({ length: 4 }, () => start(http)))
    const completed = begun.map((each) => complete(http, each))
    for (const thread of powThreads.splice(0).filter(isAlive)) {
      killed += 1
      await thread.terminate()
    }
    for (const answer of await Promise.all(completed)) demand(answer, 201)
    await bootstrap(http)
  }
  t.true(killed >= 2)
  t.true(await isReady(http))
})

/** Its proxies see it first, and what they still send is served (docs/reference/runtime.md). */
test.serial(
  'a process that drains is not ready and answers every request until it ends',
  async (t) => {
    const ask = async (path: string) => (await fetch(running.baseUrl + path)).status
    await until('ready', async () => (await ask('/health/ready')) === 200)
    let ended = false
    const ending = running.service.stop().then(() => {
      ended = true
    })
    while ((await ask('/health/ready')) !== 503) t.false(ended)
    t.is(await ask('/health/live'), 200)
    const statuses = new Set<number>()
    // The drain is 2 s long, so several requests fit even on a slow machine.
    for (let sent = 0; sent < 20; sent += 1) {
      const status = await ask('/.well-known/openid-configuration').catch(() => null)
      if (status === null) break
      statuses.add(status)
      await sleep(10)
    }
    t.deepEqual([...statuses], [200])
    await ending
    await t.throwsAsync(ask('/health/live'))
  },
)
