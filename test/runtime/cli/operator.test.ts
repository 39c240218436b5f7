import { chmodSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import test from 'ava'
import { Command } from 'commander'
import { openDatabaseHouse } from '../../../runtime/cli/key-tools.js'
import { operatorCommand } from '../../../runtime/cli/operator.js'
import { apiOf } from '../../support/api.js'
import { emptyDatabase } from '../../support/storage/database.js'
import { sql } from '../../support/identity/identity.js'
import { testService } from '../../support/service.js'

const running = await testService()
const api = apiOf(running)
test.after.always(async () => {
  await api.close()
  await running.end()
})

/** Runs `svc operator ...` against the database of the running service. */
const run = (...words: string[]) => runWith({ DATABASE_URL: running.db.url }, ...words)

async function runWith(database: Record<string, string>, ...words: string[]) {
  const outcome = { out: '', err: '', code: 0 }
  const program = new Command().exitOverride()
  operatorCommand(program, {
    open: () =>
      openDatabaseHouse({
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

/** The hidden token of a form against forgery. */
const csrfOf = (html: string) => /name="csrf_token" value="([^"]+)"/.exec(html)?.[1] ?? ''

test('the link that is printed makes whoever opens it the owner, once', async (t) => {
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
  const roles = await sql<{ role: string }>(
    running.db.database,
    `select m.role from organization_members m join accounts a on a.id = m.member_id
     where m.organization_id = $1 and a.email = 'first@example.com'`,
    [made['organization_id']],
  )
  t.deepEqual(roles, [{ role: 'owner' }])
  t.is((await fetch(running.baseUrl + path)).status, 410)
  const audit = await sql<{ type: string }>(
    running.db.database,
    'select type from audit_events where tenant_id = $1 order by sequence limit 1',
    [made['tenant_id']],
  )
  t.deepEqual(audit, [{ type: 'org.created' }])
})

test('in words, the link stands on a line of its own', async (t) => {
  const { out } = await run('create')
  t.regex(out, new RegExp(`^ {2}${running.baseUrl}/auth/invites/[\\w-]{43}$`, 'm'))
  t.regex(out, /Organization operators/)
})

test('a name that cannot be shown is refused', async (t) => {
  const { code, err } = await run('create', '--organization', '')
  t.is(code, 1)
  t.regex(err, /1 to 120 characters/)
})

test('it needs no start of the service before it: the embedded database is made ready', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'svc-operator-'))
  chmodSync(folder, 0o711)
  t.teardown(() => rmSync(folder, { recursive: true, force: true }))
  const { out, err, code } = await runWith({ SVC_DATA_DIR: folder }, 'create', '--json')
  t.is(err, '')
  t.is(code, 0)
  t.is((JSON.parse(out) as Record<string, string>)['organization_slug'], 'operators')
})

test('a database that was not migrated is told as that', async (t) => {
  const { url } = await emptyDatabase(t)
  const { err, code } = await runWith({ DATABASE_URL: url }, 'create')
  t.is(code, 1)
  t.regex(
    err,
    /^svc operator: the database lacks \d+ migrations, 0001_foundation to \d{4}_\w+: run the migrations/,
  )
})

test('an unreachable database is reported with the driver error', async (t) => {
  const { err, code } = await runWith({ DATABASE_URL: 'postgres://svc@127.0.0.1:1/svc' }, 'create')
  t.is(code, 1)
  t.regex(
    err,
    /cannot reach PostgreSQL at 127\.0\.0\.1:1, from DATABASE_URL: connect ECONNREFUSED 127\.0\.0\.1:1$/,
  )
})
