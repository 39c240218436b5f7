/** Own service: it kills its database. */
/**
 * The primary of a PostgreSQL cluster is killed under load. One service reaches the database through PgBouncer and HAProxy,
 * another one through HAProxy alone. TEST_LONG runs the failovers. The short form checks the files of deploy/database.
 */
import { execFile } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import test from 'ava'
import { Client } from 'pg'
import { runMigrations } from '../../../migrations/main.js'
import { silentLogger } from '../../../runtime/kernel/log.js'
import { openDatabase } from '../../../storage/platform/database.js'
import { DatabaseUnavailable, DatabaseUnreachable } from '../../../storage/platform/unavailable.js'
import {
  bootstrap,
  type Caller,
  callerOf,
  clientToken,
  demand,
  type Workspace,
} from '../../support/agents/journey.js'
import { testWithProgram } from '../../support/service/programs.js'
import { until } from '../../support/service/watch.js'
import { sameUrls, testPoolSettings } from '../../support/storage/database.js'
import {
  type LocalCluster,
  localCluster,
  missingPrograms,
} from '../../support/storage/local-cluster.js'
import { ownService } from '../../support/service/own-service.js'
import type { TestService } from '../../support/service.js'
import { IS_LONG } from '../../support/runs.js'

const FILES = fileURLToPath(new URL('../../../../deploy/database/', import.meta.url))
const LOAD_MS = 5_000
/** Other processes refuse a revoked token after at most one second. */
const REVOKED_MS = 1_000

testWithProgram('haproxy', 'the files of deploy/database are valid', async (t, haproxy) => {
  const folder = mkdtempSync(join(tmpdir(), 'svc-cluster-files-'))
  t.teardown(() => rmSync(folder, { recursive: true, force: true }))
  let port = 15_400
  const text = readFileSync(join(FILES, 'haproxy.cfg'), 'utf8')
  const file = join(folder, 'haproxy.cfg')
  writeFileSync(
    file,
    text.replaceAll(/[A-Z]+_PORT(_\d)?/g, () => String((port += 1))),
  )
  await t.notThrowsAsync(promisify(execFile)(haproxy, ['-c', '-f', file]))
  await t.notThrowsAsync(promisify(execFile)('bash', ['-n', join(FILES, 'local-cluster.sh')]))
})

const missing = missingPrograms()
if (IS_LONG && missing.length > 0)
  test.skip(`failover (skipped: ${missing.join(', ')} not installed)`, () => undefined)
else if (IS_LONG) {
  let cluster: LocalCluster
  const services: TestService[] = []
  test.before(async () => {
    cluster = await localCluster()
    const { primary, pooler } = cluster.urls
    await runMigrations({ url: primary, log: silentLogger })
    const direct = { SVC_DATABASE__LISTENER_URL: primary, SVC_DATABASE__MIGRATION_URL: primary }
    const environment = { DATABASE_URL: pooler, SVC_DATABASE__PREPARED_STATEMENTS: 'unnamed' }
    services.push(await ownService({ environment: { ...direct, ...environment } }))
    const peerOf = services[0]
    services.push(await ownService({ peerOf, environment: { DATABASE_URL: primary } }))
  })
  test.after.always(async () => {
    for (const service of services.toReversed()) await service.end()
    await cluster?.stop()
  })

  test.serial(
    'a standby is not used, and a commit that only the primary has is not acknowledged',
    async (t) => {
      // The cluster begins with node1 as its primary.
      const standby = 'node2'
      const open = (url: string, settings = {}) =>
        openDatabase({
          settings: { ...testPoolSettings, ...settings },
          urls: sameUrls(url),
          plane: 'all',
          log: silentLogger,
        })
      const one = { name: 'one', text: 'select 1 as one' }
      const direct = await open(cluster.urls[standby])
      t.teardown(() => direct.close())
      const refused = await t.throwsAsync(direct.single(one), { instanceOf: DatabaseUnreachable })
      t.regex(String(refused?.cause), /standby/)
      const pooled = await open(cluster.urls[standby], { prepared_statements: 'unnamed' })
      t.teardown(() => pooled.close())
      for (const run of [
        () => pooled.single(one),
        () => pooled.system((tx) => tx.query(one)),
        () => pooled.together(null, [one]),
      ]) {
        await t.throwsAsync(run(), { instanceOf: DatabaseUnavailable })
      }

      const writer = await open(cluster.urls.primary)
      t.teardown(() => writer.close())
      const knife = new Client({ connectionString: cluster.urls.primary })
      await knife.connect()
      t.teardown(() => knife.end())
      const write = () =>
        writer.single({
          name: 'write',
          text: `insert into locks (key) values ($1)`,
          values: [randomUUID()],
        })
      await t.notThrowsAsync(write())
      await cluster.act('freeze', 'node2')
      await cluster.act('freeze', 'node3')
      try {
        const writing = t.throwsAsync(write(), { instanceOf: DatabaseUnavailable })
        await until('the wait for a standby is cancelled', async () => {
          const { rowCount } = await knife.query(
            `select pg_cancel_backend(pid) from pg_stat_activity
           where wait_event = 'SyncRep' and application_name = 'svc plane'
             and query like 'insert into locks%'`,
          )
          return rowCount === 1
        })
        t.regex(String((await writing)?.cause), /^CommitNotReplicated/)
      } finally {
        await cluster.act('thaw', 'node2')
        await cluster.act('thaw', 'node3')
      }
      await until('commits are replicated again', () =>
        write().then(
          () => true,
          () => false,
        ),
      )
    },
  )

  for (const action of ['kill', 'crash'] as const)
    test.serial(`${action} -9 of the primary under load`, async (t) => {
      t.timeout(300_000)
      const load = await startLoad()
      await sleep(LOAD_MS)
      const primary = await cluster.primary()
      await cluster.act(action, primary)
      const killedMs = performance.now()
      await until('a request fails', async () => load.failedMs() > killedMs)
      await until('every service writes again', async () =>
        load.writers.every(({ wroteMs }) => wroteMs > load.failedMs()),
      )
      const recovered = Math.max(...load.writers.map(({ outageMs }) => outageMs))
      await sleep(LOAD_MS)
      await load.stop()
      t.not(await cluster.primary(), primary)

      const statuses = Object.fromEntries(load.statuses)
      const kept = load.writers.flatMap(({ kept }) => kept)
      const revoked = load.revoked
      t.log(
        `${action}: writes again after ${(recovered / 1000).toFixed(1)} s, ${kept.length} writes and ` +
          `${revoked.length} revocations acknowledged, answers ${JSON.stringify(statuses)}`,
      )
      const others = Object.keys(statuses).filter(
        (status) => !['200', '201', '503'].includes(status),
      )
      t.deepEqual(others, [])
      t.true(kept.length > 0)
      t.true(revoked.length > 0)
      await load.demandKept(t.is)
      for (const http of load.https)
        for (const token of revoked)
          t.is(demand(await load.introspect(http, token), 200).body['active'], false)
      if (action === 'kill') await cluster.act('join', primary)
    })

  /** Writers, and clients that revoke what they get, on every service. */
  async function startLoad() {
    const https = services.map(({ baseUrl }) => callerOf(baseUrl))
    const space = await bootstrap(https[0]!)
    const over = new AbortController()
    const statuses = new Map<number, number>()
    const revoked: string[] = []
    let failedMs = 0
    const seen = <A extends { readonly status: number }>(answer: A): A => {
      statuses.set(answer.status, (statuses.get(answer.status) ?? 0) + 1)
      if (answer.status === 503) failedMs = performance.now()
      return answer
    }
    const basic = Buffer.from(`${space.clientId}:${space.clientSecret}`).toString('base64')
    const asClient = (http: Caller, path: string, token: string) =>
      http.form(path, { token }, { authorization: `Basic ${basic}` })
    const introspect = (http: Caller, token: string) => asClient(http, '/oauth/introspect', token)

    const writers = https.map(() => ({ kept: [] as string[], wroteMs: 0, outageMs: 0 }))
    const writing = async (http: Caller, writer: (typeof writers)[number]) => {
      while (!over.signal.aborted) {
        const key = randomUUID()
        const beganMs = performance.now()
        let answer = seen(await create(http, space, key))
        while (answer.status === 503 && !over.signal.aborted) {
          await sleep(50)
          answer = seen(await create(http, space, key))
        }
        if (answer.status !== 201) continue
        writer.kept.push(key)
        writer.wroteMs = performance.now()
        writer.outageMs = Math.max(writer.outageMs, writer.wroteMs - beganMs)
        await sleep(20)
      }
    }
    const revoking = async (http: Caller) => {
      while (!over.signal.aborted) {
        const issued = seen(await clientToken(http, space))
        await sleep(20)
        if (issued.status !== 200) continue
        const token = String(issued.body['access_token'])
        if (seen(await asClient(http, '/oauth/revoke', token)).status !== 200) continue
        revoked.push(token)
        await sleep(REVOKED_MS)
        for (const other of https) {
          const answer = seen(await introspect(other, token))
          if (answer.status === 200 && answer.body['active'] !== false)
            throw new Error('a revoked token is active')
        }
      }
    }
    const running = https.flatMap((http, at) => [
      writing(http, writers[at]!),
      revoking(http),
      revoking(http),
    ])
    return {
      https,
      statuses,
      revoked,
      writers,
      introspect,
      failedMs: () => failedMs,
      async stop() {
        over.abort()
        await Promise.all(running)
      },
      /** Each acknowledged application exists once. */
      async demandKept(is: (count: number | undefined, one: 1) => unknown) {
        const client = new Client({ connectionString: cluster.urls.primary })
        await client.connect()
        await client.query(`select set_config('svc.scope', 'system', false)`)
        const { rows } = await client.query<{ name: string; count: number }>(
          `select name, count(*)::int as count from applications where tenant_id = $1 group by name`,
          [space.tenantId],
        )
        await client.end()
        const counts = new Map(rows.map(({ name, count }) => [name, count]))
        for (const name of writers.flatMap(({ kept }) => kept)) is(counts.get(name), 1)
      },
    }
  }

  const create = (http: Caller, { accessToken }: Workspace, key: string) =>
    http.post(
      '/api/v1/applications',
      { name: key, redirect_uris: ['https://app.example/cb'] },
      { authorization: `Bearer ${accessToken}`, 'idempotency-key': key },
    )
}
