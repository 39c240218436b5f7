/** People from a CSV file: what would happen, and what happens, by the API and in the console. */
import test from 'ava'
import { consoleOwner, openConsole, type Owner } from '../../support/identity/console.js'
import { apiOf } from '../../support/api.js'
import { sharedService } from '../../support/service.js'
import { sql } from '../../support/storage/sql.js'
import { stringifyCookie } from 'cookie'

const at = await sharedService('plain')
const api = apiOf(at)

const AS_SENT = { decode: (value: string) => value, encode: (value: string) => value }
const PATH = '/api/v1/tenant-users/import'
const send = async (token: string, csv: string, query = '', type = 'text/csv') => {
  const answer = await fetch(new URL(PATH + query, at.baseUrl), {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': type },
    body: csv,
  })
  return { status: answer.status, body: (await answer.json()) as Record<string, unknown> }
}

const FILE = `email,name,roles,team
ann@example.com,Ann,editor reader,A
not an address,Nobody,,
ANN@example.com,Ann again,,
bob@nowhere-else.org,Bob,,
eve@example.com,Eve,"no, role",
`
const OUTCOMES = [
  { line: 2, email: 'ann@example.com', outcome: 'create' },
  { line: 3, email: 'not an address', outcome: 'refused', reason: 'email' },
  { line: 4, email: 'ANN@example.com', outcome: 'exists' },
  { line: 5, email: 'bob@nowhere-else.org', outcome: 'invite' },
  { line: 6, email: 'eve@example.com', outcome: 'refused', reason: 'roles' },
]

test('a trial says what would happen and changes nothing, and the import does it', async (t) => {
  const { token, tenantId } = await api.workspace()
  const people = () => sql<{ email: string }>(at)`
    select a.email, u.status, u.roles, u.display_name from tenant_users u
    join accounts a on a.id = u.account_id
    where u.tenant_id = ${tenantId} and not u.fixture and a.email like any (array['ann@%', 'bob@%', 'eve@%'])
    order by a.email`
  const trial = await send(token, FILE, '?dry_run=true')
  t.deepEqual(trial, { status: 200, body: { dry_run: true, lines: OUTCOMES } })
  t.deepEqual(await people(), [])
  const done = await send(token, FILE)
  t.deepEqual(done, { status: 200, body: { dry_run: false, lines: OUTCOMES } })
  t.deepEqual(await people(), [
    {
      email: 'ann@example.com',
      status: 'pre_provisioned',
      roles: ['editor', 'reader'],
      display_name: 'Ann',
    },
    { email: 'bob@nowhere-else.org', status: 'invited', roles: [], display_name: 'Bob' },
  ] as never)
  const again = await send(token, FILE)
  const outcomes = (again.body['lines'] as { outcome: string }[]).map(({ outcome }) => outcome)
  t.deepEqual(outcomes, ['exists', 'refused', 'exists', 'exists', 'refused'])
})

test('what is no table of people is refused as a whole', async (t) => {
  const { token } = await api.workspace()
  for (const csv of ['', 'name\nAnn', 'email\n"', `email\n${'a@example.com\n'.repeat(1_001)}`])
    t.is((await send(token, csv)).status, 400, csv.slice(0, 20))
  t.is((await send(token, 'email\n', '', 'application/json')).status, 415)
  t.is((await send(token, 'email\n', '?dry_run=maybe')).status, 400)
})

/** Sends the form with a file as a browser does. */
async function upload({ browser }: Owner, path: string, csrf: string) {
  const form = new FormData()
  form.set('csrf_token', csrf)
  form.set('file', new Blob([FILE], { type: 'text/csv' }), 'people.csv')
  const answer = await fetch(new URL(path, at.baseUrl), {
    method: 'POST',
    redirect: 'manual',
    headers: {
      accept: 'text/html',
      cookie: stringifyCookie(Object.fromEntries(browser.cookies), AS_SENT),
      origin: new URL(at.baseUrl).origin,
    },
    body: form,
  })
  return { status: answer.status, html: await answer.text() }
}

test('the console shows what a file would do before it does it', async (t) => {
  const owner = await consoleOwner(api)
  const { browser } = owner
  const path = '/console/people/do/import'
  const form = await openConsole(browser, path)
  const { csrf_token: csrf = '' } = form.forms.find(({ action }) => action === path)!.fields
  const preview = await upload(owner, path, csrf)
  t.is(preview.status, 200, preview.html)
  t.regex(preview.html, /Nothing has happened yet/)
  t.regex(preview.html, /ann@example\.com.*data-status="create">Added immediately/s)
  t.regex(preview.html, /The address is none\./)
  t.regex(preview.html, /<form method="post" action="\/console\/people\/do\/apply">/)
  t.notRegex((await openConsole(browser, '/console/people')).html, /ann@example\.com/)
  const fields = { csrf_token: csrf, csv: FILE }
  const done = await browser.post('/console/people/do/apply', fields)
  t.is(done.status, 200, done.html)
  t.regex(done.html, /The file was imported/)
  t.regex((await openConsole(browser, '/console/people')).html, /bob@nowhere-else\.org/)
  t.is((await browser.get('/console/people/do/apply')).location, '/console/people')
})

test('chosen people are suspended after one confirmation', async (t) => {
  const { browser, token } = await consoleOwner(api)
  await send(token, FILE)
  const list = await openConsole(browser, '/console/people')
  const path = '/console/people/do/bulk'
  const { csrf_token: csrf = '' } = list.forms.find(({ action }) => action === path)!.fields
  const [, id = ''] = /name="ids" value="([0-9a-f-]{36})" aria-label="Choose: Ann"/.exec(list.html)!
  const chosen = { csrf_token: csrf, action: 'suspend', ids: id }
  const asked = await browser.post(path, chosen)
  t.regex(asked.html, /This is done for each of these people.*>Ann</s, asked.html)
  const read = async () => (await api.get(`/api/v1/tenant-users/${id}`, token)).body['status']
  t.is(await read(), 'pre_provisioned', 'nothing has happened')
  const done = await browser.post(path, { ...chosen, confirmed: '1' })
  t.regex(done.html, /data-status="success">/, done.html)
  t.is(await read(), 'suspended')
  const filtered = await openConsole(browser, '/console/people?status=suspended')
  t.regex(filtered.html, /href="\/console\/people\/do\/export\?status=suspended"/)
  const exported = await browser.get('/console/people/do/export?status=suspended')
  t.deepEqual(
    exported.html
      .trim()
      .split('\r\n')
      .map((line) => line.split(',')[0]),
    ['email', 'ann@example.com'],
  )
  const none = await browser.post(path, { csrf_token: csrf, action: 'suspend' })
  t.regex(none.html, /You have not chosen anybody/)
  t.is((await browser.post(path, { ...chosen, action: 'remove' })).status, 404)
})
