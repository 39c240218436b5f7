/** Attacks and failures of an identity provider. */
import type { ServerResponse } from 'node:http'
import test from 'ava'
import { apiOf } from '../../../support/api.js'
import { openBrowser, type TestBrowser } from '../../../support/pages/browser.js'
import {
  type HostileProvider,
  hostileProvider,
  type Mood,
} from '../../../support/identity/hostile-provider.js'
import { sql } from '../../../support/storage/sql.js'
import { bootstrapped } from '../../../support/identity/person.js'
import { testService } from '../../../support/service.js'
import { departed, FROM_OUR_PAGE, reachable } from '../../../support/vault/upstream.js'

const [evil, good] = [await hostileProvider(), await hostileProvider()]
const way = await reachable([good.pem])
const running = await testService({
  environment: {
    ...way.environment,
    SVC_GENERIC_OAUTH__ENABLED: 'true',
    SVC_GENERIC_OAUTH__ISSUER: good.issuer,
    SVC_GENERIC_OAUTH__CLIENT_ID: 'rp',
    SVC_GENERIC_OAUTH__CLIENT_SECRET: 'the client secret of the relying party',
    SVC_SOCIAL__ACCOUNT_LINKING__ENABLED: 'true',
    SVC_ENTERPRISE_SSO__ENABLED: 'true',
  },
})
const api = apiOf(running)
const workspace = await bootstrapped(running)
await sql(running)`
  update tenants set settings = ${JSON.stringify({ social: { provision: true } })}
  where id = ${workspace.tenantId}`
test.after.always(() => Promise.all([evil.close(), good.close()]))

test.afterEach.always(async () => {
  evil.mood = {}
  good.mood = {}
  await sql(running)`delete from accounts where email like '%evil.example'`
})

type Sent = { readonly browser: TestBrowser; readonly state: string; readonly url: URL }

async function sent(provider: HostileProvider, id = 'oidc'): Promise<Sent> {
  const browser = openBrowser(running)
  const away = await departed(browser, workspace, id)
  if (away.location === null) throw new Error(`${away.status} ${away.html}`)
  const url = new URL(away.location)
  provider.nonce = url.searchParams.get('nonce')!
  return { browser, url, state: url.searchParams.get('state')! }
}

function back(
  { browser, state }: Sent,
  parameters: Readonly<Record<string, string>> = { iss: good.issuer },
  id = 'oidc',
) {
  const query = new URLSearchParams({ code: 'abc', state, ...parameters })
  return browser.get(`/auth/sso/callback/${id}?${query.toString()}`)
}

const sessions = () => sql<{ count: number }>(running)`select count(*)::int from browser_sessions`

const isSignedIn = async (browser: TestBrowser) =>
  (await browser.get('/auth/account')).status === 200

test.serial('the test provider signs a user in when it behaves correctly', async (t) => {
  const visit = await sent(good)
  t.is((await back(visit)).status, 200)
  t.true(await isSignedIn(visit.browser))
  const form = good.redeemed.at(-1)!
  t.is(form.get('grant_type'), 'authorization_code')
  t.is(form.get('redirect_uri'), `${running.issuer}/auth/sso/callback/oidc`)
  t.truthy(form.get('code_verifier'))
})

const now = () => Math.floor(Date.now() / 1000)
const LIES: Readonly<Record<string, () => Mood>> = {
  'another issuer': () => ({ claims: { iss: evil.issuer } }),
  'another nonce': () => ({ claims: { nonce: 'replayed' } }),
  'no nonce': () => ({ claims: { nonce: undefined } }),
  'another audience': () => ({ claims: { aud: 'someone-else' } }),
  'two audiences and another party': () => ({ claims: { aud: ['rp', 'x'], azp: 'x' } }),
  'two audiences and no party': () => ({ claims: { aud: ['rp', 'x'] } }),
  'no audience': () => ({ claims: { aud: [] } }),
  'no issuer': () => ({ claims: { iss: undefined } }),
  'an expired token': () => ({ claims: { iat: now() - 900, exp: now() - 600 } }),
  'a time of issue in the future': () => ({ claims: { iat: now() + 9_999, exp: now() + 19_999 } }),
  'a sign-in in the future': () => ({ claims: { auth_time: now() + 600 } }),
  'a sign-in in the future as text': () => ({ claims: { auth_time: `${now() + 600}` } }),
  'no time of issue': () => ({ claims: { iat: undefined } }),
  'a time of issue as text': () => ({ claims: { iat: `${now()}` } }),
  'a time that has not come': () => ({ claims: { nbf: now() + 600 } }),
  'a time that has not come as text': () => ({ claims: { nbf: `${now() - 600}` } }),
  'no expiry': () => ({ claims: { exp: undefined } }),
  'an expiry as text': () => ({ claims: { exp: `${now() + 300}` } }),
  'no subject': () => ({ claims: { sub: undefined } }),
  'a number as subject': () => ({ claims: { sub: 7 } }),
  'an empty subject': () => ({ claims: { sub: '' } }),
  'a subject that is too long': () => ({ claims: { sub: 'x'.repeat(10_000) } }),
  'alg none': () => ({ alg: 'none' }),
  'an HMAC by the client secret': () => ({ alg: 'HS256' }),
  'an algorithm that the metadata does not have': () => ({ alg: 'EdDSA' }),
  'a critical extension': () => ({ header: { crit: ['b64'], b64: true } }),
  'two subjects': () => ({ text: (claims) => claims.replace('{', '{"sub":"victim",') }),
  'a list of claims': () => ({ text: (claims) => `[${claims}]` }),
  'an encrypted ID token': () => ({ tokenMembers: { id_token: 'e30.e30.e30.e30.e30' } }),
  'a number as ID token': () => ({ tokenMembers: { id_token: 7 } }),
  'no ID token': () => ({ tokenMembers: { id_token: undefined } }),
  'a key that is not in the set': () => ({ foreignKey: true }),
  'userinfo of another subject': () => ({
    claims: { email: undefined },
    userinfo: { sub: 'someone-else', email: 'mallory@evil.example', email_verified: true },
  }),
}
for (const [what, mood] of Object.entries(LIES)) {
  test.serial(`a response with ${what} does not sign in`, async (t) => {
    const visit = await sent(good)
    good.mood = mood()
    const answer = await back(visit)
    t.is(answer.status, 502, answer.html)
    t.false(await isSignedIn(visit.browser))
    t.is((await sql(running)`select from accounts where email like '%evil.example'`).length, 0)
  })
}

test.serial(
  'a response without issuer or with another one is refused before its code is redeemed',
  async (t) => {
    for (const parameters of [{}, { iss: evil.issuer }, { iss: `${good.issuer}/` }]) {
      const visit = await sent(good)
      const redeemed = good.redeemed.length
      const answer = await back(visit, parameters as Record<string, string>)
      t.is(answer.status, 502)
      t.is(good.redeemed.length, redeemed)
    }
  },
)

test.serial('the code of one provider is never sent to another (mix-up)', async (t) => {
  const { token } = await api.workspace()
  t.is((await api.get('/api/v1/sso/providers', token)).status, 200)
  const [row] = await sql<{ id: string }>(running)`
    insert into sso_providers (tenant_id, id, name, issuer, client_id,
    token_endpoint_auth_method, scopes, trusted_acr_values, provision, active, created_at,
    updated_at)
    values (${workspace.tenantId}, gen_random_uuid(), 'Evil', ${evil.issuer}, 'rp', 'none',
    '{openid}', '{}', true, true, now(),
    now()) returning id`
  const { id } = row!
  t.teardown(() => sql(running)`delete from sso_providers`.then(() => undefined))
  // The user chose the malicious provider, which forwards them to the good one with its own state.
  const visit = await sent(evil, id)
  const [before, after] = [evil.redeemed.length, good.redeemed.length]
  const answer = await back(visit, { iss: good.issuer }, id)
  t.is(answer.status, 502)
  t.is((await back(await sent(evil, id), { iss: evil.issuer }, 'oidc')).status, 400)
  t.is(evil.redeemed.length, before, 'the malicious provider got no code')
  t.is(good.redeemed.length, after)
})

test.serial(
  'an unverified address of the provider neither takes over nor creates an account',
  async (t) => {
    await sql(running)`
      insert into accounts (id, email, email_key, email_verified, created_at, updated_at)
      values (gen_random_uuid(), 'victim@evil.example', 'victim@evil.example', true, now(), now())`
    for (const [email, verified] of [
      ['victim@evil.example', false],
      ['victim@evil.example', undefined],
      ['VICTIM@evil.example', 'TRUE'],
      ['victim@evil.example', 1],
      ['fresh@evil.example', false],
      ['fresh@evil.example', undefined],
      ['victim@evil.example\u0000', true],
      [['victim@evil.example'], true],
      ['<script>@evil.example', true],
    ] as const) {
      const visit = await sent(good)
      good.mood = { claims: { email, email_verified: verified } }
      const answer = await back(visit)
      t.is(answer.status, 403, `${String(email)} ${String(verified)}: ${answer.html}`)
      t.false(await isSignedIn(visit.browser))
    }
    t.is((await sql(running)`select from upstream_identities`).length, 0)
  },
)

test.serial('email_verified counts only for the address of the same document', async (t) => {
  const visit = await sent(good)
  good.mood = {
    claims: { email: 'victim@evil.example', email_verified: undefined, name: undefined },
    userinfo: { email: 'mallory@evil.example', email_verified: true },
  }
  t.is((await back(visit)).status, 403)
  t.false(await isSignedIn(visit.browser))
  const same = await sent(good)
  good.mood = { ...good.mood, userinfo: { email: 'victim@evil.example', email_verified: true } }
  t.is((await back(same)).status, 200)
})

test.serial('an address reassigned to another subject is not linked', async (t) => {
  t.is((await back(await sent(good))).status, 200)
  const visit = await sent(good)
  good.mood = { claims: { sub: 'the-next-mallory' } }
  const answer = await back(visit)
  t.is(answer.status, 403)
  t.true(answer.html.includes('Sign in as before, then link this provider'))
  t.false(await isSignedIn(visit.browser))
})

test.serial('the same subject with another address is the same account', async (t) => {
  t.is((await back(await sent(good))).status, 200)
  const visit = await sent(good)
  good.mood = { claims: { email: 'renamed@evil.example' } }
  t.is((await back(visit)).status, 200)
  const accounts = await sql(running)`select from accounts where email like '%evil.example'`
  t.is(accounts.length, 1)
})

test.serial('a password set by a squatter does not work after the owner signs in', async (t) => {
  await sql(running)`
    insert into accounts (id, email, email_key, email_verified, password_hash, created_at,
    updated_at)
    values (gen_random_uuid(), 'mallory@evil.example', 'mallory@evil.example', false, 'x', now(),
    now())`
  t.is((await back(await sent(good))).status, 200)
  const [row] = await sql(running)`
    select email_verified as proved, password_hash as hash from accounts
    where email = 'mallory@evil.example'`
  t.deepEqual(row, { proved: true, hash: null })
})

test.serial('concurrent callbacks of one new user create one account', async (t) => {
  const visits = await Promise.all(Array.from({ length: 8 }, () => sent(good)))
  const answers = await Promise.all(
    visits.map((visit) => {
      const code = `nonce.${visit.url.searchParams.get('nonce')!}`
      return back(visit, { iss: good.issuer, code })
    }),
  )
  t.deepEqual([...new Set(answers.map(({ status }) => status))], [200])
  const [row] = await sql<{ accounts: number; identities: number; users: number }>(running)`
    select count(*)::int as accounts, count(i)::int as identities, count(u)::int as users
    from accounts a left join upstream_identities i on i.account_id = a.id
    left join tenant_users u on u.account_id = a.id
    where a.email like '%evil.example'`
  t.deepEqual(row, { accounts: 1, identities: 1, users: 1 })
})

test.serial('of concurrent callbacks with one state, one opens a session', async (t) => {
  const visit = await sent(good)
  const [before] = await sessions()
  const redeemed = good.redeemed.length
  const answers = await Promise.all(Array.from({ length: 8 }, () => back(visit)))
  t.is(answers.filter(({ status }) => status === 200).length, 1)
  t.is(answers.filter(({ status }) => status === 400).length, 7)
  const [after] = await sessions()
  t.is(after!.count - before!.count, 1)
  t.is(good.redeemed.length - redeemed, 1, 'the code was sent once')
  t.true(await isSignedIn(visit.browser))
})

const FAILURES: Readonly<Record<string, readonly [Mood['answer'], status: number]>> = {
  'does not respond': [{ token: () => undefined }, 503],
  'responds byte by byte': [
    {
      token: (response) => {
        response.writeHead(200, { 'content-type': 'application/json' })
        const drop = setInterval(() => response.write(' '), 100)
        response.on('close', () => clearInterval(drop))
      },
    },
    503,
  ],
  'sends an endless response': [
    {
      token: (response) => {
        response.writeHead(200, { 'content-type': 'application/json' })
        response.end(`"${'x'.repeat(2_000_000)}"`)
      },
    },
    503,
  ],
  'redirects to another place': [
    {
      token: (response) => response.writeHead(307, { location: `${evil.issuer}/token` }).end(),
    },
    502,
  ],
  'hangs up': [{ token: (response) => response.destroy() }, 503],
  fails: [{ token: (response) => response.writeHead(500).end('<b>stack trace</b>') }, 502],
  'says nonsense': [
    {
      token: (response) =>
        response.writeHead(200, { 'content-type': 'application/json' }).end('{"access_token":'),
    },
    502,
  ],
  'refuses the code': [
    {
      token: (response) =>
        response
          .writeHead(400, { 'content-type': 'application/json' })
          .end('{"error":"invalid_grant","error_description":"<script>alert(1)</script>"}'),
    },
    502,
  ],
}
for (const [what, [answer, status]] of Object.entries(FAILURES)) {
  test.serial(`a provider that ${what} gets an error page`, async (t) => {
    t.timeout(60_000)
    const visit = await sent(good)
    good.mood = { answer: answer! }
    const redeemed = evil.redeemed.length
    const page = await back(visit)
    t.is(page.status, status, page.html)
    t.is(page.headers['retry-after'], status === 503 ? '5' : undefined)
    t.false(page.html.includes('stack trace'))
    t.false(page.html.includes('alert(1)'))
    t.is(evil.redeemed.length, redeemed)
    t.false(await isSignedIn(visit.browser))
  })
}

for (const [what, metadata] of Object.entries({
  'another issuer': { issuer: 'https://id.example.org' },
  'a script for an address': { authorization_endpoint: 'javascript:alert(1)' },
  'plain http': { authorization_endpoint: 'http://localhost/authorize' },
  'keys over plain http': { jwks_uri: 'http://localhost/jwks' },
  'no keys': { jwks_uri: undefined },
  'no signature but none': { id_token_signing_alg_values_supported: ['none', 'HS256'] },
})) {
  test.serial(`a provider with ${what} in its metadata is not used`, async (t) => {
    evil.mood = { metadata }
    const other = await tenantProvider(evil)
    const judged = await departed(openBrowser(running), workspace, other)
    t.is(judged.status, 502, judged.html)
    t.is(judged.location, null)
  })
}

async function tenantProvider(provider: HostileProvider): Promise<string> {
  const [row] = await sql<{ id: string }>(running)`
    insert into sso_providers (tenant_id, id, name, issuer, client_id,
    token_endpoint_auth_method, scopes, trusted_acr_values, provision, active, created_at,
    updated_at)
    values (${workspace.tenantId}, gen_random_uuid(), 'Strange', ${provider.issuer}, 'rp', 'none',
    '{openid}', '{}', true, true,
    now(), now()) returning id`
  return row!.id
}

test.serial('a required re-authentication must be confirmed by the provider', async (t) => {
  const first = await sent(good)
  t.is((await back(first)).status, 200)
  // Signed in, then asked again by an application that requires a fresh authentication.
  const [row] = await sql<{ token: string }>(running)`
    update sign_in_flows set max_age_secs = 0 where tenant_id = ${workspace.tenantId}
    returning 'x' as token`
  t.truthy(row)
  for (const [authTime, status] of [
    [undefined, 403],
    [null, 403],
    ['today', 403],
    [true, 403],
    [now() - 3_600, 403],
    [`${now() - 3_600}`, 403],
    [now(), 200],
    [`${now()}`, 200],
  ] as const) {
    const visitor = openBrowser(running)
    const query = `tenant_slug=${workspace.tenantSlug}`
    const page = await visitor.get(`/auth/login?${query}`)
    const flow = /flow=([A-Za-z0-9_-]{43})/.exec(page.html)![1]!
    await sql(running)`
      update sign_in_flows set max_age_secs = 60 where tenant_id = ${workspace.tenantId}`
    const away = await visitor.get(`/auth/sso/start?flow=${flow}&provider=oidc`, FROM_OUR_PAGE)
    const url = new URL(away.location!)
    t.is(url.searchParams.get('prompt'), 'login')
    t.is(url.searchParams.get('max_age'), '0')
    good.nonce = url.searchParams.get('nonce')!
    good.mood = { claims: { auth_time: authTime } }
    const answer = await back({ browser: visitor, url, state: url.searchParams.get('state')! })
    t.is(answer.status, status, answer.html)
  }
})

// Answers that stretch the standards: words for truth, null members, a key that was just made.

let people = 0

/** True if a new user gets a session. */
async function signsIn(mood: Mood): Promise<boolean> {
  people += 1
  const claims = { sub: `subject-${people}`, email: `n${people}@evil.example`, ...mood.claims }
  const visit = await sent(good)
  good.mood = { ...mood, claims }
  await back(visit)
  return isSignedIn(visit.browser)
}

for (const [said, signs] of [
  [true, true],
  ['true', true],
  ['false', false],
  [false, false],
  ['TRUE', false],
  [1, false],
  [null, false],
] as const)
  test.serial(
    `email_verified ${JSON.stringify(said)}: ${signs ? 'a session' : 'none'}`,
    async (t) => {
      t.is(await signsIn({ claims: { email_verified: said } }), signs)
    },
  )

for (const [said, isTime] of [
  [() => now() - 1_800, true],
  [() => `${now() - 1_800}`, true],
  [() => `${now() - 1_800}.25`, true],
  [() => null, false],
  [() => '', false],
  [() => 'yesterday', false],
  [() => '-1800', false],
  [() => -1_800, false],
  [() => '9'.repeat(400), false],
  [() => true, false],
  [() => ({ secs: now() }), false],
] as const)
  test.serial(`auth_time ${JSON.stringify(said()).slice(0, 20)} counts: ${isTime}`, async (t) => {
    t.true(await signsIn({ claims: { auth_time: said() } }))
    const [row] = await sql<{ age: number }>(running)`
      select extract(epoch from created_at - auth_time)::float8 as age from browser_sessions
      order by created_at desc limit 1`
    const stated = isTime ? 1_800 : 3_600
    t.true(Math.abs(row!.age - stated) < 60, `${row!.age} s`)
  })

test.serial('null members of a token response count as absent', async (t) => {
  const nulls = { refresh_token: null, scope: null, expires_in: null, 'not-before-policy': null }
  t.true(await signsIn({ tokenMembers: nulls }))
  t.false(await signsIn({ tokenMembers: { access_token: null } }))
  t.false(await signsIn({ tokenMembers: { id_token: null } }))
})

const typed = (type: string, body: string) => (response: ServerResponse) =>
  response.writeHead(200, { 'content-type': type }).end(body)
const broken = (response: ServerResponse) =>
  response.writeHead(401, { 'content-type': 'text/html' }).end('<p>no</p>')
const nameless = { claims: { name: undefined } }
const FREE_ANSWERS: readonly (readonly [string, Mood, boolean])[] = [
  ['no token type', { tokenMembers: { token_type: undefined } }, true],
  ['BEARER', { tokenMembers: { token_type: 'BEARER' } }, true],
  ['another token type', { tokenMembers: { token_type: 'mac' } }, false],
  ['scopes as a list', { tokenMembers: { scope: ['openid', 'email'] } }, true],
  ['the lifetime as text', { tokenMembers: { expires_in: '3600' } }, true],
  ['the lifetime in words', { tokenMembers: { expires_in: 'one hour' } }, true],
  [
    'an error with status 200',
    { answer: { token: typed('application/json', '{"error":"x"}') } },
    false,
  ],
  ['documents as text', { written: { type: 'text/plain' } }, true],
  ['media types in capitals', { written: { type: 'Application/JSON; Charset=UTF-8' } }, true],
  ['a byte order mark', { written: { type: 'application/json', before: '\ufeff' } }, true],
  ['a userinfo endpoint that refuses', { ...nameless, answer: { userinfo: broken } }, true],
  ['userinfo as text', { ...nameless, answer: { userinfo: typed('text/plain', 'me') } }, true],
  ['userinfo of another subject', { ...nameless, userinfo: { sub: 'another' } }, false],
  [
    'no address and a userinfo endpoint that refuses',
    { claims: { email: undefined, email_verified: undefined }, answer: { userinfo: broken } },
    false,
  ],
]
for (const [what, mood, signs] of FREE_ANSWERS)
  test.serial(`a provider that sends ${what}: ${signs ? 'a session' : 'none'}`, async (t) => {
    t.is(await signsIn(mood), signs)
  })

test.serial('a provider that turned its key after the last fetch signs users in', async (t) => {
  t.true(await signsIn({}))
  t.true(await signsIn({ turnedKey: true }))
  t.true(await signsIn({}), 'and back')
  t.false(await signsIn({ foreignKey: true }))
})

test.serial('only the error code of a response is logged and emitted', async (t) => {
  const rows = await sql<{ text: string }>(running)`
    select data::text as text from all_events where type = 'sso.login.failed' limit 500`
  t.true(rows.length > 10)
  for (const { text } of rows) t.false(/script|eyJ|client secret/.test(text), text)
})
