/** Images of the tenant, sessions of people, planes and actors in the console, and hosts of tenants. */
import { randomUUID } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { stringifyCookie } from 'cookie'
import test from 'ava'
import sharp from 'sharp'
import { ownToken } from '../../../support/agents/delegation.js'
import { apiOf } from '../../../support/api.js'
import { consoleOwner, openConsole, type Owner } from '../../../support/identity/console.js'
import { sql } from '../../../support/storage/sql.js'
import { testService } from '../../../support/service.js'

const folder = await mkdtemp(join(tmpdir(), 'svc-assets-'))
const running = await testService({
  environment: {
    SVC_TENANT_ASSETS__ENABLED: 'true',
    SVC_TENANT_ASSETS__FOLDER: folder,
    SVC_SERVER__BASE_DOMAIN: 'svc.example',
  },
})
const api = apiOf(running)
const owner = await consoleOwner(api)
test.after.always(() => rm(folder, { recursive: true, force: true }))

const UPLOAD = '/console/assets/logo/do/upload'
const AS_SENT = { decode: (value: string) => value, encode: (value: string) => value }

/** Sends the form of an upload as a browser does. */
async function send({ browser }: Owner, csrf: string, file: Blob | null) {
  const form = new FormData()
  form.set('csrf_token', csrf)
  form.set('file', file ?? new Blob([]), file === null ? '' : 'our "logo".png')
  const answer = await fetch(running.baseUrl + UPLOAD, {
    method: 'POST',
    redirect: 'manual',
    headers: {
      accept: 'text/html',
      cookie: stringifyCookie(Object.fromEntries(browser.cookies), AS_SENT),
      origin: new URL(running.baseUrl).origin,
    },
    body: form,
  })
  return {
    status: answer.status,
    location: answer.headers.get('location'),
    html: await answer.text(),
  }
}

const formOf = async ({ browser }: Owner) => {
  const page = await openConsole(browser, UPLOAD)
  const form = page.forms.find(({ action }) => action === UPLOAD)!
  return { page, csrf: form.fields['csrf_token']! }
}

const png = async (bytes: Promise<Buffer>) =>
  new Blob([new Uint8Array(await bytes)], { type: 'image/png' })
const square = (side: number) =>
  sharp({ create: { width: side, height: side, channels: 3, background: '#aa5500' } })
    .png()
    .toBuffer()

test.serial('an owner uploads a logo by a form, sees it and removes it', async (t) => {
  const { browser } = owner
  const list = await openConsole(browser, '/console/assets')
  t.regex(list.html, /href="\/console\/assets\/logo"/)
  const { page, csrf } = await formOf(owner)
  t.regex(page.html, /enctype="multipart\/form-data"/)
  t.regex(page.html, /--data-binary @logo\.png/, 'the call as curl')
  const sent = await send(owner, csrf, await png(square(80)))
  t.is(sent.status, 303, sent.html)
  t.is(sent.location, '/console/assets/logo?done=1')
  const shown = await openConsole(browser, '/console/assets/logo')
  const url = /<img src="([^"]+\.webp)" alt="" class="logo">/.exec(shown.html)?.[1]
  t.is((await fetch(url!)).status, 200)
  t.true((await openConsole(browser, '/console/settings')).html.includes(`<img src="${url}"`))
  const remove = '/console/assets/logo/do/remove'
  const removed = await browser.submit(await openConsole(browser, remove), {}, remove)
  t.is(removed.status, 303, removed.html)
  t.false((await openConsole(browser, '/console/assets/logo')).html.includes('.webp'))
})

test.serial('a form without a file, with a text or of another site is refused', async (t) => {
  const { csrf } = await formOf(owner)
  const none = await send(owner, csrf, null)
  t.is(none.status, 400)
  t.regex(none.html, /Choose a file\./)
  const text = await send(owner, csrf, new Blob(['hello'], { type: 'image/png' }))
  t.is(text.status, 400)
  t.regex(text.html, /not a complete PNG, JPEG or WebP image/)
  const svg = await send(owner, csrf, new Blob(['<svg/>'], { type: 'image/svg+xml' }))
  t.is(svg.status, 415)
  const foreign = await send(owner, 'x'.repeat(43), await png(square(9)))
  t.is(foreign.status, 403)
  const large = new Blob([new Uint8Array(600 * 1024)], { type: 'image/png' })
  t.is((await send(owner, csrf, large)).status, 413)
  const broken = await fetch(running.baseUrl + UPLOAD, {
    method: 'POST',
    headers: { 'content-type': 'multipart/form-data; boundary=x' },
    body: '--x\r\nbroken',
  })
  t.is(broken.status, 400)
})

test.serial('the host of a tenant leads to its console at the issuer', async (t) => {
  const { tenantId, body } = await api.workspace()
  const answer = await api.call('GET', '/console', {
    headers: { host: `${String(body['tenant_slug'])}.svc.example`, accept: 'text/html' },
  })
  t.is(answer.status, 303)
  t.is(answer.headers['location'], `${running.issuer}/console?tenant_id=${tenantId}`)
})

test.serial('planes and actors are for operators of the deployment', async (t) => {
  for (const path of ['/api/v1/deployment/planes', '/api/v1/deployment/actors']) {
    t.is((await api.get(path)).status, 401)
    t.is((await api.get(path, owner.token)).status, 403, path)
  }
})

test.serial('an owner sees where a person is signed in and ends one sign-in', async (t) => {
  const { made, person } = owner
  const token = await ownToken(api, made, person, 'openid tenant:manage users:manage audit:read')
  const { rows: users } = await api.list('/api/v1/tenant-users', token)
  const { email } = person.human
  const user = users.find((one) => one['email'] === email)!
  const path = `/api/v1/tenant-users/${String(user['id'])}/sessions`
  const { rows } = await api.list(path, token)
  t.true(rows.length > 0)
  t.like(rows[0], { user_agent: 'test browser', acr: 'aal2' })
  const page = await openConsole(owner.browser, `/console/people/${String(user['id'])}/sessions`)
  t.regex(page.html, /test browser/)
  t.regex(page.html, /curl/)
  const id = String(rows[0]!['id'])
  const lesser = await ownToken(api, made, person, 'openid users:manage')
  const refused = await api.delete(`${path}/${id}`, lesser)
  t.is(refused.status, 403, 'only an owner signs an owner out')
  const unknown = `${path}/${randomUUID()}`
  t.is((await api.delete(unknown, token)).status, 404)
  t.is((await api.delete(`${path}/${id}`, token)).status, 204)
  t.is((await api.list(path, token)).status, 401, 'the tokens of the sign-in have ended')
  const events = await sql<{ data: object }>(running)`
    select data from audit_events where tenant_id = ${made.tenantId}
    and type = 'admin.user.session_revoked'`
  t.deepEqual(
    events.map(({ data }) => data),
    [{ session_id: id }],
  )
  const account = await owner.browser.get('/auth/account')
  t.regex(String(account.location), /^\/auth\/login/, 'the browser is signed out')
})
