/** Own service: it is behind PgBouncer. */
/** The service behind PgBouncer in transaction mode, with the settings of docs/guides/operations/database.md. */
import type { ExecutionContext } from 'ava'
import { silentLogger } from '../../../runtime/kernel/log.js'
import { StartRefused } from '../../../runtime/process/startup.js'
import { openDatabase } from '../../../storage/platform/database.js'
import { testWithProgram } from '../../support/service/programs.js'
import {
  type Answer,
  bootstrap,
  callerOf,
  clientToken,
  demand,
} from '../../support/agents/journey.js'
import { bootstrapped, signIn } from '../../support/identity/person.js'
import { openBrowser } from '../../support/pages/browser.js'
import { type FreshDatabase, freshDatabase, sameUrls } from '../../support/storage/database.js'
import { type PgBouncer, pgBouncer } from '../../support/storage/pgbouncer.js'
import { ownService } from '../../support/service/own-service.js'
import { freePort, type TestServiceOptions } from '../../support/service.js'
import { until } from '../../support/service/watch.js'

const TOKENS = 40
/** What a pooler in session mode is often given, so that it accepts the connections of any client. */
const DROPS_LIMITS =
  'ignore_startup_parameters = statement_timeout, idle_in_transaction_session_timeout'

const pooled = ({ url }: PgBouncer, { url: direct }: FreshDatabase) => ({
  DATABASE_URL: url,
  SVC_DATABASE__PREPARED_STATEMENTS: 'unnamed',
  SVC_DATABASE__LISTENER_URL: direct,
  SVC_DATABASE__MIGRATION_URL: direct,
})

async function poolerOf(t: ExecutionContext, settings: readonly string[] = []) {
  const db = await freshDatabase(t)
  const pooler = await pgBouncer(db.url, await freePort(), settings)
  t.teardown(() => pooler.stop())
  return { db, pooler }
}

async function serviceOf(t: ExecutionContext, options: TestServiceOptions) {
  const running = await ownService(options)
  t.teardown(() => running.end())
  return running
}

testWithProgram(
  'pgbouncer',
  'behind a transaction pooler people sign in, tokens are issued concurrently and revoked',
  async (t) => {
    const { db, pooler } = await poolerOf(t)
    const running = await serviceOf(t, { environment: pooled(pooler, db) })
    const http = callerOf(running.baseUrl)

    const person = await bootstrapped(running)
    const browser = openBrowser(running)
    const account = await browser.follow(await signIn(browser, person))
    t.true(account.html.includes(person.email))

    const space = await bootstrap(http)
    const answers = await Promise.all(
      Array.from({ length: TOKENS }, () => clientToken(http, space)),
    )
    t.deepEqual(
      answers.filter(({ status }) => status !== 200).map(({ status, text }) => [status, text]),
      [],
    )
    const tokens = answers.map(({ body }) => String(body['access_token']))
    t.is(new Set(tokens).size, TOKENS)

    const basic = Buffer.from(`${space.clientId}:${space.clientSecret}`).toString('base64')
    const headers = { authorization: `Basic ${basic}` }
    const asked = (path: string, token: string): Promise<Answer> =>
      http.form(path, { token }, headers)
    const isActive = async (token: string) =>
      demand(await asked('/oauth/introspect', token), 200).body['active']
    const [revoked = '', kept = ''] = tokens
    t.is(await isActive(revoked), true)
    demand(await asked('/oauth/revoke', revoked), 200)
    await until('the token is refused', async () => !(await isActive(revoked)))
    t.is(await isActive(kept), true)
  },
)

async function openPooled(t: ExecutionContext, pooler: PgBouncer, { settings }: FreshDatabase) {
  const database = await openDatabase({
    settings: {
      ...settings,
      prepared_statements: 'unnamed',
      statement_timeout_secs: 1,
      idle_in_transaction_timeout_secs: 7,
    },
    urls: sameUrls(pooler.url),
    plane: 'all',
    log: silentLogger,
  })
  t.teardown(() => database.close())
  return database
}

testWithProgram('pgbouncer', 'time limits are in force in each transaction', async (t) => {
  const { pooler, db } = await poolerOf(t)
  const database = await openPooled(t, pooler, db)
  const limits = {
    name: 'limits',
    text: `select current_setting('statement_timeout') as statement,
             current_setting('idle_in_transaction_session_timeout') as idle`,
  }
  const own = [{ statement: '1s', idle: '7s' }]
  const tenant = '018f0000-0000-7000-8000-00000000000a'
  t.deepEqual((await database.single(limits)).rows, own)
  t.deepEqual(await database.tenant(tenant, async (tx) => (await tx.query(limits)).rows), own)
  t.deepEqual((await database.together(tenant, [limits]))[0]?.rows, own)
  const background = await database.system(async (tx) => (await tx.query(limits)).rows, {
    pool: 'background',
  })
  t.deepEqual(background, [{ statement: '1min', idle: '7s' }])
  await t.throwsAsync(database.single({ name: 'slow', text: 'select pg_sleep(5)' }), {
    name: 'DatabaseUnavailable',
  })
})

testWithProgram('pgbouncer', 'a pooler that drops the time limits is refused', async (t) => {
  const { pooler } = await poolerOf(t, ['pool_mode = session', DROPS_LIMITS])
  const environment = { DATABASE_URL: pooler.url }
  const error = await t.throwsAsync(ownService({ environment }), { instanceOf: StartRefused })
  t.regex(
    error?.message ?? '',
    /statement_timeout and idle_in_transaction_session_timeout have no effect/,
  )
  t.regex(error?.message ?? '', /prepared_statements/)
  t.false(error?.message.includes('svc_test:'), 'no password')
})
