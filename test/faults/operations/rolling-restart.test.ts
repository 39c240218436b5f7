/**
 * All processes are replaced one by one under load, and no request fails (docs/guides/operations/several-processes.md).
 * Two processes behind nginx and behind HAProxy. With TEST_LONG two of each plane behind nginx, three times over.
 */
import test from 'ava'
import { bootstrap, callerOf } from '../../support/agents/journey.js'
import { startFleet } from '../../support/fleet/fleet.js'
import { startLoad } from '../../support/fleet/load.js'
import { PROXIES } from '../../support/fleet/proxy.js'
import { program } from '../../support/service/programs.js'
import { trust } from '../../support/service/trust.js'
import { until } from '../../support/service/watch.js'

const LONG = process.env['TEST_LONG'] !== undefined
const ROUNDS = LONG ? 3 : 1
const WORKERS = LONG ? 8 : 3
const PACE_MS = LONG ? 5 : 20
const DRAIN_SECS = 2
const ANSWERED_WITHIN_MS = 60_000

for (const through of PROXIES) {
  const run = program(through) === undefined ? test.skip : test
  run(`behind ${through} a rolling restart under load fails no request`, async (t) => {
    t.timeout(LONG ? 900_000 : 180_000)
    const fleet = await startFleet({
      through,
      planes: LONG && through === 'nginx' ? 'each' : 'all',
      environment: { SVC_SERVER__DRAIN_SECS: String(DRAIN_SECS) },
    })
    t.teardown(() => fleet.end())
    trust(fleet.ca)
    const space = await bootstrap(callerOf(fleet.baseUrl))
    const load = startLoad({ ...fleet, space, workers: WORKERS, paceMs: PACE_MS })
    const someAnswers = async () => {
      const before = load.answered()
      await until('answers', ANSWERED_WITHIN_MS, () => load.answered() > before + 20 * WORKERS)
    }
    await someAnswers()
    for (let round = 0; round < ROUNDS; round += 1) {
      for (const index of fleet.processes.keys()) {
        t.is(await fleet.restart(index), 0, fleet.processes[index]!.name)
        await someAnswers()
      }
    }
    const { answered, failures, created } = await load.stop()
    t.deepEqual(failures, [])
    const rows = await fleet.db.database.system((tx) =>
      tx.query<{ id: string }>({
        name: 'created_applications',
        text: 'select id from applications where id = any($1)',
        values: [created],
      }),
    )
    t.is(rows.rows.length, created.length, 'every acknowledged application')
    t.log(`${answered} requests, ${created.length} applications`)
  })
}
