/** Approval of calls on pages: the page of a call and the account page. */
import test from 'ava'
import { egressFetch, NotApproved } from '../../../../runtime/clients/client/exports.js'
import { approvalScene, personOf } from '../../../support/vault/approvals.js'
import { egressHouse } from '../../../support/vault/egress.js'
import { sql } from '../../../support/storage/sql.js'

const resources = await egressHouse()
const { running, upstream } = resources
const POST = { method: 'POST', body: 'hello', url: `${upstream.origin}/echo?to=me` }

test.serial('an owner reads the call, allows it, and sees the outcome', async (t) => {
  const { waiting, state, call, person, setting } = await approvalScene(resources)
  const id = await waiting(POST)
  const { browser } = person
  const account = await browser.get('/auth/account')
  t.true(account.html.includes(`data-approval="${id}"`))
  const page = await browser.follow(await browser.get(`/vault/approvals/${id}`))
  t.is(page.status, 200, page.html)
  for (const part of ['data-method="POST"', 'data-path="/echo"', '/echo?to=me', setting.agentId])
    t.true(page.html.includes(part), part)
  t.regex(page.html, /data-body-sha256="[0-9a-f]{64}"/)
  const decided = await browser.submit(page, {}, `/vault/approvals/${id}/approve`)
  t.is(decided.location, `/vault/approvals/${id}`)
  const outcome = await browser.get(`/vault/approvals/${id}`)
  t.true(outcome.html.includes('data-decision="approved"'))
  t.like((await state(id)).body, { status: 'approved' })
  t.is((await call(POST, id)).status, 200)
  const account2 = await browser.get('/auth/account')
  t.false(account2.html.includes(`data-approval="${id}"`))
  const [decision] = await sql<{ data: { actor: object } }>(running)`
    select data from all_events where tenant_id = ${setting.tenantId} and type = 'vault.approval.approved'`
  t.like(decision!.data.actor, { type: 'human' })
})

test.serial('the page shows the path that is sent, not a reading of it', async (t) => {
  const { waiting, person } = await approvalScene(resources)
  const path = '/echo/ada@xn--bcher-kva.example/xn--bcher-kva'
  const id = await waiting({ ...POST, url: `${upstream.origin}${path}` })
  const page = await person.browser.follow(await person.browser.get(`/vault/approvals/${id}`))
  t.true(page.html.includes(`<code data-path="${path}">${path}</code>`), page.html)
})

test.serial('a person denies on the page, and another person sees no call', async (t) => {
  const { waiting, state, person, setting } = await approvalScene(resources)
  const id = await waiting(POST)
  const stranger = await personOf(resources, setting, '{}')
  const seen = await stranger.browser.follow(await stranger.browser.get(`/vault/approvals/${id}`))
  t.is(seen.status, 404)
  const page = await person.browser.follow(await person.browser.get(`/vault/approvals/${id}`))
  await person.browser.submit(page, {}, `/vault/approvals/${id}/deny`)
  t.like((await state(id)).body, { status: 'denied' })
})

test.serial('egressFetch waits for the approval and repeats the call', async (t) => {
  const { answer, setting } = await approvalScene(resources)
  const agent = (approvalTimeoutMs?: number) =>
    egressFetch({
      baseUrl: running.baseUrl,
      credentialId: setting.credentialId,
      token: setting.direct,
      ...(approvalTimeoutMs !== undefined && { approvalTimeoutMs }),
      onApproval: ({ id }) => {
        if (approvalTimeoutMs === undefined) void answer(id, 'approve')
      },
    })
  const response = await agent()(`${upstream.origin}/echo`, { method: 'POST', body: 'once' })
  t.is(await response.text(), 'once')
  const late = agent(0)(`${upstream.origin}/echo`, { method: 'POST', body: 'never' })
  const error = await t.throwsAsync(late, { instanceOf: NotApproved })
  t.is(error.approval.status, 'pending')
})
