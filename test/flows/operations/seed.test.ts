/** `svc seed`: the rows are consistent, work over HTTP, and are never written in production or without a kms. */
import { readFile, stat, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import test from 'ava'
import { Command } from 'commander'
import { openKeyTools } from '../../../runtime/cli/key-tools.js'
import { notForSeeding, seedCommand } from '../../../runtime/cli/seed/seed.js'
import { apiOf, type Json } from '../../support/api.js'
import { COMMERCE } from '../../support/commerce/shop.js'
import { sql } from '../../support/storage/sql.js'
import { signIn } from '../../support/identity/person.js'
import { verifyOffline } from '../../support/operations/audit.js'
import { openBrowser } from '../../support/pages/browser.js'
import { TEST_DEFAULTS, testService } from '../../support/service.js'

const TENANTS = 12
const USERS = 20

const running = await testService({ environment: COMMERCE })
const api = apiOf(running)

/** Runs `svc seed` on the database of the service, with other settings where given. */
async function svcSeed(words: readonly string[], environment: Record<string, string> = {}) {
  const said = { out: '', err: '', code: 0 }
  const program = new Command('svc')
  const all = { ...TEST_DEFAULTS, DATABASE_URL: running.db.url, ...running.kms.environment }
  seedCommand(program, {
    open: () =>
      openKeyTools({ environment: { ...all, ...environment }, cwd: '/', refuse: notForSeeding }),
    out: (text) => {
      said.out += text
    },
    err: (text) => {
      said.err += text
    },
    exitWith: (code) => {
      said.code = code
    },
  })
  await program.parseAsync(['seed', ...words], { from: 'user' })
  return said
}

const credentials = join(tmpdir(), `svc-seed-${process.pid}.jsonl`)
test.after.always(() => rm(credentials, { force: true }))
const SIZE = ['--tenants', String(TENANTS), '--users-per-tenant', String(USERS), '--seed', 'first']

type Access = {
  readonly tenant_id: string
  readonly tenant_slug: string
  readonly email: string
  readonly password: string
  readonly client_id: string
  readonly client_secret: string
}

test.serial('svc seed writes tenants that can be used', async (t) => {
  const { out, err, code } = await svcSeed([...SIZE, '--credentials', credentials, '--json'])
  t.is(code, 0, err)
  const made = JSON.parse(out) as Json
  t.is(made['tenants'], TENANTS)
  t.true(Number(made['bytes']) > 0)
  const mode = (await stat(credentials)).mode & 0o777
  t.is(mode, 0o600)
  const all = (await readFile(credentials, 'utf8')).trimEnd().split('\n')
  const each = all.map((line) => JSON.parse(line) as Access)
  t.is(each.length, TENANTS)
  for (const access of [each[0]!, each[TENANTS - 1]!]) {
    const browser = openBrowser(running)
    const { tenant_slug: tenantSlug, email, password } = access
    const page = await browser.follow(await signIn(browser, { tenantSlug, email, password }))
    t.is(page.status, 200)
    t.true(page.html.includes(email))

    const basic = Buffer.from(`${access.client_id}:${access.client_secret}`).toString('base64')
    const issued = await api.form(
      '/oauth/token',
      { grant_type: 'client_credentials' },
      { authorization: `Basic ${basic}` },
    )
    t.is(issued.status, 200)
    const token = String(issued.body['access_token'])
    const users = new Set<unknown>()
    let path: string | undefined = '/api/v1/tenant-users?limit=7'
    while (path !== undefined) {
      const { rows, next } = await api.list(path, token)
      for (const { id } of rows) users.add(id)
      path = next
    }
    t.is(users.size, USERS)
    const verified = await api.get('/api/v1/audit-events/verify', token)
    t.is(verified.body['valid'], true)
    t.true(Number(verified.body['events']) > USERS / 2)
    const exported = await api.get('/api/v1/audit-events/export', token)
    const lines = String(exported.body['text']).split('\n').slice(0, -1)
    t.is((await verifyOffline(lines)).code, 0)
  }
})

test.serial('the rows are consistent', async (t) => {
  const one = async (text: string) =>
    (
      await sql<{ count: number }>(
        running.db.database,
        `select count(*)::int as count from ${text}`,
        [],
      )
    )[0]!.count
  t.is(await one(`tenants where slug like 'seed-%'`), TENANTS)
  // The service numbers its own events a moment after they are written.
  while ((await one('unnumbered_events')) > 0) await sleep(20)
  t.is(
    await one(
      'all_events e where not exists (select from audit_events a where a.tenant_id = e.tenant_id and a.id = e.id)',
    ),
    0,
  )
  t.is(
    await one(`event_sequences s join tenants t on t.id = s.tenant_id where t.slug like 'seed-%' and s.last <>
      (select count(*) from all_events e where e.tenant_id = s.tenant_id)`),
    0,
    'events have no gap',
  )
  t.true((await one('ledger_entries')) >= 10)
  t.is(
    await one(
      '(select entry_id from ledger_lines group by entry_id having sum(amount_minor) <> 0) x',
    ),
    0,
  )
  t.is(
    await one(`ledger_accounts a where balance_minor <> (select sum(amount_minor) from ledger_lines l
      where (l.tenant_id, l.currency, l.rail, l.account) = (a.tenant_id, a.currency, a.rail, a.account))`),
    0,
    'balances are the sums of the lines',
  )
  t.is(await one('webhooks where secret is null or active'), 0)
  t.true((await one('webhooks')) >= 2)
  t.is(
    await one(`sessions s where subject_type = 'human' and not exists
      (select from browser_sessions b where b.tenant_id = s.tenant_id and b.id = s.id)`),
    0,
  )
})

test.serial('the same seed adds nothing, and continues where a run ended', async (t) => {
  const again = await svcSeed([...SIZE, '--json'])
  t.is(again.code, 0, again.err)
  t.like(JSON.parse(again.out) as Json, { tenants: 0, rows: 0, events: 0 })
  const size = ['--tenants', String(TENANTS + 2), '--users-per-tenant', String(USERS)]
  const more = await svcSeed([...size, '--seed', 'first', '--json'])
  t.is((JSON.parse(more.out) as Json)['tenants'], 2)
})

test.serial('another seed adds other tenants', async (t) => {
  const size = ['--tenants', '2', '--users-per-tenant', '3']
  const { out } = await svcSeed([...size, '--json'])
  const made = JSON.parse(out) as Json
  t.is(made['tenants'], 2)
  t.regex(String(made['seed']), /^[0-9a-f]{32}$/)
})

test.serial('production and a configuration without a kms are refused', async (t) => {
  const without = Object.fromEntries(
    Object.keys(running.kms.environment).map((name) => [name, undefined]),
  ) as unknown as Record<string, string>
  const unsealed = await svcSeed(SIZE, without)
  t.is(unsealed.code, 1)
  t.regex(unsealed.err, /configure \[kms\] first/)
  const { settings } = await openTools()
  t.regex(
    notForSeeding({ ...settings, security: { ...settings.security, production: true } }) ?? '',
    /production/,
  )
  t.is(notForSeeding(settings), undefined)
})

async function openTools() {
  const tools = await openKeyTools({
    environment: { ...TEST_DEFAULTS, DATABASE_URL: running.db.url, ...running.kms.environment },
    cwd: '/',
  })
  await tools.close()
  return tools
}
