/**
 * One tenant uses up its share of a shared resource, and another tenant is still served.
 * `bench/noisy/neighbour.ts` measures the effect on the other tenant.
 */
import test, { type ExecutionContext } from 'ava'
import { Client } from 'pg'
import { runningPerShare } from '../../../runtime/kernel/mailbox.js'
import { applicationsActor } from '../../../actors/oauth/clients/registered/actor.js'
import { type Answer, type Api, apiOf } from '../../support/api.js'
import { openBrowser } from '../../support/pages/browser.js'
import { sql } from '../../support/storage/sql.js'
import { openMailServer } from '../../support/operations/mail.js'
import { bootstrapped, signIn } from '../../support/identity/person.js'
import { type TestService, testService } from '../../support/service.js'
import { METRICS_TOKEN, until } from '../../support/service/watch.js'

async function started(t: ExecutionContext, environment: Readonly<Record<string, string>>) {
  const running = await testService({
    environment: { SVC_SERVER__METRICS_BEARER_TOKEN: METRICS_TOKEN, ...environment },
  })
  const api = apiOf(running)
  t.teardown(() => api.end())
  return { running, api }
}

/** The value of one sample. 0 when it does not exist yet. */
async function sample({ baseUrl }: TestService, name: string, label: string): Promise<number> {
  const headers = { authorization: `Bearer ${METRICS_TOKEN}` }
  const text = await (await fetch(`${baseUrl}/metrics`, { headers })).text()
  return Number(new RegExp(`^${name}\\{[^}]*${label}[^}]*\\} (\\S+)`, 'm').exec(text)?.[1] ?? 0)
}

test.serial('a tenant signs in while sign-ins of another one fill its places', async (t) => {
  t.timeout(180_000)
  const { running } = await started(t, {
    // Long enough that the places are full for most of the test, one at a time.
    SVC_AUTH__ARGON2_MEMORY_KIB: '32768',
    SVC_AUTH__ARGON2_ITERATIONS: '3',
    SVC_AUTH__ARGON2_MAX_CONCURRENT: '1',
    SVC_AUTH__ARGON2_WAITING_PER_TENANT_MAX: '3',
    SVC_AUTH__PASSWORD_VERIFY_IP_MAX_ATTEMPTS: '1000000',
  })
  const [hostile, honest] = [await bootstrapped(running), await bootstrapped(running)]
  const over = new AbortController()
  let refused = 0
  // Unknown users cost as much as known ones, and their locks delay no other user.
  const flood = Array.from({ length: 8 }, async (_, worker) => {
    const browser = openBrowser(running)
    for (let turn = 0; !over.signal.aborted; turn += 1) {
      const email = `none-${worker}-${turn}@harbour.test`
      const { status } = await signIn(browser, { ...hostile, email })
      if (status === 503) refused += 1
    }
    await browser.close()
  })
  const browser = openBrowser(running)
  try {
    for (let times = 0; times < 2; times += 1) {
      const before = refused
      // The other tenant has its full share, before and during this sign-in.
      await until('sign-ins of the other tenant are refused', () => refused > before)
      const { status, location } = await signIn(browser, honest)
      t.is(status, 303)
      t.is(location, '/auth/account')
      browser.cookies.clear()
    }
  } finally {
    over.abort()
    await Promise.all(flood)
  }
  t.true((await sample(running, 'svc_share_refused_total', 'resource="passwords"')) >= refused)
})

test.serial(
  'a tenant is served while calls of another one fill a mailbox and hold their connections',
  async (t) => {
    t.timeout(180_000)
    const { running, api } = await started(t, {
      SVC_DATABASE__MAX_CONNECTIONS: '4',
      // Calls that wait for a connection wait until the test releases them.
      SVC_DATABASE__CONNECT_TIMEOUT_SECS: '120',
      SVC_DATABASE__STATEMENT_TIMEOUT_SECS: '120',
      SVC_SERVER__REQUEST_TIMEOUT_SECS: '120',
    })
    const [hostile, honest] = [await api.workspace(), await api.workspace()]
    const superuser = new Client({ connectionString: running.db.superuserUrl })
    await superuser.connect()
    t.teardown(() => superuser.end())
    // Every application that the hostile tenant creates waits for this row.
    await superuser.query('begin')
    await superuser.query('select 1 from tenants where id = $1 for update', [hostile.tenantId])

    const { capacity, inflightMax } = applicationsActor.mailbox
    const places = capacity + runningPerShare(inflightMax)
    const crowd = crowdOf(api, hostile.token, places + 10)
    // Each call has its place or its refusal: none is still under way to a place that gets free.
    await until('the mailbox is full', () => crowd.refused === 10)
    t.is(await sample(running, 'svc_actor_waiting', 'actor="applications"'), capacity)
    const waiting = async () => {
      const rows = await sql<{ count: number }>(running)`
        select count(*)::int as count from pg_stat_activity
        where wait_event_type = 'Lock' and datname = current_database()`
      return rows[0]?.count
    }
    await until('the tenant holds its connections', async () => (await waiting()) === 3)

    // A connection for another part of the service, read and written.
    const { tenantId } = honest
    const user = { email: 'ada@harbour.test' }
    t.is((await api.post('/api/v1/tenant-users', honest.token, user)).status, 201, tenantId)
    t.is((await api.get('/api/v1/tenant-users', honest.token)).status, 200)

    // Its mailbox is full, and still there is a place: a tenant runs in at most three quarters of
    // them.
    t.is((await api.get('/api/v1/applications', honest.token)).status, 200)
    t.is(crowd.served, 0)
    t.is(await sample(running, 'svc_actor_waiting', 'actor="applications"'), capacity)
    t.is(await waiting(), 3, 'connections of the hostile tenant, of four')

    await superuser.query('commit')
    await crowd.over
    t.is(crowd.served, places, 'every call that had a place was served in the end')
  },
)

/** Concurrent calls of one tenant, each on its own connection. */
function crowdOf(api: Api, token: string, count: number) {
  const crowd = { served: 0, refused: 0, over: Promise.resolve() }
  const clients = Array.from({ length: Math.ceil(count / 16) }, () => apiOf(api.at))
  const tell = ({ status }: Answer) => {
    if (status === 201) crowd.served += 1
    else if (status === 503) crowd.refused += 1
    else throw new Error(String(status))
  }
  const calls = Array.from({ length: count }, (_, at) => {
    const json = { name: `Crowd ${at}`, grant_types: ['client_credentials'] }
    return clients[at % clients.length]!.post('/api/v1/applications', token, json).then(tell)
  })
  crowd.over = Promise.all(calls).then(async () => {
    await Promise.all(clients.map((each) => each.close()))
  })
  return crowd
}

test.serial('a letter goes out while the queue of another tenant is full and held', async (t) => {
  t.timeout(180_000)
  let release!: () => void
  const held = new Promise<void>((resolve) => {
    release = resolve
  })
  t.teardown(() => release())
  const mail = await openMailServer({
    onMessage: (_, raw) => (/^To: .*crowd/m.test(raw) ? held : undefined),
  })
  t.teardown(() => mail.close())
  const { running, api } = await started(t, {
    ...mail.environment,
    SVC_EMAIL__QUEUE_MAX_PER_TENANT: '10',
    SVC_EMAIL__SMTP_TIMEOUT_SECS: '110',
    SVC_INVITATIONS__ENABLED: 'true',
  })
  const [hostile, honest] = [await api.workspace(), await api.workspace()]
  const invite = (token: string, email: string) =>
    api.post('/api/v1/tenant-users', token, { email })
  for (let nth = 0; nth < 13; nth += 1) {
    t.is((await invite(hostile.token, `crowd${nth}@mail.svc-tests.net`)).status, 201)
  }
  const dropped = () =>
    sql<{ tenant_id: string; error: string }>(running)`
      select tenant_id, error from outgoing_mail where status = 'dropped'`
  const rows = await dropped()
  t.is(rows.length, 3, 'the queue of the hostile tenant is full')
  for (const nth of [1, 2, 3]) {
    const email = `other${nth}@mail.svc-tests.net`
    t.is((await invite(honest.token, email)).status, 201)
    await mail.letterTo(email)
  }
  t.is(mail.received.length, 3, 'nothing of the hostile tenant has gone out')
  t.deepEqual(await dropped(), rows)
  for (const row of rows) t.deepEqual(row, { tenant_id: hostile.tenantId, error: 'queue_full' })
  release()
})
