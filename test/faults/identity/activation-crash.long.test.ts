/** Own service: it kills a process of its deployment. */
/**
 * A process is killed (SIGKILL) at each step of an activation, the commit included. Either everything happened or
 * nothing, and repeating the request reveals which. No acknowledged change is lost, no old secret stays valid with a
 * new one, and none is lost permanently.
 */
import test, { type ExecutionContext } from 'ava'
import { Client } from 'pg'
import { request } from 'undici'
import { WORKSPACE_APPLICATION_SCOPES } from '../../../actors/domain/scopes.js'
import { svcBeside } from '../../flows/vault/command.js'
import { type Answer, apiOf, type Json } from '../../support/api.js'
import { openBrowser } from '../../support/pages/browser.js'
import { ownToken } from '../../support/agents/delegation.js'
import { sql } from '../../support/storage/sql.js'
import { type Owned, owned } from '../../support/identity/owner.js'
import { signIn } from '../../support/identity/person.js'
import { ownService } from '../../support/service/own-service.js'
import { freePort } from '../../support/service.js'

const PATH = '/api/v1/tenant/activate'
// Managing an application's secret requires every scope the application may have.
const SCOPE = [...WORKSPACE_APPLICATION_SCOPES, 'tenant:manage'].join(' ')
const LOCK = 4711
/** The advisory lock in this database: other test files run on the same server. */
const OURS = `locktype = 'advisory' and objid = $1
  and database = (select oid from pg_database where datname = current_database())`

/**
 * Where the process dies: the statement before which it is blocked, and whether the transaction is committed by then.
 */
const STEPS: Readonly<Record<string, { readonly trigger: string; readonly committed: boolean }>> = {
  'as the tenant changes its kind': {
    trigger: `before update on tenants for each row when (new.environment = 'production')`,
    committed: false,
  },
  'as a fixture user is removed': {
    trigger: `before update on tenant_users for each row when (new.status = 'removed')`,
    committed: false,
  },
  'as a new secret is written': {
    trigger: 'before insert on application_secrets for each row',
    committed: false,
  },
  'as the old tokens are revoked': {
    trigger: 'before insert on revoked_tokens for each row',
    committed: false,
  },
  'between the commit and the response': {
    trigger: `after update on tenants deferrable initially deferred
              for each row when (new.environment = 'production')`,
    committed: true,
  },
}

const running = await ownService({ transport: 'plain_http' })
const api = apiOf(running)
test.after.always(() => api.end())

const basic = (id: string, secret: string) => ({
  authorization: `Basic ${Buffer.from(`${id}:${secret}`).toString('base64')}`,
})
const clientToken = (id: string, secret: string) =>
  api.form('/oauth/token', { grant_type: 'client_credentials' }, basic(id, secret))

/** Every resource is in the state of the same side of the step. */
async function isWhole(t: ExecutionContext, { made }: Owned, production: boolean): Promise<void> {
  const [tenant] = await sql<{ environment: string }>(running)`
    select environment from tenants where id = ${made.tenantId}`
  t.is(tenant?.environment, production ? 'production' : 'sandbox')
  const fixtures = await sql(running)`
    select id from tenant_users where tenant_id = ${made.tenantId} and fixture
    and status = 'active'`
  t.is(fixtures.length, production ? 0 : 1)
  t.is((await clientToken(made.clientId, made.clientSecret)).status, production ? 401 : 200)
  const browser = openBrowser(running)
  t.is((await signIn(browser, made)).status, production ? 200 : 303, 'the fixture user')
  await browser.close()
  const told = await sql(running)`
    select id from audit_events where tenant_id = ${made.tenantId} and type = 'tenant.activated'`
  t.is(told.length, production ? 1 : 0)
}

async function until(what: string, holds: () => Promise<boolean>): Promise<void> {
  const endMs = Date.now() + 60_000
  while (!(await holds())) if (Date.now() > endMs) throw new Error(`timed out waiting for: ${what}`)
}

for (const [step, { trigger, committed }] of Object.entries(STEPS)) {
  test.serial(`killed ${step}`, async (t) => {
    t.timeout(300_000)
    const owner = await owned(api, { scope: SCOPE })
    t.teardown(() => owner.person.browser.close())
    const { made, token } = owner
    t.is((await clientToken(made.clientId, made.clientSecret)).status, 200)

    const holder = new Client({ connectionString: running.db.url })
    await holder.connect()
    t.teardown(() => holder.end())
    const run = (text: string) => sql(running.db.database, text, [])
    await run(`create function test_hold() returns trigger language plpgsql as $$
      begin perform pg_advisory_xact_lock(${LOCK}); return new; end $$`)
    const kind = trigger.includes('deferrable') ? 'constraint trigger' : 'trigger'
    const drop = async () => {
      await run('drop function if exists test_hold() cascade')
    }
    t.teardown(drop)
    const port = String(await freePort())
    const doomed = await svcBeside(t, running, {
      SVC_SERVER__PORT: port,
      SVC_SERVER__ENDPOINT_THROTTLE__ENABLED: 'false',
    })

    await holder.query('select pg_advisory_lock($1)', [LOCK])
    await run(`create ${kind} test_hold ${trigger} execute function test_hold()`)
    const headers = {
      authorization: `Bearer ${token}`,
      host: new URL(running.issuer).host,
      'idempotency-key': 'activate-once',
    }
    const died = t.throwsAsync(
      request(`http://127.0.0.1:${port}${PATH}`, { method: 'POST', headers }),
    )
    await until('waiting at the step', async () => {
      const { rows } = await holder.query(`select from pg_locks where ${OURS} and not granted`, [
        LOCK,
      ])
      return rows.length > 0
    })
    doomed.child.kill('SIGKILL')
    await doomed.ended()
    await died
    await holder.query('select pg_advisory_unlock($1)', [LOCK])
    // The transaction of the killed process ends: rolled back, or committed if it had requested the commit.
    await until('the tenant is unlocked', async () => {
      const { rows } = await holder.query(`select from pg_locks where ${OURS}`, [LOCK])
      return rows.length === 0
    })
    await drop()
    await until('seen by the other process', async () => {
      const { status } = await clientToken(made.clientId, made.clientSecret)
      return status === (committed ? 401 : 200)
    })
    await isWhole(t, owner, committed)

    // The same request at another process.
    const again: Answer = await api.post(PATH, token, undefined, {
      'idempotency-key': 'activate-once',
    })
    t.is(again.status, 200, JSON.stringify(again.body))
    t.is(again.headers['idempotency-replayed'], committed ? 'true' : undefined)
    const [rotated] = again.body['rotated_applications'] as Json[]
    t.is(rotated?.['client_id'], made.clientId)
    t.is((again.body['retired_fixture_users'] as string[]).length, 1)
    t.is('client_secret' in (rotated ?? {}), !committed)
    await until('the old secret ended', async () => {
      return (await clientToken(made.clientId, made.clientSecret)).status === 401
    })
    await isWhole(t, owner, true)
    let secret = rotated?.['client_secret']
    if (committed) {
      // The response was lost with the process: a user of the tenant rotates the secret.
      const path = `/api/v1/applications/${made.clientId}/rotate-secret`
      const other = await api.post(path, token, {})
      t.is(other.status, 200, JSON.stringify(other.body))
      secret = other.body['client_secret']
    }
    t.is((await clientToken(made.clientId, String(secret))).status, 200)
    // Without the idempotency key it is a conflict: already done.
    t.is((await api.post(PATH, token)).status, 409)
    const fresh = await ownToken(api, made, owner.person, SCOPE)
    t.is((await api.get('/api/v1/tenant/settings', fresh)).status, 200)
  })
}
