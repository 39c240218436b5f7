/** Attacks on CIBA, and refused requests (CIBA Core 1.0 sections 7.1, 13 and 15). */
import { type KeyObject } from 'node:crypto'
import test from 'ava'
import * as fc from 'fast-check'
import { exportJWK, SignJWT } from 'jose'
import * as oidc from 'openid-client'
import { freshKeyPair } from '../../../../runtime/kernel/key-pair.js'
import { isBindingMessage } from '../../../../actors/oauth/tokens/device-and-ciba/ciba-parameters.js'
import { dataIn } from '../../../support/pages/browser.js'
import {
  ciba,
  CIBA_GRANT,
  expire,
  INBOX,
  type Inbox,
  type Told,
} from '../../../support/oauth/ciba.js'
import { sql } from '../../../support/storage/sql.js'
import { bootstrapped, enrolledBrowser, type Workspace } from '../../../support/identity/person.js'
import {
  authorized,
  callbackOf,
  type RelyingParty,
  relyingParty,
} from '../../../support/oauth/relying-party.js'
import { mailbox } from '../../../support/identity/addresses.js'
import { sharedService, type TestService } from '../../../support/service.js'

let running: TestService
let person: Workspace
let party: RelyingParty
let keyed: RelyingParty
let inbox: Inbox
const key = freshKeyPair('P-256')

test.before(async () => {
  running = await sharedService('clients')
  person = await bootstrapped(running)
  party = await bank()
  keyed = await bank({ jwks: { keys: [{ ...(await exportJWK(key.publicKey)) }] } })
  inbox = { ...(await enrolledBrowser(running, person)), running }
})

const bank = (more = {}) => relyingParty(running, person, { grantTypes: [CIBA_GRANT], ...more })
const ask = (fields: Record<string, string>, client = party) => ciba(running, client).start(fields)
const hint = () => ({ login_hint: person.email })

type Case = readonly [title: string, status: number, error: string, () => Promise<Told>]
const REFUSED: readonly Case[] = [
  ['no hint', 400, 'invalid_request', () => ask({})],
  ['two hints', 400, 'invalid_request', () => ask({ ...hint(), id_token_hint: 'x' })],
  [
    'three hints',
    400,
    'invalid_request',
    () => ask({ ...hint(), id_token_hint: 'x', login_hint_token: 'y' }),
  ],
  ['an empty hint', 400, 'invalid_request', () => ask({ login_hint: '' })],
  ['no scope', 400, 'invalid_request', () => ask({ ...hint(), scope: '' })],
  ['no openid', 400, 'invalid_scope', () => ask({ ...hint(), scope: 'email' })],
  [
    'a scope beyond it',
    400,
    'invalid_scope',
    () => ask({ ...hint(), scope: 'openid tenant:manage' }),
  ],
  ['a foreign audience', 400, 'invalid_target', () => ask({ ...hint(), audience: 'urn:x:y' })],
  ['a signed request', 400, 'invalid_request', () => ask({ ...hint(), request: 'a.b.c' })],
  [
    'a level that is not offered',
    400,
    'invalid_request',
    () => ask({ ...hint(), acr_values: 'aal3' }),
  ],
  [
    'a long message',
    400,
    'invalid_binding_message',
    () => ask({ ...hint(), binding_message: 'x'.repeat(65) }),
  ],
  [
    'a NUL in the message',
    400,
    'invalid_binding_message',
    () => ask({ ...hint(), binding_message: 'a\u0000b' }),
  ],
  [
    'two lines in the message',
    400,
    'invalid_binding_message',
    () => ask({ ...hint(), binding_message: 'a\nb' }),
  ],
  [
    'a turned message',
    400,
    'invalid_binding_message',
    () => ask({ ...hint(), binding_message: '\u202E1174' }),
  ],
  [
    'an invisible message',
    400,
    'invalid_binding_message',
    () => ask({ ...hint(), binding_message: '\u200B' }),
  ],
  ['a short expiry', 400, 'invalid_request', () => ask({ ...hint(), requested_expiry: '29' })],
  ['a long expiry', 400, 'invalid_request', () => ask({ ...hint(), requested_expiry: '601' })],
  [
    'no number of seconds',
    400,
    'invalid_request',
    () => ask({ ...hint(), requested_expiry: '6e1' }),
  ],
  ['a forged ID token', 400, 'invalid_request', () => ask({ id_token_hint: 'a.b.c' })],
  [
    'another tenant',
    400,
    'invalid_request',
    async () => ask({ ...hint(), tenant_id: (await bootstrapped(running)).tenantId }),
  ],
  ['a wrong secret', 401, 'invalid_client', () => ask({ ...hint(), client_secret: 'wrong' })],
  [
    'no client',
    401,
    'invalid_client',
    () => ciba(running, party).post('/bc-authorize', { ...hint(), scope: 'openid' }),
  ],
  [
    'an application without the grant',
    403,
    'unauthorized_client',
    async () => ask(hint(), await bank({ grantTypes: ['authorization_code'] })),
  ],
  [
    'a public application',
    401,
    'invalid_client',
    async () => {
      const { clientId } = await bank({ clientType: 'public' })
      const fields = { ...hint(), client_id: clientId, scope: 'openid' }
      return ciba(running, party).post('/bc-authorize', fields)
    },
  ],
]
for (const [title, status, error, send] of REFUSED) {
  test(`a request with ${title} is refused: ${error}`, async (t) => {
    const answer = await send()
    t.like(answer, { status, body: { error } })
    t.is(answer.headers.get('cache-control'), 'no-store')
    t.truthy(answer.body['error_description'])
  })
}

test('a repeated parameter is refused, and GET is not supported', async (t) => {
  const twice = await fetch(`${running.baseUrl}/bc-authorize`, {
    method: 'POST',
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
    body: `client_id=${party.clientId}&client_secret=${party.secret}&scope=openid&login_hint=a&login_hint=b`,
  })
  t.is(twice.status, 400)
  t.is(((await twice.json()) as { error: string }).error, 'invalid_request')
  const get = await fetch(`${running.baseUrl}/bc-authorize`)
  t.is(get.status, 405)
  t.true(get.headers.get('allow')?.includes('POST'))
})

test('the responses do not reveal which users exist', async (t) => {
  const { start, poll } = ciba(running, party)
  const suspended = await bootstrapped(running)
  const hints = [mailbox('unknown'), 'no such subject', suspended.email, 'a@b\u0000', '\u{1F980}@x']
  for (const login_hint of [person.email, ...hints]) {
    const { status, body } = await start({ login_hint, scope: 'openid' })
    t.is(status, 200, login_hint)
    t.deepEqual(Object.keys(body).toSorted(), ['auth_req_id', 'expires_in', 'interval'])
    t.like(body, { expires_in: 300, interval: 1 })
    t.is((await poll(body['auth_req_id'])).body['error'], 'authorization_pending', login_hint)
  }
})

test('an auth_req_id is not a device code, and a device code not an auth_req_id', async (t) => {
  const grantTypes = [CIBA_GRANT, 'urn:ietf:params:oauth:grant-type:device_code']
  const both = await bank({ grantTypes })
  const { post, start, poll } = ciba(running, both)
  const client = { client_id: both.clientId, client_secret: both.secret }
  const { auth_req_id } = (await start(hint())).body
  const { device_code } = (await post('/oauth/device/code', { ...client, scope: 'openid' })).body
  const byDevice = (code: unknown) =>
    post('/oauth/token', { ...client, grant_type: grantTypes[1]!, device_code: String(code) })
  t.is((await byDevice(auth_req_id)).body['error'], 'invalid_grant')
  t.is((await poll(device_code)).body['error'], 'invalid_grant')
  t.is((await byDevice(device_code)).body['error'], 'authorization_pending')
  t.is((await poll(auth_req_id)).body['error'], 'authorization_pending')
})

test('an application cannot use the auth_req_id of another one', async (t) => {
  const other = await bank()
  const { body } = await ask(hint())
  const code = body['auth_req_id']
  t.like(await ciba(running, other).poll(code), { status: 400, body: { error: 'invalid_grant' } })
  const there = await bootstrapped(running)
  const foreign = await relyingParty(running, there, { grantTypes: [CIBA_GRANT] })
  t.like(await ciba(running, foreign).poll(code), { status: 400, body: { error: 'invalid_grant' } })
  t.is(
    (await ciba(running, party).poll(code)).body['error'],
    'authorization_pending',
    'undisturbed',
  )
  const missing = await ciba(running, party).poll('')
  t.is(missing.body['error'], 'invalid_request')
  for (const guess of ['x', 'A'.repeat(43), `${String(code)}A`, '\u0000'])
    t.is((await ciba(running, party).poll(guess)).body['error'], 'invalid_grant', guess)
})

test('an ID token of another application is not a hint', async (t) => {
  const web = await relyingParty(running, person, {})
  const begun = await web.journey()
  const callback = callbackOf(await authorized(inbox.browser, person, begun.url))
  const tokens = await oidc.authorizationCodeGrant(web.config, callback, begun.checks)
  const stolen = await ask({ id_token_hint: tokens.id_token! })
  t.like(stolen, { status: 400, body: { error: 'invalid_request' } })
})

const signed = (
  claims: Record<string, unknown>,
  privateKey: KeyObject = key.privateKey,
  typ = 'login-hint+jwt',
) =>
  new SignJWT({
    iss: keyed.clientId,
    aud: running.baseUrl,
    exp: Math.floor(Date.now() / 1000) + 60,
    sub_id: { format: 'email', email: person.email },
    ...claims,
  })
    .setProtectedHeader({ alg: 'ES256', typ })
    .sign(privateKey)

test('a login_hint_token: signed by the application, for the issuer, not expired', async (t) => {
  const { start } = ciba(running, keyed)
  const ended = Math.floor(Date.now() / 1000) - 1
  const wrong = freshKeyPair('P-256').privateKey
  const bad: readonly (readonly [string, Promise<string>, string])[] = [
    ['expired', signed({ exp: ended }), 'expired_login_hint_token'],
    ['expired and forged', signed({ exp: ended }, wrong), 'invalid_request'],
    ['forged', signed({}, wrong), 'invalid_request'],
    [
      'a client assertion',
      signed({}, key.privateKey, 'client-authentication+jwt'),
      'invalid_request',
    ],
    ['of another application', signed({ iss: party.clientId }), 'invalid_request'],
    ['for another issuer', signed({ aud: 'https://other.example' }), 'invalid_request'],
    ['without an expiry', signed({ exp: undefined }), 'invalid_request'],
    ['without a subject', signed({ sub_id: undefined }), 'invalid_request'],
    [
      'about a phone',
      signed({ sub_id: { format: 'phone_number', phone_number: '+1' } }),
      'invalid_request',
    ],
    [
      'of another issuer’s user',
      signed({ sub_id: { format: 'iss_sub', iss: 'https://other.example', sub: 'x' } }),
      'invalid_request',
    ],
    ['no token', Promise.resolve('nonsense'), 'invalid_request'],
  ]
  for (const [title, token, error] of bad) {
    const answer = await start({ login_hint_token: await token })
    t.like(answer, { status: 400, body: { error } }, title)
  }
  // An application without keys cannot sign a valid one.
  const unkeyed = await ask({ login_hint_token: await signed({ iss: party.clientId }) })
  t.is(unkeyed.body['error'], 'invalid_request')

  const sub = { format: 'iss_sub', iss: running.baseUrl, sub: 'unknown' }
  t.is((await start({ login_hint_token: await signed({ sub_id: sub }) })).status, 200)
  const { status } = await start({
    login_hint_token: await signed({}),
    binding_message: 'by token',
  })
  t.is(status, 200)
  const page = await inbox.browser.get(INBOX)
  t.true(dataIn(page.html, 'binding-message').includes('by token'))
})

test('an answer counts once, and only from a form of the service', async (t) => {
  const { body } = await ask({ ...hint(), binding_message: 'once only' })
  const page = await inbox.browser.get(INBOX)
  const ids = dataIn(page.html, 'request')
  const at = dataIn(page.html, 'binding-message').indexOf('once only')
  const form = page.forms.find(({ action }) => ids.some((id) => action.endsWith(id)))!
  t.true(at >= 0)
  const mine = page.forms.filter(({ action }) => action.startsWith(`${INBOX}/`))
  const path = mine.find(({ action }) => sectionOf(page.html, action).includes('once only'))!.action
  await inbox.browser.post(path, { action: 'approve', csrf_token: '' }).gives(403)
  const answers = await Promise.all(
    Array.from({ length: 20 }, (_, n) =>
      inbox.browser.post(path, { ...form.fields, action: n % 2 === 0 ? 'approve' : 'deny' }),
    ),
  )
  const said = answers.flatMap(({ html }) => dataIn(html, 'decided'))
  // Later answers show what the first one decided.
  t.is(new Set(said).size, 1)
  t.true(answers.every(({ status }) => status === 200 || status === 404))
  const polled = await ciba(running, party).poll(body['auth_req_id'])
  t.is(polled.status === 200, said[0] === 'approved')
})

/** The section with a form. */
const sectionOf = (html: string, action: string): string =>
  html.split('data-request=').find((part) => part.includes(`action="${action}"`)) ?? ''

test('an expired request is in no inbox and cannot be answered', async (t) => {
  const { body } = await ask({ ...hint(), binding_message: 'too late' })
  const page = await inbox.browser.get(INBOX)
  const form = page.forms.find(({ action }) => sectionOf(page.html, action).includes('too late'))!
  await expire(running, body['auth_req_id'])
  await inbox.browser.post(form.action, { ...form.fields, action: 'approve' }).gives(404)
  t.false((await inbox.browser.get(INBOX)).html.includes('too late'))
  t.is((await ciba(running, party).poll(body['auth_req_id'])).body['error'], 'expired_token')
})

test('markup in a message and in a name is shown as text', async (t) => {
  const evil = await bank({ name: '<img src=x onerror=alert(1)>' })
  await ask({ ...hint(), binding_message: '"><script>alert(1)</script>' }, evil)
  const { html } = await inbox.browser.get(INBOX)
  t.false(html.includes('<script>'))
  t.false(html.includes('<img src=x'))
  t.true(dataIn(html, 'binding-message').includes('"><script>alert(1)</script>'))
})

test('arbitrary text never breaks the endpoint', async (t) => {
  const text = (maxLength: number) => fc.string({ unit: 'binary', maxLength })
  await fc.assert(
    fc.asyncProperty(text(200), text(80), async (login_hint, binding_message) => {
      const answer = await ask({ login_hint, binding_message })
      t.true([200, 400].includes(answer.status), `${answer.status}`)
      t.is((await ciba(running, party).poll(binding_message || 'x')).status, 400)
    }),
    { numRuns: 40 },
  )
})

test('a message is one visible line of at most 64 characters', (t) => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary', maxLength: 70 }), (text) => {
      if (!isBindingMessage(text)) return
      t.true([...text].length <= 64 && text.trim() !== '')
      t.notRegex(text, /[\p{Cc}\u200b-\u200f\u2028-\u202e\u2066-\u2069\ufeff]/u)
    }),
  )
  for (const fine of ['4711', 'Kai 7 – Überweisung', '東京 12', '\u{1F40B}'.repeat(64)])
    t.true(isBindingMessage(fine), fine)
})

test('a suspended user cannot grant anything', async (t) => {
  const guest = await bootstrapped(running)
  const shop = await relyingParty(running, guest, { grantTypes: [CIBA_GRANT] })
  const own = await enrolledBrowser(running, guest)
  const { start, answer, poll } = ciba(running, shop)
  const { body } = await start({ login_hint: guest.email })
  await answer(own, 'approve')
  const suspend = 'update tenant_users set status = $2 where tenant_id = $1'
  await sql(running.db.database, suspend, [guest.tenantId, 'suspended'])
  const refused = await poll(body['auth_req_id'])
  t.like(refused, { status: 400, body: { error: 'invalid_grant' } })
})
