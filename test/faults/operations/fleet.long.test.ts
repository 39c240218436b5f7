/**
 * Several processes behind a proxy, under load (docs/guides/operations/several-processes.md). A rolling restart of two
 * processes behind nginx fails no request. With TEST_LONG: two of each plane three times over, two behind HAProxy, the
 * upgrade from the last release, dependencies that go away, and half an hour of load.
 */
import { mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import test, { type ExecutionContext } from 'ava'
import { readSchemaState, runMigrations } from '../../../migrations/main.js'
import { silentLogger } from '../../../runtime/kernel/log.js'
import { bootstrap, callerOf, demand, login } from '../../support/agents/journey.js'
import { type Fleet, type FleetOptions, startFleet } from '../../support/fleet/fleet.js'
import { heapKib } from '../../support/fleet/heap-report.js'
import type { FleetProcess } from '../../support/fleet/process.js'
import { proofFor } from '../../support/identity/proof.js'
import { lastRelease } from '../../support/fleet/last-release.js'
import { type Load, type LoadReport, startLoad } from '../../support/fleet/load.js'
import { nextBuild } from '../../support/fleet/next-build.js'
import { PROXIES } from '../../support/fleet/proxy.js'
import { program } from '../../support/service/programs.js'
import { trust } from '../../support/service/trust.js'
import { isReady, until } from '../../support/service/watch.js'
import { emptyDatabase } from '../../support/storage/database.js'
import { LATER } from '../../support/storage/later-migrations.js'
import { ownPostgres } from '../../support/storage/outage.js'
import { IS_LONG } from '../../support/runs.js'

const ROUNDS = IS_LONG ? 3 : 1
const WORKERS = IS_LONG ? 8 : 3
const PACE_MS = IS_LONG ? 5 : 20
/** The pause of each worker of the soak, which may run on a busy machine. */
const SOAK_PACE_MS = Number(process.env['TEST_SOAK_PACE_MS'] ?? 20)
const DRAIN_SECS = 2
const SOAK_MINS = Number(process.env['TEST_SOAK_MINS'] ?? 30)
const SOAK_SETTLED_MINS = 5
const GROWTH_MAX = 1.05
/** Access tokens live for 5 minutes. */
const RENEWED_MS = 120_000

interface Stage {
  readonly fleet: Fleet
  readonly load: Load
  /** Waits until the load gets answers again. */
  flows(): Promise<void>
  /** Ends the load. Every acknowledged application is in the database. */
  report(): Promise<LoadReport>
}

async function underLoad(
  t: ExecutionContext,
  options: FleetOptions,
  paceMs = PACE_MS,
): Promise<Stage> {
  const environment = { SVC_SERVER__DRAIN_SECS: String(DRAIN_SECS), ...options.environment }
  const fleet = await startFleet({ ...options, environment })
  t.teardown(() => fleet.end())
  trust(fleet.ca)
  const space = await bootstrap(callerOf(fleet.baseUrl))
  let token = space.accessToken
  const renew = async () => {
    const { body } = demand(await login(callerOf(fleet.baseUrl), space), 200)
    token = String(body['access_token'])
  }
  const renewing = setInterval(() => void renew().catch(() => undefined), RENEWED_MS)
  t.teardown(() => clearInterval(renewing))
  const load = startLoad({ ...fleet, space, workers: WORKERS, paceMs, token: () => token })
  // A test that fails would not end otherwise.
  t.teardown(async () => void (await load.stop()))
  const flows = async () => {
    const before = load.answered()
    await until('answers', () => load.answered() > before + 20 * WORKERS)
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
      await renew()
      const authorization = `Bearer ${token}`
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

for (const through of IS_LONG ? PROXIES : (['nginx'] as const)) {
  const run = program(through) === undefined ? test.skip : test.serial
  run(`behind ${through} a rolling restart under load fails no request`, async (t) => {
    t.timeout(IS_LONG ? 900_000 : 240_000)
    const planes = IS_LONG && through === 'nginx' ? 'each' : 'all'
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

if (IS_LONG) {
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
    const { files, verdict } = await readSchemaState({ url: db.url, log: silentLogger })
    const added = verdict.tag === 'behind' ? verdict.missing : []
    t.true(added.length > 0)
    for (const { name } of added) {
      const only = new Set(files.map((file) => file.name).filter((one) => one <= name))
      t.deepEqual(await runMigrations({ url: db.url, log: silentLogger, only }), [name])
      await flows()
    }
    t.is(await fleet.restart(0, { tree: undefined }), 0)
    await flows()
    await sleep(5_000)
    t.is(await fleet.restart(1, { tree: undefined }), 0)
    await flows()
    t.deepEqual((await report()).failures, [])
    t.log(`from ${release.version} over ${added.length} migrations`)
  })

  test.serial('an upgrade under load and back again fails no request', async (t) => {
    t.timeout(900_000)
    const next = nextBuild()
    t.teardown(() => next.remove())
    const { fleet, flows, report } = await underLoad(t, { through: 'haproxy' })
    t.regex(next.migrate(fleet.db.url), new RegExp(`Applied: ${LATER}`))
    for (const tree of [next.tree, undefined])
      for (const index of fleet.processes.keys()) {
        await flows()
        t.is(await fleet.restart(index, { tree }), 0)
      }
    await flows()
    t.regex(fleet.processes[0]!.output(), /newer than this build/)
    t.deepEqual((await report()).failures, [])
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
      // Two of three primaries of a cluster still answer until the circuit opens.
      await until('a refusal', async () => {
        const status = await proven()
        t.true(status === 503 || status === 200)
        return status === 503
      })
      await sleep(10_000)
      await stage.flows()
      await servers.restart?.()
      await until('proofs are accepted', async () => (await proven()) === 200)
      await stage.flows()
      t.deepEqual((await stage.report()).failures, [])
    })
  }

  test.serial('without the kms the load goes on', async (t) => {
    t.timeout(900_000)
    const stage = await underLoad(t, { through: 'haproxy' })
    const hasReady = () => {
      // A new connection, which the proxy refuses when it has no ready process.
      trust(stage.fleet.ca)
      return isReady(callerOf(stage.fleet.baseUrl)).catch(() => false)
    }
    await stage.fleet.kms.interrupt()
    await sleep(10_000)
    t.true(await hasReady())
    await stage.flows()
    await stage.fleet.kms.resume()
    t.true(await hasReady())
    await stage.flows()
    t.deepEqual((await stage.report()).failures, [])
  })

  test.serial(`${SOAK_MINS} minutes of load: memory grows by less than 5 %`, async (t) => {
    t.timeout((SOAK_MINS + 10) * 60_000)
    const folder = mkdtempSync(join(tmpdir(), 'svc-soak-'))
    t.teardown(() => rmSync(folder, { recursive: true, force: true }))
    const heaps = join(folder, 'heaps')
    const preload = new URL('../../support/fleet/heap-report.js', import.meta.url).href
    const environment = { NODE_OPTIONS: `--import=${preload}`, HEAP_REPORT: heaps }
    const stage = await underLoad(t, { through: 'haproxy', environment }, SOAK_PACE_MS)
    const memory = () => lowest(stage.fleet.processes, heaps)
    await sleep(Math.min(SOAK_SETTLED_MINS, SOAK_MINS / 2) * 60_000)
    const settled = await memory()
    for (let minute = SOAK_SETTLED_MINS; minute < SOAK_MINS; minute += SOAK_SETTLED_MINS) {
      await sleep((SOAK_SETTLED_MINS - 1) * 60_000)
      t.log(JSON.stringify(await memory()))
    }
    const last = await memory()
    const { failures } = await stage.report()
    for (const [index, { residentKib, heapKib }] of last.entries()) {
      const before = settled[index]!
      t.log(
        `${stage.fleet.processes[index]!.name}: ${before.residentKib} to ${residentKib} KiB resident, ` +
          `${before.heapKib} to ${heapKib} KiB of heap`,
      )
      t.true(residentKib < before.residentKib * GROWTH_MAX)
      t.true(heapKib < before.heapKib * GROWTH_MAX)
    }
    t.deepEqual(failures, [])
  })
}

interface Memory {
  readonly residentKib: number
  readonly heapKib: number
}

/** The lowest of a minute for each process, so that garbage does not count. */
async function lowest(processes: readonly FleetProcess[], heaps: string): Promise<Memory[]> {
  const from = statSync(heaps).size
  const found = processes.map(({ pid }) => residentKib(pid))
  for (let second = 0; second < 60; second += 1) {
    await sleep(1_000)
    for (const [index, { pid }] of processes.entries())
      found[index] = Math.min(residentKib(pid), found[index]!)
  }
  return processes.map(({ pid }, index) => ({
    residentKib: found[index]!,
    heapKib: heapKib(heaps, pid, from),
  }))
}

function residentKib(pid: number): number {
  return Number(/^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))![1])
}
