/** Own service: it fills the disk of its database. */
/**
 * The disk of the database is full under load (docs/guides/operations/faults.md#a-full-disk). Without the right to mount a
 * small disk, triggers raise the server's error for a full disk, and the server does not end.
 */
import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import test, { type ExecutionContext } from 'ava'
import { decodeJwt } from 'jose'
import {
  type Answer,
  bootstrap,
  type Caller,
  callerOf,
  clientToken,
  demand,
  type Workspace,
} from '../../support/agents/journey.js'
import { type OwnPostgres, ownPostgres } from '../../support/storage/outage.js'
import { ownService } from '../../support/service/own-service.js'
import type { TestService } from '../../support/service.js'
import { mayMount, type SmallDisk, smallDisk } from '../../support/storage/small-disk.js'
import { isReady, metric, METRICS_TOKEN, until, watchLive } from '../../support/service/watch.js'
import { IS_LONG } from '../../support/runs.js'

/** The schema and the log of its migrations take 110 MiB. */
const DISK_MEBIBYTES = 192
const REFUSALS = 20
/** With TEST_LONG, longer than the minute after which a failing background loop makes the process not ready. */
const FULL_MS = IS_LONG ? 90_000 : 0

const MAY_MOUNT = mayMount()

let disk: SmallDisk | undefined
let postgres: OwnPostgres
let running: TestService
let http: Caller
let space: Workspace

test.before(async () => {
  if (MAY_MOUNT) disk = smallDisk(DISK_MEBIBYTES)
  postgres = await ownPostgres(disk ? { within: disk.folder, durable: true } : {})
  running = await ownService({
    environment: {
      DATABASE_URL: postgres.url,
      SVC_SERVER__METRICS_BEARER_TOKEN: METRICS_TOKEN,
    },
  })
  http = callerOf(running.baseUrl)
  space = await bootstrap(http)
})
test.after.always(async () => {
  await running?.end()
  disk?.free()
  await postgres?.end()
  disk?.end()
})

/** The tables of the writes below. */
const FULL_TABLES = ['unnumbered_events', 'audit_events', 'applications']

async function fill(): Promise<void> {
  if (disk) return disk.fill()
  await postgres.ask(`create or replace function no_space() returns trigger language plpgsql as
    $$ begin raise 'could not extend file: No space left on device' using errcode = 'disk_full'; end $$`)
  for (const table of FULL_TABLES)
    await postgres.ask(
      `create trigger no_space before insert on ${table} execute function no_space()`,
    )
}

async function free(): Promise<void> {
  if (disk) return disk.free()
  for (const table of FULL_TABLES) await postgres.ask(`drop trigger no_space on ${table}`)
}

const bearer = () => ({ authorization: `Bearer ${space.accessToken}` })

/** Tokens and creations with idempotency keys, until it is stopped. A refused creation is repeated with its key. */
function startLoad(t: ExecutionContext) {
  const over = new AbortController()
  const statuses = new Map<number, number>()
  const tokens: string[] = []
  const created = new Map<string, string>()
  let refused = 0
  function seen(what: string, answer: Answer): Answer {
    statuses.set(answer.status, (statuses.get(answer.status) ?? 0) + 1)
    if (answer.status < 400) return answer
    refused += 1
    const { status, headers, body } = answer
    t.is(status, 503, `${what}: ${JSON.stringify(body)}`)
    t.is(headers.get('content-type'), 'application/problem+json', what)
    t.regex(headers.get('retry-after') ?? '', /^\d+$/, what)
    t.like(body, { status: 503, error: 'service_unavailable' })
    t.is(body['request_id'], headers.get('x-request-id'), what)
    t.notRegex(answer.text, /space|disk|PANIC|extend|pg_wal/i, what)
    return answer
  }
  async function issuing() {
    while (!over.signal.aborted) {
      const answer = seen('a token', await clientToken(http, space))
      if (answer.status === 200) tokens.push(String(answer.body['access_token']))
      else await sleep(10)
    }
  }
  async function creating() {
    for (let key = randomUUID(); !over.signal.aborted; await sleep(10)) {
      const answer = seen('a creation', await create(key))
      if (answer.status !== 201) continue
      created.set(key, String(answer.body['id']))
      key = randomUUID()
    }
  }
  const load = [issuing(), issuing(), creating()]
  return {
    statuses,
    tokens,
    created,
    refused: () => refused,
    async stop() {
      over.abort()
      await Promise.all(load)
    },
  }
}

const create = (key: string) =>
  http.post(
    '/api/v1/applications',
    { name: key, redirect_uris: ['https://app.example/cb'] },
    { ...bearer(), 'idempotency-key': key },
  )

const isActive = async (token: string) => {
  const basic = Buffer.from(`${space.clientId}:${space.clientSecret}`).toString('base64')
  const headers = { authorization: `Basic ${basic}` }
  return demand(await http.form('/oauth/introspect', { token }, headers), 200).body['active']
}

/** What only reads. */
async function demandReads(token: string): Promise<void> {
  for (const path of ['/.well-known/jwks.json', '/.well-known/openid-configuration'])
    demand(await http.call(path), 200)
  demand(await http.call('/api/v1/applications', { headers: bearer() }), 200)
  demand(await http.call('/api/v1/agents/me', { headers: bearer() }), 200)
  if (!(await isActive(token))) throw new Error('an acknowledged token is not active')
}

/** Each acknowledged token has one event, and each acknowledged creation one application. */
async function demandKept(t: ExecutionContext, { tokens, created }: ReturnType<typeof startLoad>) {
  const ids = tokens.map((token) => String(decodeJwt(token).jti))
  await until('all events are numbered', async () => {
    const waiting = await postgres.ask('select from unnumbered_events')
    return waiting.length === 0
  })
  const events = await postgres.ask<{ id: string; count: number }>(
    `select resource->>'id' as id, count(*)::int as count from audit_events
     where tenant_id = '${space.tenantId}' and type = 'auth.token.issued' group by 1`,
  )
  const counts = new Map(events.map(({ id, count }) => [id, count]))
  t.deepEqual(
    ids.filter((id) => counts.get(id) !== 1),
    [],
  )
  const rows = await postgres.ask<{ name: string; count: number }>(
    `select name, count(*)::int as count from applications
     where tenant_id = '${space.tenantId}' and name <> 'Journey' group by name`,
  )
  const named = new Map(rows.map(({ name, count }) => [name, count]))
  for (const [key, id] of created) {
    t.is(named.get(key), 1)
    const again = demand(await create(key), 201)
    t.is(again.headers.get('idempotency-replayed'), 'true')
    t.is(again.body['id'], id)
  }
  t.true(await isActive(tokens[0]!))
}

test.serial('while no table can grow, writes are refused and reads work', async (t) => {
  const pulse = watchLive(http)
  const load = startLoad(t)
  t.teardown(load.stop)
  t.teardown(async () => void (await pulse.stop()))
  await until('tokens are issued', () => load.tokens.length > 50)
  // The rest of a segment lasts for the refusals below, so that the log does not end first.
  await postgres.ask('select pg_switch_wal()')
  const before = load.created.size
  await until('the next segment is in use', () => load.created.size > before)
  await fill()
  const from = load.refused()
  await until('writes are refused', () => load.refused() > from + REFUSALS)
  await sleep(FULL_MS)
  await demandReads(load.tokens[0]!)
  await until('ready', () => isReady(http))

  const refusedMs = performance.now()
  await free()
  await recovered(t, load, refusedMs)
  await load.stop()
  await demandKept(t, load)
  t.is((await pulse.stop()).bad, 0, 'the process was live throughout')
  await demandNoDefect(t)
})

const ENDS = 'while the log cannot grow, everything is refused, and no commit is lost'
const testMounted = (body: (t: ExecutionContext) => Promise<void>) =>
  MAY_MOUNT
    ? test.serial(ENDS, body)
    : test.skip(`${ENDS} (skipped: without the right to mount)`, () => undefined)

testMounted(async (t) => {
  const pulse = watchLive(http)
  const load = startLoad(t)
  t.teardown(load.stop)
  t.teardown(async () => void (await pulse.stop()))
  const session = await postgres.open()
  await until('tokens are issued', () => load.tokens.length > 20)
  await fill()
  // Each round ends a segment of the log, until there is no next one.
  const fatal = await t.throwsAsync(
    until('the server ends', async () => {
      await session.query(`select pg_logical_emit_message(false, 'test', 'x'), pg_switch_wal()`)
      return false
    }),
  )
  t.notRegex(String(fatal), /not within/)
  await until('not ready', async () => !(await isReady(http)))
  const from = load.refused()
  await until('writes are refused', () => load.refused() > from + REFUSALS)
  for (const path of ['/.well-known/jwks.json', '/.well-known/openid-configuration'])
    demand(await http.call(path), 200)

  const refusedMs = performance.now()
  await free()
  await until('ready again', () => isReady(http))
  await recovered(t, load, refusedMs)
  await load.stop()
  await demandKept(t, load)
  t.is((await pulse.stop()).bad, 0, 'the process was live throughout')
  await demandNoDefect(t)
})

async function recovered(t: ExecutionContext, load: ReturnType<typeof startLoad>, fromMs: number) {
  const [tokens, created] = [load.tokens.length, load.created.size]
  await until(
    'writes are accepted again',
    () => load.tokens.length > tokens + 20 && load.created.size > created,
  )
  const secs = ((performance.now() - fromMs) / 1000).toFixed(1)
  t.log(
    `writes again after ${secs} s, answers ${JSON.stringify(Object.fromEntries(load.statuses))}`,
  )
}

async function demandNoDefect(t: ExecutionContext): Promise<void> {
  t.is(await metric(http, 'svc_actor_restarts_total'), 0)
  t.is(await metric(http, 'svc_actor_unavailable_total', { reason: 'failed' }), 0)
}
