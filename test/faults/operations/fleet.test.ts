/**
 * Several processes behind a proxy, under load (docs/guides/operations/several-processes.md). A rolling restart of two
 * processes behind nginx fails no request. With TEST_LONG: two of each plane three times over, two behind HAProxy, the
 * upgrade from the last release, dependencies that go away, and half an hour of load.
 */
import { readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import test, { type ExecutionContext } from 'ava'
import { runMigrations } from '../../../migrations/main.js'
import { silentLogger } from '../../../runtime/kernel/log.js'
import { bootstrap, callerOf } from '../../support/agents/journey.js'
import { type Fleet, type FleetOptions, startFleet } from '../../support/fleet/fleet.js'
import { proofFor } from '../../support/identity/proof.js'
import { lastRelease } from '../../support/fleet/last-release.js'
import { type Load, type LoadReport, startLoad } from '../../support/fleet/load.js'
import { PROXIES } from '../../support/fleet/proxy.js'
import { program } from '../../support/service/programs.js'
import { trust } from '../../support/service/trust.js'
import { until } from '../../support/service/watch.js'
import { emptyDatabase } from '../../support/storage/database.js'
import { ownPostgres } from '../../support/storage/outage.js'

const LONG = process.env['TEST_LONG'] !== undefined
const ROUNDS = LONG ? 3 : 1
const WORKERS = LONG ? 8 : 3
const PACE_MS = LONG ? 5 : 20
const DRAIN_SECS = 2
const WITHIN_MS = 60_000
const SOAK_MINS = Number(process.env['TEST_SOAK_MINS'] ?? 30)
const SOAK_SETTLED_MINS = 5
const GROWTH_MAX = 1.05

interface Stage {
  readonly fleet: Fleet
  readonly load: Load
  /** Waits until the load gets answers again. */
  flows(): Promise<void>
  /** Ends the load. Every acknowledged application is in the database. */
  report(): Promise<LoadReport>
}

async function underLoad(t: ExecutionContext, options: FleetOptions): Promise<Stage> {
  const environment = { SVC_SERVER__DRAIN_SECS: String(DRAIN_SECS), ...options.environment }
  const fleet = await startFleet({ ...options, environment })
  t.teardown(() => fleet.end())
  trust(fleet.ca)
  const space = await bootstrap(callerOf(fleet.baseUrl))
  const load = startLoad({ ...fleet, space, workers: WORKERS, paceMs: PACE_MS })
  const flows = async () => {
    const before = load.answered()
    await until('answers', WITHIN_MS, () => load.answered() > before + 20 * WORKERS)
  }
  await flows()
  return {
    fleet,
    load,
    flows,
    async report() {
      const report = await load.stop()
      // Connections of the global client may lead to processes that have ended.
      trust(fleet.ca)
      const authorization = `Bearer ${space.accessToken}`
      const listed = new Set<string>()
      for (let path = '/api/v1/applications?limit=100'; path !== ''; ) {
        const { text, headers } = await callerOf(fleet.baseUrl).call(path, {
          headers: { authorization },
        })
        for (const { id } of JSON.parse(text) as { id: string }[]) listed.add(id)
        const next = /<([^>]+)>; rel="next"/.exec(headers.get('link') ?? '')?.[1] ?? ''
        path = next === '' ? '' : next.slice(fleet.baseUrl.length)
      }
      const lost = report.created.filter((id) => !listed.has(id))
      t.deepEqual(lost, [], 'acknowledged applications')
      const refused = `${report.failures.length} refused`
      t.log(`${report.answered} answered, ${report.created.length} created, ${refused}`)
      return report
    },
  }
}

for (const through of LONG ? PROXIES : (['nginx'] as const)) {
  const run = program(through) === undefined ? test.skip : test.serial
  run(`behind ${through} a rolling restart under load fails no request`, async (t) => {
    t.timeout(LONG ? 900_000 : 240_000)
    const planes = LONG && through === 'nginx' ? 'each' : 'all'
    const { fleet, flows, report } = await underLoad(t, { through, planes })
    for (let round = 0; round < ROUNDS; round += 1) {
      for (const index of fleet.processes.keys()) {
        t.is(await fleet.restart(index), 0, fleet.processes[index]!.name)
        await flows()
      }
    }
    t.deepEqual((await report()).failures, [])
  })
}

/** Only 503 with Retry-After counts as a refusal. */
function onlyRefused(t: ExecutionContext, { failures, refusals }: LoadReport): void {
  t.is(
    failures.length,
    refusals,
    failures.find((failure) => !failure.includes(': 503 ')),
  )
}

if (LONG) {
  test.serial('an upgrade from the last release under load fails no request', async (t) => {
    t.timeout(1_800_000)
    const release = lastRelease()
    t.teardown(() => release.remove())
    const db = await emptyDatabase(t)
    release.run(['migrate'], { DATABASE_URL: db.url })
    const { tree, adapt } = release
    const { fleet, flows, report } = await underLoad(t, {
      through: 'haproxy',
      db,
      tree,
      adapt: (variables, of) => (of === tree ? adapt(variables) : variables),
    })
    const added = await runMigrations({ url: db.url, log: silentLogger })
    await flows()
    t.is(await fleet.restart(0, { tree: undefined }), 0)
    await flows()
    await sleep(5_000)
    t.is(await fleet.restart(1, { tree: undefined }), 0)
    await flows()
    t.deepEqual((await report()).failures, [])
    t.log(`from ${release.version} over ${added.length} migrations`)
  })

  test.serial('without the database for 30 s requests get 503, and nothing is lost', async (t) => {
    t.timeout(900_000)
    const postgres = await ownPostgres()
    t.teardown(() => postgres.end())
    const stage = await underLoad(t, { through: 'haproxy', databaseUrl: postgres.url })
    await postgres.stop()
    await sleep(30_000)
    await postgres.start()
    await stage.flows()
    const report = await stage.report()
    t.true(report.refusals > 0)
    onlyRefused(t, report)
  })

  for (const coordination of ['redis', 'memcached', 'redis-cluster', 'redis-sentinel'] as const) {
    test.serial(`without ${coordination} the load goes on`, async (t) => {
      t.timeout(900_000)
      const stage = await underLoad(t, { through: 'haproxy', coordination })
      const { baseUrl, coordination: servers } = stage.fleet
      const caller = callerOf(baseUrl)
      const space = await bootstrap(caller)
      const authorization = `Basic ${btoa(`${space.clientId}:${space.clientSecret}`)}`
      // The id of the proof is used up in the backend.
      const proven = async () => {
        const dpop = await proofFor('POST', `${baseUrl}/oauth/token`)
        const grant = { grant_type: 'client_credentials' }
        return (await caller.form('/oauth/token', grant, { authorization, dpop })).status
      }
      t.is(await proven(), 200)
      await servers.kill!()
      // Of a cluster, two of three primaries still answer until the circuit opens.
      await until('a refusal', WITHIN_MS, async () => {
        const status = await proven()
        t.true(status === 503 || status === 200)
        return status === 503
      })
      await sleep(10_000)
      await stage.flows()
      await servers.restart?.()
      await until('proofs are accepted', WITHIN_MS, async () => (await proven()) === 200)
      await stage.flows()
      t.deepEqual((await stage.report()).failures, [])
    })
  }

  test.serial('without the kms the load goes on', async (t) => {
    t.timeout(900_000)
    const stage = await underLoad(t, { through: 'haproxy' })
    await stage.fleet.kms.interrupt()
    await sleep(10_000)
    await stage.flows()
    await stage.fleet.kms.resume()
    await stage.flows()
    t.deepEqual((await stage.report()).failures, [])
  })

  test.serial(`${SOAK_MINS} minutes of load: memory grows by less than 5 %`, async (t) => {
    t.timeout((SOAK_MINS + 10) * 60_000)
    const stage = await underLoad(t, { through: 'haproxy' })
    const memory = () => stage.fleet.processes.map(({ pid }) => residentKib(pid))
    await sleep(Math.min(SOAK_SETTLED_MINS, SOAK_MINS / 2) * 60_000)
    const settled = await lowest(memory)
    await sleep(Math.max(SOAK_MINS - SOAK_SETTLED_MINS, SOAK_MINS / 2) * 60_000)
    const last = await lowest(memory)
    t.deepEqual((await stage.report()).failures, [])
    for (const [index, kib] of last.entries()) {
      t.log(`${stage.fleet.processes[index]!.name}: ${settled[index]} to ${kib} KiB`)
      t.true(kib < settled[index]! * GROWTH_MAX)
    }
  })
}

/** The lowest of a minute, so that garbage does not count. */
async function lowest(memory: () => readonly number[]): Promise<number[]> {
  let found = [...memory()]
  for (let second = 0; second < 60; second += 1) {
    await sleep(1_000)
    found = memory().map((kib, index) => Math.min(kib, found[index]!))
  }
  return found
}

function residentKib(pid: number): number {
  return Number(/^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))![1])
}
