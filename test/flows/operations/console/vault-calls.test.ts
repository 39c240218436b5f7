/** Calls of agents in the console: the ledger, approvals, and connected accounts. */
import test from 'ava'
import { openConsole } from '../../../support/identity/console.js'
import type { Page, TestBrowser } from '../../../support/pages/browser.js'
import { until } from '../../../support/service/watch.js'
import { approvalScene, personOf } from '../../../support/vault/approvals.js'
import { connecting } from '../../../support/vault/connect.js'
import { egressHouse, type Setting, settingOf } from '../../../support/vault/egress.js'
import { sql } from '../../../support/storage/sql.js'

const house = await egressHouse()
const { api, upstream, running } = house

/** An owner of the tenant, signed in to its console. */
async function ownerAt(at: Pick<Setting, 'tenantId' | 'operator'>): Promise<TestBrowser> {
  const { browser } = await personOf(house, at, '{owner}')
  await openConsole(browser, `/console?tenant_id=${at.tenantId}`)
  return browser
}

const act = async (
  browser: TestBrowser,
  path: string,
  fields: Readonly<Record<string, string>> = {},
): Promise<Page> => browser.submit(await openConsole(browser, path), fields, path)

test('calls are listed with names and words, filtered, and exported', async (t) => {
  const setting = await settingOf(house, {}, { budget: { requests: 5, window: 'hour' } })
  const { agentId, credentialId, delegated } = setting
  const url = `${upstream.origin}/echo`
  await api.post('/v1/proxy', delegated, { credential_id: credentialId, url }).gives(200)
  const browser = await ownerAt(setting)
  const list = '/console/egress'
  await until('the call is in the ledger', async () =>
    (await openConsole(browser, list)).html.includes('data-status="completed"'),
  )
  const { html } = await openConsole(browser, list)
  t.regex(html, new RegExp(`href="/console/agents/${agentId}"`))
  t.regex(html, new RegExp(`href="/console/vault-credentials/${credentialId}"`))
  t.regex(html, />Completed</)
  t.regex(html, /Budget left/)
  t.notRegex(html, /agent_id<|\{&quot;/)
  t.regex(html, new RegExp(`<option value="${agentId}">[^<]`))
  const [, item] = /href="(\/console\/egress\/[0-9a-f-]{36})"/.exec(html)!
  t.regex((await openConsole(browser, item!)).html, />Completed</)

  const query = `agent_id=${agentId}&outcome=completed&since=2020-01-01T00:00`
  const found = await openConsole(browser, `${list}?${query}`)
  t.regex(found.html, /data-status="completed"/)
  t.regex(found.html, /do\/export\?agent_id=[^"]*outcome=completed/)
  const none = await openConsole(browser, `${list}?outcome=revoked`)
  t.notRegex(none.html, /<td/)
  const live = await openConsole(browser, `${list}?outcome=completed&live=1`)
  t.regex(live.html, /name="live" value="1"/)

  const csv = await browser.get(`${list}/do/export?${query}`)
  t.is(csv.status, 200, csv.html)
  t.regex(String(csv.headers['content-disposition']), /calls\.csv/)
  t.regex(csv.html, /^ended_at,kind,/)
  t.is(csv.html.trim().split('\n').length, 2)
  const lines = await browser.get(`${list}/do/exportlines`)
  t.regex(String(lines.headers['content-type']), /x-ndjson/)
  t.like(JSON.parse(lines.html.trim().split('\n')[0]!), { credential_id: credentialId })
})

test('calls that wait come first, and an owner answers them', async (t) => {
  const { waiting, state, setting } = await approvalScene(house)
  const first = await waiting()
  const browser = await ownerAt(setting)
  await sql(running)`
    update call_approvals set created_at = created_at - interval '1 minute' where id = ${first}`
  const second = await waiting({ method: 'PUT' })
  const overview = await openConsole(browser, '/console')
  t.regex(overview.html, /href="\/console\/approvals\?status=pending"[^]*2 calls wait/)
  const list = '/console/approvals'
  const at = `${list}/${second}`
  t.regex((await openConsole(browser, at)).html, /HTTP call/)
  const denied = await act(browser, `${at}/do/deny`)
  const settled = denied.status === 303 ? await browser.follow(denied) : denied
  t.is(settled.status, 200, settled.html)
  t.like((await state(second)).body, { status: 'denied' })
  const { html } = await openConsole(browser, list)
  t.true(html.indexOf(`${list}/${first}`) < html.indexOf(at), 'the newer one is answered')
  t.is(html.split(`href="${list}/${first}"`).length, 2, 'once')
  t.notRegex((await openConsole(browser, at)).html, /do\/approve/)
  const approved = await act(browser, `${list}/${first}/do/approve`)
  t.true([200, 303].includes(approved.status), approved.html)
  t.like((await state(first)).body, { status: 'approved' })
})

test('connectors are set up from a template, and accounts disconnected', async (t) => {
  const flow = connecting(house)
  const made = await flow.setting()
  const { connection } = await flow.connected(made)
  const { tenantId, token: operator } = made.workspace
  const browser = await ownerAt({ tenantId, operator })
  const list = '/console/connectors'
  const form = await openConsole(browser, `${list}/do/create`)
  t.regex(form.html, /<option value="github">GitHub</)
  const created = await act(browser, `${list}/do/create`, {
    template: 'github',
    name: 'crane-github',
    client_id: 'crane',
    client_secret: 'crane-client-secret',
  })
  t.is(created.status, 303, created.html)
  const item = created.location!.replace('?done=1', '')
  const { html } = await openConsole(browser, item)
  t.regex(html, /Redirect URI for the service[^]*\/connect\/callback/)
  t.regex(html, /api\.github\.com/)
  t.notRegex(html, /crane-client-secret/)
  const changed = await act(browser, `${item}/do/change`, { name: 'crane-hub' })
  t.is(changed.status, 303, changed.html)
  t.is((await act(browser, `${item}/do/delete`)).location, `${list}?done=1`)

  const id = String(connection['id'])
  await sql(running)`
    update vault_connections set status = 'needs_reauthorization' where id = ${id}`
  const overview = await openConsole(browser, '/console')
  t.regex(overview.html, /href="\/console\/connections"[^]*1 connected account needs/)
  const accounts = await openConsole(browser, '/console/connections')
  t.regex(accounts.html, /octo\/cat/)
  t.regex(accounts.html, /href="\/console\/people\//)
  const agentId = String(connection['agent_id'])
  t.false(accounts.html.includes(agentId), 'an agent of another tenant has its name')
  const end = await act(browser, `/console/connections/${id}/do/disconnect`)
  t.is(end.location, '/console/connections?done=1', end.html)
  t.is((await flow.read(made, id))['status'], 'revoked')
})
