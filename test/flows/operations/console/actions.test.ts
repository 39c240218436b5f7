/**
 * All pages of the console, as the owner of a tenant with one object of every kind, and work in it: one creation, change and
 * deletion in each group, as calls of the API. TEST_LONG opens every page, the short form one of each kind.
 */
import { sql } from '../../../support/storage/sql.js'
import test, { type ExecutionContext } from 'ava'
import { consoleOwner, openConsole, ownerOf } from '../../../support/identity/console.js'
import { crawled } from '../../../support/identity/console-crawl.js'
import type { Page } from '../../../support/pages/browser.js'
import { until } from '../../../support/service/watch.js'
import { populateTenant } from '../../../support/service/populated-service.js'
import { startPopulatedService } from '../../../support/service/populated-service-parts.js'
import { IS_LONG } from '../../../support/runs.js'

const resources = await startPopulatedService()
const { api, receiver } = resources
const tenant = await populateTenant(api, 'Harbour', receiver)
const browser = await ownerOf(api, tenant)
const { token } = tenant.workspace
test.after.always(() => resources.close())

const PAGE_BYTES_MAX = 120 * 1024
/** A JSON Web Token. */
const TOKEN = /eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}\./

test.serial(
  'every page opens, is small, and shows neither a token nor a broken value',
  async (t) => {
    const pages = await crawled(browser, { isShort: !IS_LONG })
    t.true(pages.size > (IS_LONG ? 140 : 70), [...pages.keys()].join('\n'))
    for (const [path, { status, html }] of pages) {
      t.is(status, 200, `${path} ${html}`)
      t.true(Buffer.byteLength(html) <= PAGE_BYTES_MAX, `${path} ${html.length}`)
      t.notRegex(html, TOKEN, path)
      t.notRegex(html, /\[object |undefined|NaN/, path)
      if (path.includes('/do/export')) continue
      // Each page names its call, with a placeholder for the token.
      const isCall = path !== '/console' && !path.startsWith('/console?')
      t.is(html.includes('Authorization: Bearer $TOKEN'), isCall, path)
    }
  },
)

test.serial('the pages are German for a German browser', async (t) => {
  for (const path of ['/console', '/console/applications', '/console/people/do/invite']) {
    const { html } = await browser.get(path, { 'accept-language': 'de' })
    t.regex(html, /<html lang="de" dir="ltr">/)
    t.regex(html, /Übersicht/)
    t.regex(html, /Abmelden/)
  }
})

type Fields = Readonly<Record<string, string>>

/** Opens the page of an action and sends its form. */
async function act(path: string, fields: Fields = {}): Promise<Page> {
  return browser.submit(await openConsole(browser, path), fields, path)
}

/** The path of the object to which an action led. */
function made(t: ExecutionContext, page: Page): string {
  t.is(page.status, 303, page.html)
  t.regex(String(page.location), /\?done=1$/)
  return page.location!.replace('?done=1', '')
}

const idOf = (path: string) => path.split('/').at(-1)!

test('access: an application is created, changed, its secret rotated, and deleted', async (t) => {
  const form = {
    name: 'Ferry',
    redirect_uris: 'https://ferry.example/cb\nhttps://ferry.example/two',
  }
  const created = await act('/console/applications/do/create', form)
  t.is(created.status, 200)
  const secret = /data-secret="client_secret">([^<]+)</.exec(created.html)?.[1]
  t.regex(String(secret), /^svcs_/)
  t.regex(created.html, /curl -X POST/)
  const { rows } = await api.list('/api/v1/applications', token)
  const row = rows.find(({ name }) => name === 'Ferry')!
  t.deepEqual(row['redirect_uris'], ['https://ferry.example/cb', 'https://ferry.example/two'])
  const item = `/console/applications/${String(row['id'])}`
  const shown = await openConsole(browser, item)
  t.notRegex(shown.html, new RegExp(secret!), 'the secret is shown once')
  t.regex(shown.html, /href="\/oauth\/authorize\?client_id=/, 'and its sign-in can be tried')
  const changed = await act(`${item}/do/change`, {
    name: 'Ferry two',
    redirect_uris: 'https://ferry.example/cb',
    scopes: 'openid',
  })
  made(t, changed)
  const read = await api.get(`/api/v1/applications/${String(row['id'])}`, token)
  t.is(read.body['name'], 'Ferry two')
  t.deepEqual(read.body['redirect_uris'], ['https://ferry.example/cb'])
  const rotated = await act(`${item}/do/rotate`, { overlap_secs: '60' })
  t.regex(rotated.html, /data-secret="client_secret"/)
  const gone = await act(`${item}/do/delete`)
  t.is(gone.location, '/console/applications?done=1')
  t.is((await browser.get(item)).status, 404)
})

test('the same form sent twice creates one application', async (t) => {
  const path = '/console/applications/do/create'
  const form = await openConsole(browser, path)
  const first = await browser.submit(form, { name: 'Once' }, path)
  const second = await browser.submit(form, { name: 'Once' }, path)
  t.is(first.status, 200)
  t.is(second.status, 303, 'the repeated answer has no secret')
  const { rows } = await api.list('/api/v1/applications', token)
  t.is(rows.filter(({ name }) => name === 'Once').length, 1)
})

test('a refused action shows title, detail, fault and request id, and what was typed', async (t) => {
  const refused = await act('/console/applications/do/create', {
    name: 'Typed',
    redirect_uris: 'not a URI',
  })
  t.is(refused.status, 400)
  t.regex(refused.html, /Bad request/)
  t.regex(refused.html, /<a href="#f-redirect_uris">/)
  t.regex(refused.html, /value="Typed"/)
  t.regex(refused.html, /Request id: <code translate="no">[\w-]{10,}</)
  const malformed = await act('/console/api-keys/do/create', {
    name: 'A',
    scopes: 'users:read',
    expires_in_secs: 'soon',
  })
  t.is(malformed.status, 400)
  t.regex(malformed.html, /id="f-expires_in_secs-fault"/)
})

test('people: one is invited, changed, suspended, reactivated and removed', async (t) => {
  const item = made(
    t,
    await act('/console/people/do/invite', { email: 'ann@example.com', display_name: 'Ann' }),
  )
  t.regex((await openConsole(browser, '/console/invitations')).html, /ann@example\.com/)
  const form = await openConsole(browser, `${item}/do/change`)
  t.regex(form.html, /<p class="send"><button>Save<\/button>/)
  made(t, await act(`${item}/do/change`, { display_name: 'Ann B.', roles: 'editor' }))
  const path = `/api/v1/tenant-users/${idOf(item)}`
  const { body } = await api.get(path, token)
  t.is(body['display_name'], 'Ann B.')
  t.deepEqual(body['roles'], ['editor'])
  for (const [name, status] of [
    ['suspend', 'suspended'],
    ['reactivate', 'invited'],
  ] as const) {
    t.is((await act(`${item}/do/${name}`)).status, 303, name)
    t.is((await api.get(path, token)).body['status'], status)
  }
  // Every status that can be suspended has the button.
  await sql(api.at)`update tenant_users set status = 'pre_provisioned' where id = ${idOf(item)}`
  t.regex((await openConsole(browser, item)).html, /\/do\/suspend"/)
  t.is((await act(`${item}/do/suspend`)).status, 303)
  t.is((await api.get(path, token)).body['status'], 'suspended')
  t.is((await act(`${item}/do/remove`)).location, '/console/people?done=1')
  t.is((await api.get(path, token)).status, 404)
})

test('people: an owner gives and takes every role, and stays the last owner', async (t) => {
  const id = tenant.objects['/api/v1/tenant-users/{user_id}']!
  const self = `/console/people/${id}`
  for (const [action, fields] of [
    ['suspend', {}],
    ['remove', {}],
    ['change', { roles: 'member' }],
  ] as const) {
    const refused = await act(`${self}/do/${action}`, fields)
    t.is(refused.status, 409, action)
    t.regex(refused.html, /needs an owner/)
  }
  const invited = { email: 'successor@example.com', display_name: 'Sue' }
  const other = made(t, await act('/console/people/do/invite', invited))
  for (const roles of ['owner', 'admin', 'member', 'owner\nadmin']) {
    made(t, await act(`${other}/do/change`, { roles }))
    const { body } = await api.get(`/api/v1/tenant-users/${idOf(other)}`, token)
    t.deepEqual(body['roles'], roles.split('\n'))
  }
  t.is((await act(`${self}/do/suspend`)).status, 409, 'an invited owner does not count')
})

test('no page has a member name, JSON or a raw id before something is opened', async (t) => {
  for (const path of [
    '/console/applications',
    '/console/settings',
    '/console/settings/do/change',
    '/console/webhooks/do/create',
    `/console/people/${tenant.objects['/api/v1/tenant-users/{user_id}']!}`,
  ]) {
    const { html } = await openConsole(browser, path)
    const main = html.slice(html.indexOf('<main'), html.indexOf('</main>'))
    const shown = main
      .replaceAll(/<details[^>]*>.*?<\/details>/gs, '')
      .replaceAll(/<(p|span) [^>]*lang="en"[^>]*>.*?<\/\1>/gs, '')
      .replaceAll(/<[^>]+>/g, ' ')
    t.notRegex(shown, /\b[a-z]+_[a-z_]+\b/, path)
    t.notRegex(shown, /[0-9a-f]{8}-[0-9a-f]{4}-/, path)
    t.notRegex(shown, /[{}]/, path)
  }
  const { html } = await openConsole(browser, '/console/settings/do/change')
  t.regex(html, /<label for="f-admit_agents">Agents may register themselves/)
})

test('a map and a list are rows, and another row can be added', async (t) => {
  const item = made(t, await act('/console/people/do/invite', { email: 'rows@example.com' }))
  const id = idOf(item)
  const path = `${item}/do/change`
  const read = async () => (await api.get(`/api/v1/tenant-users/${id}`, token)).body['metadata']
  await api.patch(`/api/v1/tenant-users/${id}`, token, { metadata: { level: 3, deep: { a: [1] } } })
  const form = await openConsole(browser, path)
  t.regex(form.html, /name="metadata\.1\.key"[^>]*value="level"/)
  const typed = { 'metadata.2.key': 'desk', 'metadata.2.value': 'B7' }
  const sent = { ...form.forms.find(({ action }) => action === path)!.fields, ...typed }
  const more = await browser.post(`${path}?rows=1`, sent)
  t.is(more.status, 200)
  t.regex(more.html, /name="metadata\.2\.key"[^>]*value="desk"/)
  t.regex(more.html, /name="metadata\.3\.key"[^>]*value=""/)
  t.deepEqual(await read(), { level: 3, deep: { a: [1] } }, 'nothing was saved')
  made(t, await act(path, typed))
  t.deepEqual(await read(), { level: 3, deep: { a: [1] }, desk: 'B7' })
  t.is((await act(path, { 'metadata.3.value': 'of nothing' })).status, 400, 'a value without a key')
})

test('an empty list says what it is for, with the first step and the guide', async (t) => {
  const owner = await consoleOwner(api)
  const { html } = await openConsole(owner.browser, '/console/webhooks')
  t.regex(html, /class="empty">.*Addresses of yours that hear what happens here/s)
  t.regex(html, /class="empty">.*href="\/console\/webhooks\/do\/create">Create/s)
  t.regex(html, /class="empty">.*href="\/docs\/guides\/webhooks\/webhooks"/s)
})

test('the people of a tenant are found, filtered and sorted by choices', async (t) => {
  const list = '/console/people?q=&status=active&role=owner&sort=-email'
  const { html } = await openConsole(browser, list)
  t.regex(html, /<option value="active" selected>Active</)
  t.regex(html, /<option value="-email" selected>Email, descending</)
  t.regex(html, /<span class="badge ok" data-status="active">Active</)
  t.regex(html, /<time datetime="[^"]+" title="[^"]+">/)
  t.regex(html, /<p class="num">\d+ entr(?:y|ies)</)
})

test('people are exported as CSV, without formulas', async (t) => {
  const fields = { email: 'formula@example.com', display_name: '=1+1, "x"' }
  made(t, await act('/console/people/do/invite', fields))
  t.regex(
    (await openConsole(browser, '/console/people')).html,
    /href="\/console\/people\/do\/export"/,
  )
  const { headers, html } = await browser.get('/console/people/do/export')
  t.is(headers['content-type'], 'text/csv')
  t.regex(String(headers['content-disposition']), /people\.csv/)
  const [head, ...lines] = html.trim().split('\r\n')
  t.is(head, 'email,name,status,roles,created_at')
  t.true(
    lines.some((line) => line.startsWith(`formula@example.com,"'=1+1, ""x""",invited,,2`)),
    html,
  )
  const found = await api.get('/api/v1/tenant-users/export?q=formula@', token)
  t.is(String(found.body['text']).trim().split('\r\n').length, 2)
})

test('a change sends only what was changed', async (t) => {
  const id = tenant.objects['/api/v1/tenant-users/{user_id}']!
  const path = `/console/people/${id}/do/change`
  const before = (await api.get(`/api/v1/tenant-users/${id}`, token)).body
  made(t, await act(path, { given_name: 'Ann' }))
  const after = (await api.get(`/api/v1/tenant-users/${id}`, token)).body
  const { updated_at: _before, ...old } = before
  const { updated_at: _after, ...now } = after
  t.deepEqual(now, { ...old, given_name: 'Ann' })
})

test('webhooks: one is created with a secret, tested, and its delivery is replayed', async (t) => {
  const created = await act('/console/webhooks/do/create', {
    url: `${receiver.origin}/console`,
    event_types: 'admin.*',
    active: 'true',
  })
  t.regex(created.html, /data-secret="secret"/, created.html)
  const { rows } = await api.list('/api/v1/webhooks', token)
  const { id } = rows.find(({ url }) => url === `${receiver.origin}/console`)!
  const item = `/console/webhooks/${String(id)}`
  const tested = await act(`${item}/do/test`)
  t.true([200, 303].includes(tested.status), tested.html)
  made(t, await act('/console/people/do/invite', { email: 'bob@example.com' }))
  const deliveries = `/api/v1/webhooks/${String(id)}/deliveries?event_type=admin.user.created`
  let delivered: string | undefined
  await until('the delivery succeeds', async () => {
    const { rows: seen } = await api.list(deliveries, token)
    delivered = seen.find(({ status }) => status === 'succeeded')?.['id'] as string | undefined
    return delivered !== undefined
  })
  const replayed = await act(`${item}/deliveries/${delivered}/do/replay`)
  made(t, replayed)
  t.is((await act(`${item}/do/delete`)).status, 303)
})

test('webhooks: events are chosen from the catalogue, and the list shows the health', async (t) => {
  const refusing = `${receiver.origin}/console-chosen`
  const path = '/console/webhooks/do/create'
  const form = await openConsole(browser, path)
  t.regex(form.html, /type="checkbox" name="event_types" value="vault\.\*"/)
  t.regex(form.html, /value="tenant_user\.invited"> <span title="tenant_user\.invited">/)
  const sent = { ...form.forms.find(({ action }) => action === path)!.fields, url: refusing }
  const created = await browser.post(path, { ...sent, event_types: 'vault.*\ntenant_user.invited' })
  t.regex(created.html, /data-secret="secret"/, created.html)
  const { rows } = await api.list('/api/v1/webhooks', token)
  const { id, event_types: types } = rows.find(({ url }) => url === refusing)!
  t.deepEqual(types, ['vault.*', 'tenant_user.invited'])
  const change = await openConsole(browser, `/console/webhooks/${String(id)}/do/change`)
  t.regex(change.html, /value="tenant_user\.invited" checked>/)
  const list = await openConsole(browser, '/console/webhooks')
  t.regex(list.html, /data-status="(?:idle|healthy|failing)">/)
  await act(`/console/webhooks/${String(id)}/do/delete`)
})

test('the overview says what needs attention, and names who did what last', async (t) => {
  const owner = await consoleOwner(api)
  const quiet = await openConsole(owner.browser, '/console')
  t.regex(quiet.html, /Nothing needs your attention\./)
  t.regex(quiet.html, /href="\/console\/applications\/do\/create"/, 'the first step')
  const form = '/console/api-keys/do/create'
  const fields = { name: 'Nightly', scopes: 'users:read', expires_in_secs: '3600' }
  await owner.browser.submit(await openConsole(owner.browser, form), fields, form)
  const { html } = await openConsole(owner.browser, '/console')
  t.regex(html, /href="\/console\/api-keys"><span>1 API key expires within 14 days/)
  t.regex(html, /href="\/console\/people\/[0-9a-f-]{36}"><bdi>/, 'a person by name')
})

test('the overview has charts of counted figures, with a table behind each', async (t) => {
  const { tenantId } = tenant.workspace
  type Series = { kind: string; total: number; failed: number }
  const figures = async () => {
    const { body } = await api.get('/api/v1/activity?period=30d', token)
    const series = body['series'] as readonly Series[]
    return series.map(({ kind, total, failed }) => ({ kind, total, failed }))
  }
  const scanned = () => sql<Series>(api.at)`
    select k.kind, count(a.outcome)::integer as total,
      (count(a.outcome) filter (where a.outcome <> 'success'))::integer as failed
    from unnest(array['sign_ins', 'sign_ins', 'tokens', 'egress'], array['auth.login.success',
      'auth.login.failure', 'auth.token.issued', 'egress.stream.closed'], array[1, 1, 2, 3])
      as k (kind, type, place)
    left join audit_events a on a.tenant_id = ${tenantId} and a.type = k.type
    group by k.kind, k.place union all
    select 'deliveries', count(*)::integer,
      (count(*) filter (where response_status is distinct from 200))::integer
    from webhook_attempts where tenant_id = ${tenantId}`
  // Other tests of this file get tokens and deliveries at the same time.
  await until('what is counted is what happened', async () => {
    const all = await figures()
    const events = await scanned()
    return all.every(({ kind, total, failed }) =>
      events.some((one) => one.kind === kind && one.total === total && one.failed === failed),
    )
  })
  // The tenant has made no egress call.
  for (const { kind, total } of await figures()) t.is(total > 0, kind !== 'egress', kind)
  const { html } = await openConsole(browser, '/console?period=7d')
  t.regex(html, /href="\/console\?period=7d" aria-current="true">7 days</)
  t.regex(html, /<svg role="img" aria-label="Issued tokens: [\d,]+" viewBox=/)
  t.regex(html, /<summary>As a table<span class="unseen"> – Sign-ins</)
})

test('the features page says what is on, what is off, and the lines that turn it on', async (t) => {
  const { html } = await openConsole(browser, '/console/features')
  const names = ((await api.get('/api/v1/capabilities')).body['capabilities'] ?? []) as string[]
  const rows = html.split('<li><h2>').slice(1)
  t.true(rows.length > 15)
  for (const [title, name] of [
    ['Tokens bound to a key', 'oauth.dpop'],
    ['Social sign-in', 'sso.social'],
    ['API keys', 'api_keys'],
    ['Traces and metrics', 'telemetry'],
  ] as const) {
    const shown = rows.find((row) => row.startsWith(title))!
    t.is(shown.includes('data-status="active"'), names.includes(name), name)
    t.is(/enabled = true/.test(shown), !names.includes(name), name)
  }
})

test('a trusted issuer is created with a rule, and both are deleted', async (t) => {
  const item = made(
    t,
    await act('/console/trusted-issuers/do/create', {
      name: 'CI of the harbour',
      issuer: 'https://token.actions.githubusercontent.com/harbour-ci',
      purposes: 'workload',
      kind: 'github_actions',
    }),
  )
  const { html } = await openConsole(browser, item)
  t.regex(html, /CI of the harbour/)
  t.regex(html, new RegExp(`href="${item}/do/evaluate">Try a token<`))
  const applications = await api.list('/api/v1/applications', token)
  const { client_id: clientId, scopes } = applications.rows.find(
    ({ client_type: type, scopes: some }) =>
      type === 'confidential' && Array.isArray(some) && some.length > 0,
  )!
  const rule = made(
    t,
    await act(`${item}/rules/do/create`, {
      name: 'Releases',
      'target.client_id': String(clientId),
      scopes: (scopes as readonly string[])[0]!,
      'conditions.0.claim': 'repository_id',
      'conditions.0.op': 'eq',
      'conditions.0.value': '4711',
    }),
  )
  t.regex((await openConsole(browser, `${item}/rules`)).html, /Releases/)
  t.regex((await openConsole(browser, rule)).html, /repository_id/)
  t.is((await act(`${rule}/do/delete`)).status, 303)
  t.is((await act(`${item}/do/delete`)).location, '/console/trusted-issuers?done=1')
})

test('a stream of security events is listed, and its page says how it is delivered', async (t) => {
  const { rows } = await api.list('/api/v1/signal-streams', token)
  const { stream_id: id, aud } = rows[0]!
  const list = (await openConsole(browser, '/console/signal-streams')).html
  t.regex(list, /data-status="enabled"/)
  t.true(list.includes(String(aud)))
  const { html } = await openConsole(browser, `/console/signal-streams/${String(id)}`)
  t.regex(html, /urn:ietf:rfc:893[56]/)
  t.regex(html, /Delivered events/)
})

test('vault: a credential is created, granted, and revoked', async (t) => {
  const item = made(
    t,
    await act('/console/vault-credentials/do/create', {
      provider: 'custom',
      credential_type: 'api_key',
      label: 'Crane key',
      auth_scheme: 'bearer',
      allowed_hosts: 'api.example.com',
      secret: 'crane-secret-of-the-harbour',
    }),
  )
  const granted = await act(`${item}/grants/do/create`, {
    grantee_type: 'agent',
    grantee_id: tenant.objects['/api/v1/agents/{agent_id}']!,
    'budget.requests': '500',
    'budget.llm_tokens': '20000',
    'budget.window': 'day',
  })
  const grant = made(t, granted)
  const { html } = await openConsole(browser, grant)
  t.regex(html, /Tokens of language models[^]*20000/)
  const form = (await openConsole(browser, `${item}/grants/do/create`)).html
  t.regex(form, /name="budget.bytes"/)
  t.notRegex(form, /amount_minor/)
  t.is((await act(`${grant}/do/revoke`)).status, 303)
  made(t, await act(`${item}/do/revoke`))
  const shown = await openConsole(browser, item)
  t.regex(shown.html, /data-status="revoked"/)
  t.notRegex(shown.html, /crane-secret/)
})

test('commerce: a product is created and changed', async (t) => {
  const item = made(t, await act('/console/products/do/create', { name: 'Crossing' }))
  made(t, await act(`${item}/do/change`, { active: 'false' }))
  const { body } = await api.get(`/api/v1/commerce/products/${idOf(item)}`, token)
  t.is(body['active'], false)
})

test('commerce: a wallet is created for an agent, changed, frozen and unfrozen', async (t) => {
  const { agentId } = await api.register(tenant.workspace.tenantId)
  made(t, await act(`/console/agents/${agentId}/do/wallet`))
  const item = `/console/wallets/${agentId}`
  const asset = '0x036CbD53842c5426634e7929541eC2318f3dCF7e'
  const terms = { network: 'eip155:84532', asset, payment_max: '5', window_max: '20' }
  const recipients = '0x8ba1f109551bD432803012645Ac136ddd64DBA72'
  const budget = Object.entries(terms).map(([name, value]) => [`budgets.0.${name}`, value])
  const change = { recipients, ...Object.fromEntries(budget) }
  made(t, await act(`${item}/do/change`, change))
  const read = async () => (await api.get(`/api/v1/agents/${agentId}/wallet`, token)).body
  t.like(await read(), { status: 'active', recipients: [recipients.toLowerCase()] })
  t.like((await read())['budgets'], [{ payment_max: '5', window_max: '20', window_secs: 86_400 }])
  made(t, await act(`${item}/do/freeze`))
  t.is((await read())['status'], 'frozen')
  made(t, await act(`${item}/do/unfreeze`))
  t.is((await read())['status'], 'active')
  t.regex((await openConsole(browser, `${item}/signatures`)).html, /Signatures/)
})

test('the workspace: settings change, the branding is previewed', async (t) => {
  const path = '/console/settings/do/change'
  const done = await act(path, { 'branding.name': 'Harbour blue', 'branding.color': '#0a58ca' })
  t.is(done.location, '/console/settings?done=1', done.html)
  const page = await openConsole(browser, '/console/settings')
  t.regex(page.html, /class="preview".*Harbour blue/s)
  t.regex(page.html, /\/auth\/brand\/0a58ca/)
  const { body } = await api.get('/api/v1/tenant/settings', token)
  t.like(body['branding'], { name: 'Harbour blue', color: '#0a58ca' })
})

test.serial('the workspace: a preview shows what was typed, and saves nothing', async (t) => {
  const path = '/console/settings/do/change'
  const before = (await api.get('/api/v1/tenant/settings', token)).body
  const form = await openConsole(browser, path)
  t.regex(
    form.html,
    /<button class="secondary" formaction="\/console\/settings\/do\/change\?preview=1"/,
  )
  const preview = async (fields: Fields) =>
    browser.post(`${path}?preview=1`, {
      ...form.forms.find(({ action }) => action === path)!.fields,
      ...fields,
    })
  const typed = { 'branding.name': 'Harbour <red>', 'branding.color': '#C0FFEE' }
  const shown = await preview(typed)
  t.is(shown.status, 200)
  t.regex(shown.html, /class="preview".*Harbour &lt;red&gt;/s)
  t.regex(shown.html, /\/auth\/brand\/c0ffee/)
  t.regex(shown.html, /name="branding.name"[^>]*value="Harbour &lt;red&gt;"/)
  t.notRegex(shown.html, /<script/)
  t.deepEqual((await api.get('/api/v1/tenant/settings', token)).body, before)
  const wrong = await preview({ ...typed, 'branding.color': '"><script>' })
  t.is(wrong.status, 200)
  t.notRegex(wrong.html, /\/auth\/brand\/|<script/)
  t.deepEqual((await api.get('/api/v1/tenant/settings', token)).body, before)
  t.is((await browser.post(`${path}?preview=1`, typed)).status, 403, 'a form without its token')
})

test('the trail names the object above a list', async (t) => {
  const [agent] = (await api.get('/api/v1/agents', token)).body as unknown as {
    id: string
    name: string
  }[]
  const { html } = await openConsole(browser, `/console/agents/${agent!.id}/keys`)
  const trail = /<p class="trail">(.*?)<\/p>/s.exec(html)![1]!
  t.true(trail.includes(`<a href="/console/agents/${agent!.id}">${agent!.name}</a>`), trail)
  t.notRegex(trail, /Details/)
})

test('operations: the audit chain is checked and exported, and names the person', async (t) => {
  const checked = await openConsole(browser, '/console/audit/do/verify')
  t.regex(checked.html, /The chain is intact: \d+ events verified\./)
  const exported = await browser.get('/console/audit/do/export')
  t.is(exported.headers['content-type'], 'application/x-ndjson')
  t.regex(String(exported.headers['content-disposition']), /^attachment/)
  const events = exported.html
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as { client_id: unknown })
  t.true(events.some(({ client_id: client }) => client === 'svc_console'))
  const filtered = await openConsole(browser, '/console/audit?type=admin.application.created')
  t.notRegex(filtered.html, /auth\.token\.issued/)
  // Who and what are named, and one event has a page.
  t.regex(filtered.html, /href="\/console\/applications\/[0-9a-f-]{36}"><bdi>/)
  t.regex(filtered.html, /href="\/console\/(?:people|agents)\/[0-9a-f-]{36}"><bdi>/)
  const one = /href="(\/console\/audit\/[0-9a-f-]{36})"/.exec(filtered.html)![1]!
  const event = await openConsole(browser, one)
  t.regex(event.html, /data-status="success">Success</)
  const { rows } = await api.list('/api/v1/audit-events', token)
  const request = String(rows.find(({ request_id: id }) => id !== null)!['request_id'])
  const ofRequest = await openConsole(browser, `/console/audit?request_id=${request}`)
  t.regex(ofRequest.html, /<p class="num">\d/)
})

test('a page of a list leads to the next one', async (t) => {
  const first = await openConsole(browser, '/console/audit')
  const next = /rel="next" href="([^"]+)"/.exec(first.html)?.[1]
  t.truthy(next)
  const second = await openConsole(browser, next!.replaceAll('&amp;', '&'))
  t.regex(second.html, /href="\/console\/audit">First page/)
})
