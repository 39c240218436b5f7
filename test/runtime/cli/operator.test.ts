/** Own service: it appoints and dismisses operators of the deployment. */
import { chmodSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import test from 'ava'
import { Command } from 'commander'
import { openDatabaseTools } from '../../../runtime/cli/key-tools.js'
import { operatorCommand } from '../../../runtime/cli/operator.js'
import { apiOf } from '../../support/api.js'
import { emptyDatabase } from '../../support/storage/database.js'
import { sql } from '../../support/storage/sql.js'
import { ownService } from '../../support/service/own-service.js'

const running = await ownService()
const api = apiOf(running)
test.after.always(() => api.end())

/** Runs `svc operator ...` against the database of the running service. */
const run = (...words: string[]) => runWith({ DATABASE_URL: running.db.url }, ...words)

async function runWith(database: Record<string, string>, ...words: string[]) {
  const outcome = { out: '', err: '', code: 0 }
  const program = new Command().exitOverride()
  operatorCommand(program, {
    open: () =>
      openDatabaseTools({
        environment: { ...database, SVC_OIDC__ISSUER_URL: running.baseUrl },
        cwd: '/',
      }),
    out: (text) => (outcome.out += text),
    err: (text) => (outcome.err += text),
    exitWith: (code) => (outcome.code = code),
  })
  await program.parseAsync(['node', 'svc', 'operator', ...words])
  return outcome
}

/** The hidden CSRF token of a form. */
const csrfOf = (html: string) => /name="csrf_token" value="([^"]+)"/.exec(html)?.[1] ?? ''

test('the printed link makes one person the owner, once', async (t) => {
  const { out, code } = await run('create', '--organization', 'Acme Operators', '--json')
  t.is(code, 0)
  const made = JSON.parse(out) as Record<string, string>
  t.is(made['organization_slug'], 'acme-operators')
  t.true(String(made['url']).startsWith(`${running.baseUrl}/auth/invites/`))
  const path = String(made['url']).slice(running.baseUrl.length)

  const page = await fetch(running.baseUrl + path)
  t.is(page.status, 200)
  const cookie = page.headers
    .getSetCookie()
    .map((one) => one.split(';')[0])
    .join('; ')
  const accept = () => ({
    method: 'POST',
    redirect: 'manual' as const,
    headers: { cookie, origin: running.baseUrl },
    body: new URLSearchParams({
      csrf_token: csrfOf(html),
      name: 'First Operator',
      email: 'first@example.com',
      password: 'a long enough password',
    }),
  })
  const html = await page.text()
  const accepted = await fetch(running.baseUrl + path, accept())
  t.is(accepted.status, 303, await accepted.text())
  const roles = await sql<{ role: string }>(running)`
    select m.role from organization_members m join accounts a on a.id = m.member_id
    where m.organization_id = ${made['organization_id']} and a.email = 'first@example.com'`
  t.deepEqual(roles, [{ role: 'owner' }])
  t.is((await fetch(running.baseUrl + path)).status, 410)
  const audit = await sql<{ type: string }>(running)`
    select type from audit_events where tenant_id = ${made['tenant_id']} order by sequence limit 1`
  t.deepEqual(audit, [{ type: 'org.created' }])
})

test('text output has the link on its own line', async (t) => {
  const { out } = await run('create')
  t.regex(out, new RegExp(`^ {2}${running.baseUrl}/auth/invites/[\\w-]{43}$`, 'm'))
  t.regex(out, /Organization operators/)
})

test('a link to the control plane appoints the person who accepts it', async (t) => {
  const { out, code } = await run('create', '--control-plane', '--json')
  t.is(code, 0)
  const made = JSON.parse(out) as { url: string; scopes: string[] }
  t.deepEqual(made.scopes, ['signing_keys:manage', 'deployment:manage'])
  const page = await fetch(made.url)
  const cookie = page.headers.getSetCookie()[0]!.split(';')[0]!
  const email = 'deployer@harbour.test'
  const accepted = await fetch(made.url, {
    method: 'POST',
    redirect: 'manual',
    headers: { cookie, origin: running.baseUrl },
    body: new URLSearchParams({
      csrf_token: csrfOf(await page.text()),
      name: 'Deployer',
      email,
      password: 'a long enough password',
    }),
  })
  t.is(accepted.status, 303, await accepted.text())
  const appointed = () =>
    sql<{ scopes: string[] }>(running)`
      select o.scopes from deployment_operators o join accounts a on a.id = o.account_id
      where a.email = ${email}`
  t.deepEqual(await appointed(), [{ scopes: made.scopes }])
  const [user] = await sql<{ roles: string[]; control_plane: boolean }>(running)`
    select u.roles, t.control_plane from tenant_users u join accounts a on a.id = u.account_id
    join tenants t on t.id = u.tenant_id where a.email = ${email}`
  t.deepEqual(user, { roles: ['member'], control_plane: true })
  const again = await fetch(made.url)
  t.is(again.status, 410)
  const dismissed = await run('dismiss', email, '--scope', 'signing_keys:manage')
  t.is(dismissed.code, 0, dismissed.err)
  t.deepEqual(await appointed(), [{ scopes: ['deployment:manage'] }])
})

test('a person is appointed by the verified address of an account only', async (t) => {
  const unknown = await run('appoint', 'absent@harbour.test', '--scope', 'deployment:manage')
  t.is(unknown.code, 1)
  t.regex(unknown.err, /no active account has this address/)
  await sql(running)`
    insert into accounts (id, email, email_key, created_at, updated_at)
    values (gen_random_uuid(), 'ann@harbour.test', 'ann@harbour.test', now(), now())`
  const unverified = await run('appoint', 'ann@harbour.test', '--scope', 'deployment:manage')
  t.is(unverified.code, 1)
  t.regex(unverified.err, /is not verified/)
  await sql(running)`update accounts set email_verified = true where email = 'ann@harbour.test'`
  const { out, code } = await run('appoint', 'ann@harbour.test', '--scope', 'deployment:manage')
  t.is(code, 0)
  t.regex(out, /may use deployment:manage in the console of the control plane/)
})

test('a name with control characters is refused', async (t) => {
  const { code, err } = await run('create', '--organization', '')
  t.is(code, 1)
  t.regex(err, /1 to 120 characters/)
})

test('it needs no earlier start of the service: it migrates the embedded database', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'svc-operator-'))
  chmodSync(folder, 0o711)
  t.teardown(() => rmSync(folder, { recursive: true, force: true }))
  const { out, err, code } = await runWith({ SVC_DATA_DIR: folder }, 'create', '--json')
  t.is(err, '')
  t.is(code, 0)
  t.is((JSON.parse(out) as Record<string, string>)['organization_slug'], 'operators')
})

test('a database without migrations is reported as such', async (t) => {
  const { url } = await emptyDatabase(t)
  const { err, code } = await runWith({ DATABASE_URL: url }, 'create')
  t.is(code, 1)
  t.regex(
    err,
    /^svc operator: the database lacks \d+ migrations, 0001_foundation to \d{4}_\w+: run the migrations/,
  )
})

test("an unreachable database is reported with the driver's reason", async (t) => {
  const { err, code } = await runWith({ DATABASE_URL: 'postgres://svc@127.0.0.1:1/svc' }, 'create')
  t.is(code, 1)
  t.regex(
    err,
    /cannot reach PostgreSQL at 127\.0\.0\.1:1, from DATABASE_URL: connect ECONNREFUSED 127\.0\.0\.1:1$/,
  )
})
