import test from 'ava'
import * as fc from 'fast-check'
import {
  isRegistered,
  validateRequest,
  type ValidatedClient,
  PAGE_CHECKS,
  REDIRECT_CHECKS,
} from '../../../../../actors/oauth/tokens/authorization/validate-request.js'
import { withParameters } from '../../../../../actors/oauth/tokens/authorization/locations.js'
import { isOperatorScope, SCOPES } from '../../../../../actors/domain/scopes.js'
import { readForm } from '../../../../../actors/oauth/tokens/form.js'

const CALLBACK = 'https://app.example/callback'
const CHALLENGE = 'E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM'
const client: ValidatedClient = {
  clientType: 'public',
  redirectUris: [CALLBACK, 'https://app.example/cb?kept=1'],
  metadataUrl: null,
  grantTypes: ['authorization_code'],
  responseTypes: ['code'],
  scopes: ['openid', 'profile'],
  requirePkce: false,
  loopbackAnyPort: false,
  dpopBoundAccessTokens: false,
  requirePushedAuthorizationRequests: false,
  requireSignedRequestObject: false,
  authorizationDetailsTypes: ['payment'],
}
const VALID = {
  response_type: 'code',
  redirect_uri: CALLBACK,
  scope: 'openid profile',
  state: 'a state',
  code_challenge: CHALLENGE,
  code_challenge_method: 'S256',
}

type Change = Record<string, string | null>
function validated(change: Change = {}, of: Partial<ValidatedClient> = {}, pushed = false) {
  const fields = Object.entries({ ...VALID, ...change }).filter(
    (field): field is [string, string] => field[1] !== null,
  )
  const form = readForm(fields)
  if ('repeated' in form) throw new Error('repeated')
  return validateRequest({ form, client: { ...client, ...of }, pushed, levelMax: 2 })
}

const confidential: Partial<ValidatedClient> = { clientType: 'confidential' }
const withoutPkce: Change = { code_challenge: null, code_challenge_method: null }
const accepted: [string, Change, Partial<ValidatedClient>?, boolean?][] = [
  ['the plain request', {}],
  ['the other registered address', { redirect_uri: 'https://app.example/cb?kept=1' }],
  ['no state, no nonce and no scope', { state: null, scope: null }],
  ['a long state and a long nonce', { state: 's'.repeat(2048), nonce: 'n'.repeat(2048) }],
  ['a confidential client without PKCE', withoutPkce, confidential],
  ['unknown parameters', { extra: 'foobar', display: 'popup', claims_locales: 'se' }],
  ['prompt login and consent', { prompt: 'login consent' }],
  ['prompt none', { prompt: 'none' }],
  ['max_age 0', { max_age: '0' }],
  ['unknown acr values', { acr_values: 'urn:mace:incommon:iap:silver 2' }],
  ['an essential acr of any value', { claims: '{"id_token":{"acr":{"essential":true}}}' }],
  [
    'an essential acr with one known value',
    { claims: '{"id_token":{"acr":{"essential":true,"values":["urn:a","aal2"]}}}' },
  ],
  ['a voluntary unknown acr', { claims: '{"id_token":{"acr":{"value":"urn:a"}}}' }],
  ['claims without a request', { claims: '{"id_token":null,"userinfo":{"name":null}}' }],
  ['the lower of two levels', { acr_values: 'aal3 aal2' }],
  ['claims', { claims: '{"userinfo":{"name":{"essential":true}},"id_token":{"email":null}}' }],
  ['details of a known type', { authorization_details: '[{"type":"payment","amount":"1"}]' }],
  ['resource and audience that agree', { audience: 'urn:a', resource: 'urn:a' }],
  ['dpop_jkt', { dpop_jkt: CHALLENGE }],
  [
    'a pushed request from a client that must push',
    {},
    { requirePushedAuthorizationRequests: true },
    true,
  ],
  ['scopes in another order', { scope: 'profile openid' }],
  ['an empty parameter, which counts as absent', { request: '', prompt: '' }],
]
for (const [title, change, of, pushed] of accepted) {
  test(`${title} is accepted`, (t) => t.is(validated(change, of, pushed).tag, 'valid'))
}

/** Errors that are never redirected (RFC 9700 section 4.1). */
const refused: [string, Change, string, Partial<ValidatedClient>?][] = [
  ['no redirect URI', { redirect_uri: null }, 'invalid_request'],
  ['another path', { redirect_uri: 'https://app.example/callback2' }, 'invalid_redirect_uri'],
  ['a trailing slash', { redirect_uri: `${CALLBACK}/` }, 'invalid_redirect_uri'],
  ['an added query', { redirect_uri: `${CALLBACK}?x=1` }, 'invalid_redirect_uri'],
  ['another query', { redirect_uri: 'https://app.example/cb?kept=2' }, 'invalid_redirect_uri'],
  ['a missing query', { redirect_uri: 'https://app.example/cb' }, 'invalid_redirect_uri'],
  ['another case', { redirect_uri: 'https://APP.example/callback' }, 'invalid_redirect_uri'],
  [
    'the default port',
    { redirect_uri: 'https://app.example:443/callback' },
    'invalid_redirect_uri',
  ],
  ['a user', { redirect_uri: 'https://app.example@evil.example/callback' }, 'invalid_redirect_uri'],
  ['dots', { redirect_uri: 'https://app.example/x/../callback' }, 'invalid_redirect_uri'],
  ['a fragment', { redirect_uri: `${CALLBACK}#x` }, 'invalid_redirect_uri'],
  ['a public client without PKCE', withoutPkce, 'pkce_required'],
  [
    'require_pkce without PKCE',
    withoutPkce,
    'pkce_required',
    { ...confidential, requirePkce: true },
  ],
  ['the method plain', { code_challenge_method: 'plain' }, 'invalid_request'],
  ['no method', { code_challenge_method: null }, 'invalid_request'],
  ['an unknown method', { code_challenge_method: 'S512' }, 'invalid_request'],
]
for (const [title, change, error, of] of refused) {
  test(`${title} is refused on a page and not redirected`, (t) =>
    t.like(validated(change, of), { tag: 'refused', error }))
}

const returned: [string, Change, string, Partial<ValidatedClient>?][] = [
  ['no response type', { response_type: null }, 'invalid_request'],
  ['response_type token', { response_type: 'token' }, 'unsupported_response_type'],
  ['response_type code id_token', { response_type: 'code id_token' }, 'unsupported_response_type'],
  ['response_mode fragment', { response_mode: 'fragment' }, 'invalid_request'],
  ['no such grant', {}, 'unauthorized_client', { grantTypes: ['client_credentials'] }],
  ['a request object', { request: 'e30.e30.' }, 'request_not_supported'],
  ['a foreign request_uri', { request_uri: 'https://x.example/r' }, 'request_uri_not_supported'],
  ['a registration', { registration: '{}' }, 'registration_not_supported'],
  ['not pushed', {}, 'invalid_request', { requirePushedAuthorizationRequests: true }],
  ['not signed', {}, 'invalid_request', { requireSignedRequestObject: true }],
  ['a challenge of 42 characters', { code_challenge: CHALLENGE.slice(1) }, 'invalid_request'],
  ['a challenge with padding', { code_challenge: `${CHALLENGE}=` }, 'invalid_request'],
  ['an unknown scope', { scope: 'openid root' }, 'invalid_scope'],
  ['a malformed scope', { scope: 'openid  profile' }, 'invalid_scope'],
  ['two audiences that differ', { audience: 'urn:a', resource: 'urn:b' }, 'invalid_target'],
  ['prompt none with login', { prompt: 'none login' }, 'invalid_request'],
  ['an unknown prompt', { prompt: 'create' }, 'invalid_request'],
  ['max_age -1', { max_age: '-1' }, 'invalid_request'],
  ['max_age 1.5', { max_age: '1.5' }, 'invalid_request'],
  ['claims that are not JSON', { claims: '{' }, 'invalid_request'],
  ['claims that are an array', { claims: '[]' }, 'invalid_request'],
  ['claims of a wrong shape', { claims: '{"id_token":{"name":1}}' }, 'invalid_request'],
  ['unknown details', { authorization_details: '[{"type":"x"}]' }, 'invalid_authorization_details'],
  ['details without a type', { authorization_details: '[{}]' }, 'invalid_authorization_details'],
  ['no details', { authorization_details: '[]' }, 'invalid_authorization_details'],
  ['a short dpop_jkt', { dpop_jkt: 'x' }, 'invalid_request'],
  ['aal3', { acr_values: 'aal3' }, 'unmet_authentication_requirements'],
  [
    'an unknown essential acr',
    { claims: '{"id_token":{"acr":{"essential":true,"values":["urn:a","urn:b"]}}}' },
    'unmet_authentication_requirements',
  ],
  ['a state that is too long', { state: 's'.repeat(8193) }, 'invalid_request'],
]
for (const [title, change, error, of] of returned) {
  test(`${title} is redirected to the client`, (t) => {
    const verdict = validated(change, of)
    t.like(verdict, { tag: 'returned', error, redirectUri: CALLBACK })
    if (verdict.tag === 'returned' && change['state'] === undefined) t.is(verdict.state, 'a state')
  })
}

test('errors that are not redirected come first', (t) => {
  const everythingWrong = { response_type: 'token', scope: 'root', prompt: 'none login' }
  t.is(validated({ ...everythingWrong, redirect_uri: 'https://evil.example' }).tag, 'refused')
  t.is(validated({ ...everythingWrong, ...withoutPkce }).tag, 'refused')
  t.is(validated(everythingWrong).tag, 'returned')
  t.true(PAGE_CHECKS.length > 3 && REDIRECT_CHECKS.length > 15, 'the tables are what was run')
})

test('an unregistered address never gets a redirect, whatever the request contains', (t) => {
  const text = fc.string({ maxLength: 40 })
  const change = fc.dictionary(
    fc.constantFrom('response_type', 'scope', 'state', 'prompt', 'max_age', 'claims', 'request'),
    text,
  )
  const uri = fc.oneof(
    fc.webUrl({ withQueryParameters: true, withFragments: true }),
    text,
    fc.constantFrom(
      CALLBACK,
      `${CALLBACK}/`,
      `${CALLBACK}?`,
      ' ' + CALLBACK,
      CALLBACK.toUpperCase(),
    ),
  )
  t.notThrows(() =>
    fc.assert(
      fc.property(uri, change, (redirect_uri, more) => {
        const verdict = validated({ ...more, redirect_uri })
        if (verdict.tag === 'returned') return client.redirectUris.includes(verdict.redirectUri)
        if (verdict.tag === 'valid')
          return client.redirectUris.includes(verdict.request.redirectUri)
        return true
      }),
    ),
  )
})

const only = (redirectUris: readonly string[]) => ({
  redirectUris: [...redirectUris],
  loopbackAnyPort: false,
})

test('a redirect URI is registered only if it is the same text', (t) => {
  const uris = fc.array(fc.webUrl({ withQueryParameters: true }), { maxLength: 5 })
  fc.assert(
    fc.property(uris, fc.webUrl(), (registered, one) => {
      if (!registered.every((uri) => isRegistered(uri, only(registered)))) return false
      return isRegistered(one, only(registered)) === registered.some((uri) => uri === one)
    }),
  )
  t.notThrows(() =>
    fc.assert(
      fc.property(
        fc.webUrl(),
        fc.nat(60),
        fc.string({ minLength: 1, maxLength: 1 }),
        (uri, at, c) => {
          const changed = uri.slice(0, at) + c + uri.slice(at)
          return changed === uri || !isRegistered(changed, only([uri]))
        },
      ),
    ),
  )
})

test('the requested scopes are exactly the scopes of the request, each once', (t) => {
  // A client asks a person for the scopes of operators only if it holds them.
  const askable = SCOPES.filter((scope) => !isOperatorScope(scope))
  const list = fc.array(fc.constantFrom(...askable), { minLength: 1, maxLength: 8 })
  fc.assert(
    fc.property(list, (scopes) => {
      const verdict = validated({ scope: scopes.join(' ') })
      if (verdict.tag !== 'valid') return false
      return [...new Set(scopes)].join() === verdict.request.scopes.join()
    }),
  )
  t.notThrows(() =>
    fc.assert(
      fc.property(fc.string({ minLength: 1 }), (scope) => {
        const verdict = validated({ scope })
        const known = scope.split(' ').every((one) => (askable as readonly string[]).includes(one))
        return verdict.tag === (known ? 'valid' : 'returned')
      }),
    ),
  )
})

test('a repeated parameter is refused, whichever it is', (t) => {
  const names = Object.keys(VALID)
  fc.assert(
    fc.property(fc.constantFrom(...names), fc.string(), fc.string(), (name, one, other) => {
      const form = readForm([...Object.entries(VALID), [name, one], ['x', other]])
      return 'repeated' in form && form.repeated === name
    }),
  )
  t.false(
    'repeated' in
      readForm([
        ['resource', 'urn:a'],
        ['resource', 'urn:b'],
      ]),
  )
})

test('a response keeps the query of the redirect URI, and its parameters can be read back', (t) => {
  fc.assert(
    fc.property(fc.webUrl({ withQueryParameters: true }), fc.string(), fc.string(), (uri, a, b) => {
      const location = withParameters(uri, { code: a, state: b, none: null })
      const query = new URL(location).searchParams
      return (
        location.startsWith(uri) &&
        query.getAll('code').at(-1) === a &&
        query.getAll('state').at(-1) === b &&
        !query.has('none')
      )
    }),
  )
  t.is(withParameters('com.app:/cb', { code: 'x y' }), 'com.app:/cb?code=x+y')
  t.is(withParameters('https://a.example/?', { code: 'x' }), 'https://a.example/?code=x')
})
