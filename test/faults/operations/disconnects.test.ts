/** Own service: it cuts its connections to the database. */
/**
 * Connections that are cut in the middle of statements, and statements that the server aborts: the
 * response is 503, never 500.
 */
import { randomUUID } from 'node:crypto'
import test from 'ava'
import { Client } from 'pg'
import { DatabaseUnavailable } from '../../../storage/platform/unavailable.js'
import { apiOf } from '../../support/api.js'
import { ciba, CIBA_GRANT } from '../../support/oauth/ciba.js'
import { relyingParty } from '../../support/oauth/relying-party.js'
import { freshDatabase } from '../../support/storage/database.js'
import { ownService } from '../../support/service/own-service.js'
import { IS_LONG } from '../../support/runs.js'

const CUT = `select pg_terminate_backend(pid) from pg_stat_activity
  where datname = current_database() and pid <> pg_backend_pid()
    and application_name in ('svc plane', 'svc identity')
  order by state = 'idle', random() limit 2`
const CUTS = IS_LONG ? 60 : 15
const ROUNDS_MIN = IS_LONG ? 10 : 3

test('requests whose connection is cut are answered with 503', async (t) => {
  t.timeout(180_000)
  const running = await ownService({
    environment: { SVC_OIDC__DYNAMIC_REGISTRATION_ENABLED: 'true' },
  })
  t.teardown(() => running.end())
  const api = apiOf(running)
  t.teardown(() => api.close())
  const workspace = await api.workspace()
  const party = await relyingParty(running, workspace, {
    grantTypes: [CIBA_GRANT, 'client_credentials'],
  })
  const { start, post, poll } = ciba(running, party)
  const { token } = workspace
  const client = { client_id: party.clientId, client_secret: party.secret }
  const keyed = () => ({ 'idempotency-key': randomUUID() })
  const begun = await start({ login_hint: 'unknown@example.org' })
  const sends: readonly (() => Promise<{ status: number; body: object }>)[] = [
    () => api.post('/api/v1/oauth/registration-tokens', token, {}, keyed()),
    () => api.post('/api/v1/applications', token, { name: 'A', redirect_uris: [] }, keyed()),
    () => api.get('/api/v1/applications', token),
    () => api.get('/api/v1/agents/me', token),
    () => post('/oauth/token', { ...client, grant_type: 'client_credentials' }),
    () => post('/oauth/introspect', { ...client, token }),
    () => api.form('/oauth/revoke', { ...client, token: 'none' }),
    () => start({ login_hint: 'unknown@example.org' }),
    () => poll(begun.body['auth_req_id']),
  ]
  const knife = new Client({ connectionString: running.db.url, application_name: 'test' })
  await knife.connect()
  t.teardown(() => knife.end())

  const seen = new Map<number, number>()
  const defects: string[] = []
  const knifeAt = { work: true }
  const asking = sends.flatMap((send, n) =>
    [0, 1].map(async () => {
      for (let round = 0; knifeAt.work || round < ROUNDS_MIN; round += 1) {
        const { status, body } = await send()
        seen.set(status, (seen.get(status) ?? 0) + 1)
        if (status >= 500 && status !== 503) defects.push(`${n} ${status} ${JSON.stringify(body)}`)
      }
    }),
  )
  for (let n = 0; n < CUTS; n += 1) {
    await knife.query(CUT)
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
  knifeAt.work = false
  await Promise.all(asking)
  t.log([...seen])
  t.deepEqual(defects, [])
  t.true((seen.get(503) ?? 0) > 0, 'some were cut')
  t.true((seen.get(200) ?? 0) > 0, 'the service lives')
})

test('a statement that the server aborts is reported as an unavailable dependency', async (t) => {
  const { database, drop } = await freshDatabase()
  t.teardown(drop)
  const statement = (text: string) => ({ name: text.slice(0, 40), text, values: [] })
  const late = database.system(async (tx) => {
    await tx.query(statement("set local statement_timeout = '20ms'"))
    await tx.query(statement('select pg_sleep(30)'))
  })
  await t.throwsAsync(late, { instanceOf: DatabaseUnavailable })

  const wrong = database.system((tx) => tx.query(statement('select 1/0')))
  const error = await t.throwsAsync(wrong)
  t.false(error instanceof DatabaseUnavailable, 'a fault of ours stays one')
})

test('the victim of a deadlock runs again', async (t) => {
  const { database, drop } = await freshDatabase()
  t.teardown(drop)
  const lock = (key: number) => ({
    name: 'test.lock',
    text: 'select pg_advisory_xact_lock($1)',
    values: [key],
  })
  // Two transactions take two locks in opposite order, each with its first lock held.
  let runs = 0
  let bothHold = () => {}
  const both = new Promise<void>((resolve) => (bothHold = resolve))
  const take = (first: number, second: number) =>
    database.system(async (tx) => {
      await tx.query(lock(first))
      runs += 1
      if (runs === 2) bothHold()
      await both
      await tx.query(lock(second))
    })
  await Promise.all([take(1, 2), take(2, 1)])
  t.is(runs, 3)
})
