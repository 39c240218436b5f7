/**
 * Refusals that all OAuth endpoints share: errors that must not be redirected, repeated parameters, no-store, and unregistered
 * redirect URIs at PAR.
 */
import type { ExecutionContext } from 'ava'
import { type Answer, callerOf } from '../../support/agents/journey.js'
import { isOAuthError, isProblem } from '../../support/service/refusals.js'
import { CALLBACK, type RelyingParty } from '../../support/oauth/relying-party.js'
import { bearer, type Fields, type Scene, secretOf, test, UNKNOWN_ID } from './scene.js'

const CHALLENGE = 'E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM'

const requestOf = ({ clientId }: RelyingParty): Fields => ({
  response_type: 'code',
  client_id: clientId,
  redirect_uri: CALLBACK,
  scope: 'openid',
  state: 's',
  code_challenge: CHALLENGE,
  code_challenge_method: 'S256',
})
const without = (fields: Fields, ...names: readonly string[]): Fields =>
  Object.fromEntries(Object.entries(fields).filter(([name]) => !names.includes(name)))

type Row = readonly [
  when: string,
  error: string,
  request: (scene: Scene) => Fields,
  /** The refusal at PAR, if it differs. */
  pushed?: readonly [status: number, error: string],
]
// biome-ignore format: a table
const NEVER_REDIRECTED: readonly Row[] = [
  ['an unknown client', 'invalid_client', ({ web }) => ({ ...requestOf(web), client_id: UNKNOWN_ID }), [401, 'invalid_client']],
  ['a malformed client id', 'invalid_client', ({ web }) => ({ ...requestOf(web), client_id: "' or 1=1" }), [401, 'invalid_client']],
  ['no client', 'invalid_request', ({ web }) => without(requestOf(web), 'client_id'), [401, 'invalid_client']],
  ['an unregistered redirect URI', 'invalid_redirect_uri', ({ spa }) => ({ ...requestOf(spa), redirect_uri: 'https://evil.example/' })],
  ['a redirect URI with a slash more', 'invalid_redirect_uri', ({ spa }) => ({ ...requestOf(spa), redirect_uri: `${CALLBACK}/` })],
  ['a redirect URI with another port', 'invalid_redirect_uri', ({ spa }) => ({ ...requestOf(spa), redirect_uri: CALLBACK.replace('app.example', 'app.example:444') })],
  ['a redirect URI with a query more', 'invalid_redirect_uri', ({ spa }) => ({ ...requestOf(spa), redirect_uri: `${CALLBACK}?a=b` })],
  ['a redirect URI in other letters', 'invalid_redirect_uri', ({ spa }) => ({ ...requestOf(spa), redirect_uri: CALLBACK.toUpperCase() })],
  ['no redirect URI', 'invalid_request', ({ spa }) => without(requestOf(spa), 'redirect_uri')],
  ['a public client without PKCE', 'pkce_required', ({ spa }) => without(requestOf(spa), 'code_challenge', 'code_challenge_method')],
  ['a challenge without its method', 'invalid_request', ({ spa }) => without(requestOf(spa), 'code_challenge_method')],
  ['the method plain', 'invalid_request', ({ spa }) => ({ ...requestOf(spa), code_challenge_method: 'plain' })],
  ['the method in lower case', 'invalid_request', ({ spa }) => ({ ...requestOf(spa), code_challenge_method: 's256' })],
  ['tenant_id together with tenant_slug', 'invalid_request', ({ spa, here }) => ({ ...requestOf(spa), tenant_id: here.tenantId, tenant_slug: String(here.body['tenant_slug']) })],
  ['the id of another tenant', 'invalid_client', ({ spa, there }) => ({ ...requestOf(spa), tenant_id: there.tenantId }), [400, 'invalid_request']],
  ['the slug of another tenant', 'invalid_client', ({ spa, there }) => ({ ...requestOf(spa), tenant_slug: String(there.body['tenant_slug']) }), [400, 'invalid_request']],
  ['an unknown tenant', 'invalid_client', ({ spa }) => ({ ...requestOf(spa), tenant_id: UNKNOWN_ID }), [400, 'invalid_request']],
  ['an unknown request_uri', 'invalid_request_uri', ({ spa }) => ({ client_id: spa.clientId, request_uri: `urn:ietf:params:oauth:request_uri:${'a'.repeat(43)}` }), [400, 'invalid_request']],
]

/** Declares their tests. */
export function neverRedirected(): void {
  for (const [when, error, request, pushed = [400, error] as const] of NEVER_REDIRECTED) {
    test.serial(`never redirected: ${when}`, async (t) => {
      const { running } = t.context
      const { call, form } = callerOf(running.baseUrl)
      const fields = request(t.context)
      const query = new URLSearchParams(fields).toString()
      const asked = (init: RequestInit & { headers: Record<string, string> }, path = '') =>
        call(`/oauth/authorize${path}`, { redirect: 'manual', ...init })
      const json = { accept: 'application/json' }
      const html = { accept: 'text/html,application/xhtml+xml,*/*;q=0.8' }
      const body = new URLSearchParams(fields)
      for (const answer of [
        await asked({ headers: json }, `?${query}`),
        await asked({ method: 'POST', headers: json, body }),
      ]) {
        isOAuthError(t, answer, { status: 400, code: error, headers: { location: null } })
      }
      for (const answer of [
        await asked({ headers: html }, `?${query}`),
        await asked({ method: 'POST', headers: html, body }),
      ]) {
        t.is(answer.status, 400)
        t.is(answer.headers.get('content-type'), 'text/html; charset=utf-8')
        t.is(answer.headers.get('location'), null)
        t.is(answer.headers.get('cache-control'), 'no-store')
        t.true(answer.text.includes(error), 'the page names the error')
        t.true(answer.text.includes(answer.headers.get('x-request-id')!), 'and the request')
      }
      const [status, code] = pushed
      isOAuthError(t, await form('/oauth/par', fields), { status, code })
    })
  }
}

type Endpoint = readonly [path: string, fields: (scene: Scene) => Fields]
// biome-ignore format: a table
const ENDPOINTS: readonly Endpoint[] = [
  ['/oauth/token', ({ web }) => ({ ...secretOf(web), grant_type: 'refresh_token', refresh_token: 'x' })],
  ['/oauth/par', ({ web }) => ({ ...requestOf(web), ...secretOf(web) })],
  ['/oauth/revoke', ({ web }) => ({ ...secretOf(web), token: 'x' })],
  ['/oauth/introspect', ({ web }) => ({ ...secretOf(web), token: 'x' })],
  ['/oauth/device/code', ({ web }) => ({ ...secretOf(web), scope: 'openid' })],
  ['/bc-authorize', ({ web }) => ({ ...secretOf(web), scope: 'openid', login_hint: 'a@b.example' })],
  ['/oauth/authorize', ({ web }) => requestOf(web)],
  ['/oauth/end-session', () => ({ id_token_hint: 'x', state: 's' })],
]

/** Declares the tests of each endpoint, and of all of them. */
export function endpoints(): void {
  for (const [path, fields] of ENDPOINTS) {
    test.serial(`${path}: a repeated parameter is refused, even with the same value`, async (t) => {
      const { call } = callerOf(t.context.running.baseUrl)
      const all: [string, string][] = [...Object.entries(fields(t.context)), ['unknown', 'x']]
      for (const [name, value] of all) {
        const twice = all.filter(([one]) => one !== name)
        const body = new URLSearchParams([...twice, [name, value], [name, value]])
        const answer = await call(path, { method: 'POST', body, redirect: 'manual' })
        isOAuthError(t, answer, { status: 400, code: 'invalid_request' })
      }
    })

    test.serial(
      `${path}: bytes that no client sends are refused in the protocol's words`,
      async (t) => {
        const { call } = callerOf(t.context.running.baseUrl)
        for (const body of UGLY) {
          const answer = await call(path, {
            method: 'POST',
            headers: { 'content-type': FORM },
            body,
            redirect: 'manual',
          })
          t.true(answer.status === 400 || answer.status === 401, `${answer.status} ${answer.text}`)
          t.regex(String(answer.body['error']), /^invalid_(request|client)$/)
        }
      },
    )
  }
  // The generated rows leave out routes that answer with pages.
  for (const path of ['/oauth/authorize', '/oauth/end-session']) {
    test.serial(`${path}: what is no form is a problem document`, async (t) => {
      const { running } = t.context
      const { call } = callerOf(running.baseUrl)
      for (const [type, body, status, code, name] of [
        ['application/json', '{}', 415, 'unsupported_media_type', 'unsupported-media-type'],
        ['text/plain', 'a=b', 415, 'unsupported_media_type', 'unsupported-media-type'],
        [FORM, `a=${'x'.repeat(70_000)}`, 413, 'payload_too_large', 'payload-too-large'],
      ] as const) {
        const answer = await call(path, { method: 'POST', headers: { 'content-type': type }, body })
        isProblem(t, answer, running.issuer, { status, code, name })
        t.truthy(answer.body['error_description'])
      }
    })
  }
  test.serial('answers of these endpoints are never cached', neverCached)
}
const FORM = 'application/x-www-form-urlencoded'
const UGLY: readonly (string | Uint8Array)[] = [
  '',
  '&&&===',
  '%',
  '%zz=%',
  'grant_type',
  '=',
  'client_id=%00&client_secret=%00',
  'client_id=%ff%fe&grant_type=%c0%80',
  'client_id=%ED%A0%80',
  `client_id=${'a'.repeat(60_000)}`,
  Array.from({ length: 3_000 }, (_, n) => `p${n}=1`).join('&'),
  'client_id[]=a&client_id[$ne]=b',
  '__proto__=x&constructor=y&client_id=toString',
  'client_id=%E2%80%AE&request_uri=javascript:alert(1)',
  new Uint8Array([0xff, 0xfe, 0x00, 0x3d, 0x80]),
]

// no-store for success and error.
async function neverCached(t: ExecutionContext<Scene>): Promise<void> {
  const { running, strict, here, web } = t.context
  const { form } = callerOf(running.baseUrl)
  const { call } = callerOf(strict.baseUrl)
  const answers: Answer[] = []
  for (const [path, fields] of ENDPOINTS) answers.push(await form(path, fields(t.context)))
  const made = await callerOf(strict.baseUrl).post(
    '/api/v1/oauth/registration-tokens',
    {},
    bearer(here.token),
  )
  const registering = (body: unknown) =>
    call('/oauth/register', {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        authorization: `Bearer ${String(made.body['token'])}`,
        // The test of the quota uses up the quota of its address.
        'x-forwarded-for': '192.0.2.7',
      },
      body: JSON.stringify(body),
    })
  answers.push(await registering({ redirect_uris: 1 }))
  const registered = await registering({ redirect_uris: [CALLBACK] })
  t.is(registered.status, 201, registered.text)
  answers.push(registered, await registering({ redirect_uris: [CALLBACK] }))
  const bad = { ...secretOf(web), client_secret: 'wrong', token: 'x' }
  for (const [path] of ENDPOINTS.slice(0, 6)) answers.push(await form(path, bad))
  t.true(answers.some(({ status }) => status < 300) && answers.some(({ status }) => status >= 400))
  for (const answer of answers) t.is(answer.headers.get('cache-control'), 'no-store', answer.text)
}
