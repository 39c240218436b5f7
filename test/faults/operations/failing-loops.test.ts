/** Own service: it holds the clock, reads the log and fails its loops. */
/** A background loop fails while everything else works: readiness reports it. */
import test from 'ava'
import { type Clock, systemClock } from '../../../runtime/kernel/clock.js'
import { FAILING_MS_MAX } from '../../../runtime/kernel/loops.js'
import { sql } from '../../support/storage/sql.js'
import { COMMERCE } from '../../support/commerce/shop.js'
import { ownService } from '../../support/service/own-service.js'

const METRICS_TOKEN = 'a token for the metrics of failing loops'

/** A table that each loop needs, made unavailable by renaming it. The long form fails a second one. */
const LOOPS: Readonly<Record<string, string>> = {
  'billing: rounds': 'payouts',
  ...(process.env['TEST_LONG'] ? { 'notify: queue': 'outgoing_mail' } : {}),
}

test('a loop that fails for a minute makes the process not ready, and is named', async (t) => {
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
  const { database } = running.db
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
  const until = async (what: string, fits: () => Promise<boolean>) => {
    for (let turn = 0; turn < 300; turn += 1) {
      if (await fits()) return
      await new Promise((resolve) => setTimeout(resolve, 100))
    }
    t.fail(what)
  }
  await until('the service is ready', async () => (await status()) === 200)
  // Loops on the main thread use its clock, and their rounds are a second apart.
  for (const [each, table] of Object.entries(LOOPS)) {
    const [actor = '', loop = ''] = each.split(': ')
    await sql(database, `alter table ${table} rename to ${table}_away`)
    const before = await failures(actor, loop)
    await until(`${each} fails`, async () => (await failures(actor, loop)) >= before + 2)
    t.is(await status(), 200, `${each}: a second is no minute`)
    aheadMs += FAILING_MS_MAX
    await until(`${each} is noticed`, async () => (await status()) === 503)
    t.true((await shown()).includes(`svc_loop_failing{actor="${actor}",loop="${loop}"} 1`))
    await until(`${each} is in the log`, async () =>
      lines.some((line) => line.includes('not ready') && line.includes(`${each} fails`)),
    )
    t.is((await fetch(`${running.baseUrl}/health/live`)).status, 200)
    await sql(database, `alter table ${table}_away rename to ${table}`)
    await until(`${each} works again`, async () => (await status()) === 200)
  }
  // The loop of a thread counts its rounds as well. The thread's clock measures how long they fail.
  await sql(database, 'alter table webhook_lanes rename to webhook_lanes_away')
  await until(
    'the webhook worker fails',
    async () => (await failures('deliveries', 'deliveries')) >= 2,
  )
  await sql(database, 'alter table webhook_lanes_away rename to webhook_lanes')
})
