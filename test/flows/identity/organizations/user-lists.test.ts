/** Search and order of the list of users. docs/reference/identity.md. */
import test from 'ava'
import { apiOf, type Json, type Workspace } from '../../../support/api.js'
import { sql } from '../../../support/storage/sql.js'
import { sharedService } from '../../../support/service.js'

const USERS = '/api/v1/tenant-users'
const SORTS = ['email', 'name', 'created_at', 'last_sign_in_at'] as const
const running = await sharedService('plain')
const api = apiOf(running)
test.after.always(async () => {
  await api.close()
  await running.end()
})

/** A workspace with users of whom some share a name and a time, and some have neither. */
async function crowd(): Promise<Workspace> {
  const workspace = await api.workspace()
  const names = ['Zoë', 'ada', 'Ada', 'ADA', 'b_b', 'b%b', undefined]
  for (const [n, display_name] of names.entries()) {
    const email = `${n % 2 ? 'User' : 'user'}${n}.${workspace.tenantId}@example.com`
    const { status } = await api.post(USERS, workspace.token, { email, display_name })
    if (status !== 201) throw new Error(String(status))
  }
  await sql(
    running.db.database,
    `update tenant_users set last_login_at = to_timestamp(1700000000 + (ascii(display_name) % 3) * 0.001),
       created_at = to_timestamp(1600000000 + (length(coalesce(display_name, '')) % 2) * 0.001)
     where tenant_id = $1 and status = 'invited' and display_name is distinct from 'Zoë'`,
    [workspace.tenantId],
  )
  return workspace
}

async function pagesOf({ token }: Workspace, query: string): Promise<Json[]> {
  const found: Json[] = []
  let path: string | undefined = `${USERS}?limit=2${query}`
  while (path !== undefined) {
    const { rows, next, status } = await api.list(path, token)
    if (status !== 200) throw new Error(JSON.stringify(rows))
    found.push(...rows)
    path = next
  }
  return found
}

const keyOf = (user: Json, sort: (typeof SORTS)[number]): string => {
  const member = {
    email: 'email',
    name: 'display_name',
    created_at: 'created_at',
    last_sign_in_at: 'last_login_at',
  }[sort]
  return String(user[member] ?? '').toLowerCase()
}
const byBytes = (a: string, b: string) => Buffer.compare(Buffer.from(a), Buffer.from(b))

test('in every order each user is on one page, also with equal and missing keys', async (t) => {
  const workspace = await crowd()
  const all = (await api.list(USERS, workspace.token)).rows.map(({ id }) => id)
  t.is(all.length, 8, 'with the fixture user')
  for (const name of SORTS)
    for (const sign of ['', '-']) {
      const found = await pagesOf(workspace, `&sort=${sign}${name}`)
      const why = sign + name
      t.deepEqual(found.map(({ id }) => id).toSorted(), all.toSorted(), why)
      const keys = found.map((user) => keyOf(user, name))
      const ordered = keys.toSorted(byBytes)
      t.deepEqual(keys, sign === '' ? ordered : ordered.toReversed(), why)
    }
})

test('q begins a name or an address in any case, and its signs are no patterns', async (t) => {
  const workspace = await crowd()
  const found = async (query: string) =>
    (await pagesOf(workspace, query)).map(({ display_name: name }) => name)
  t.deepEqual(await found('&q=aDa&sort=name'), await found('&q=ADA&sort=name'))
  t.is((await found('&q=ada')).length, 3)
  t.is((await found('&q=da')).length, 0)
  t.deepEqual(await found('&q=b_'), ['b_b'])
  t.deepEqual(await found('&q=b%25'), ['b%b'])
  t.is((await found('&q=uSeR&sort=-email')).length, 7)
  t.deepEqual(await found('&q=zO%C3%AB'), ['Zoë'])
  t.deepEqual(await found(`&q=${encodeURIComponent("' or true --")}`), [])
})

test('role and status narrow every order', async (t) => {
  const workspace = await crowd()
  const [first] = (await api.list(`${USERS}?q=zo`, workspace.token)).rows
  const path = `${USERS}/${String(first!['id'])}`
  const json = { roles: ['analyst'] }
  t.is((await api.call('PATCH', path, { token: workspace.token, json })).status, 200)
  for (const sort of ['', '&sort=email', '&sort=-last_sign_in_at']) {
    const rows = await pagesOf(workspace, `&role=analyst${sort}`)
    t.deepEqual(
      rows.map(({ id }) => id),
      [first!['id']],
    )
    t.is((await pagesOf(workspace, `&role=analyst&status=active${sort}`)).length, 0)
    t.is((await pagesOf(workspace, `&status=invited${sort}`)).length, 7)
  }
})

test('a search finds neither what a tenant does not see nor users of another tenant', async (t) => {
  const [mine, theirs] = [await api.workspace(), await api.workspace()]
  const email = `known.${theirs.tenantId}@example.com`
  const json = { email, display_name: 'Secretive', password: 'a password of an owner' }
  t.is((await api.post(USERS, theirs.token, json)).status, 201)
  t.is((await pagesOf(mine, '&q=known')).length, 0)
  t.is((await api.post(USERS, mine.token, { email })).status, 201)
  for (const sort of ['', '&sort=name']) {
    t.is(
      (await pagesOf(mine, `&q=secretive${sort}`)).length,
      0,
      'the name of an account that has not accepted',
    )
    t.is((await pagesOf(mine, `&q=known${sort}`)).length, 1)
  }
})

test('unknown orders and halves of a cursor are refused', async (t) => {
  const { token } = await api.workspace()
  const id = '01a2270c-0e00-7ec1-bda8-41896f4dfe8d'
  const at = `cursor_ts=2026-01-01T00:00:00.000Z&cursor_id=${id}`
  for (const query of [
    'sort=password',
    'sort=--email',
    'sort=',
    'q=',
    `q=${'x'.repeat(255)}`,
    'role=',
    `sort=email&${at}`,
    'sort=email&cursor_key=x',
  ])
    t.is((await api.get(`${USERS}?${query}`, token)).status, 400, query)
  t.is((await api.get(`${USERS}?sort=email&cursor_key=x&${at}`, token)).status, 200)
})
