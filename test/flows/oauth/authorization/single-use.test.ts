/**
 * Single-use artefacts succeed once: concurrent uses of each,
 * half of them at another process. Codes, device codes, delegations, second factors, passkeys and
 * registration tokens are raced in their own tests (RFC 9700).
 */
import test, { type ExecutionContext } from 'ava'
import { exportJWK, generateKeyPair, SignJWT } from 'jose'
import { type Api, apiOf } from '../../../support/api.js'
import { openBrowser } from '../../../support/pages/browser.js'
import { ask, decide, fixtureOf, poll, present } from '../../../support/agents/delegation.js'
import { BOOTSTRAP, callerOf, REGISTER, start } from '../../../support/agents/journey.js'
import { mailDomain, mailbox } from '../../../support/identity/addresses.js'
import { codeIn, pathIn, sharedMail } from '../../../support/operations/letters.js'
import { bootstrapped } from '../../../support/identity/person.js'
import { proofFor } from '../../../support/identity/proof.js'
import { type RelyingParty, relyingParty } from '../../../support/oauth/relying-party.js'
import { sharedPair } from '../../../support/service.js'
import { ownDomain } from '../../../support/identity/squatting.js'
import { RACERS, ROUNDS } from '../../../support/racers.js'

const SCOPES = ['openid', 'profile', 'email', 'applications:read']
const GRANTS = ['authorization_code', 'refresh_token', 'client_credentials']
const mail = await sharedMail()
const [running, peer] = await sharedPair('people')
const person = await bootstrapped(running)
const party = await relyingParty(running, person, { scopes: SCOPES, grantTypes: GRANTS })

const race = <T>(use: (at: string, racer: number) => Promise<T>): Promise<T[]> =>
  Promise.all(
    Array.from({ length: RACERS }, (_, n) => use(n % 2 ? running.baseUrl : peer.baseUrl, n)),
  )
const basicOf = ({ clientId, secret }: RelyingParty) =>
  `Basic ${Buffer.from(`${clientId}:${secret}`).toString('base64')}`
const statuses = (answers: readonly { readonly status: number }[]) => {
  const counts: Record<number, number> = {}
  for (const { status } of answers) counts[status] = (counts[status] ?? 0) + 1
  return counts
}

/** Returns the responses for an artefact: exactly one success, and otherwise the documented error. */
const ROWS: readonly [
  artefact: string,
  won: number,
  lost: number,
  use: (t: ExecutionContext) => Promise<readonly { readonly status: number }[]>,
][] = [
  [
    'a client assertion',
    200,
    401,
    async () => {
      const { publicKey, privateKey } = await generateKeyPair('ES256')
      const { clientId } = await relyingParty(running, person, {
        tokenEndpointAuthMethod: 'private_key_jwt',
        secretSha256: null,
        jwks: { keys: [{ ...(await exportJWK(publicKey)) }] },
        grantTypes: ['client_credentials'],
      })
      const client_assertion = await new SignJWT({ jti: crypto.randomUUID() })
        .setProtectedHeader({ alg: 'ES256' })
        .setIssuer(clientId)
        .setSubject(clientId)
        .setAudience(running.baseUrl)
        .setIssuedAt()
        .setExpirationTime('60s')
        .sign(privateKey)
      return race((at) =>
        callerOf(at).form('/oauth/token', {
          grant_type: 'client_credentials',
          client_assertion_type: 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer',
          client_assertion,
        }),
      )
    },
  ],
  [
    'a DPoP proof',
    200,
    401,
    async (t) => {
      // Both processes have one URL, as behind a load balancer: the URL in the proof.
      const { host } = new URL(running.baseUrl)
      const proof = () => proofFor('POST', `${running.baseUrl}/oauth/token`)
      const doors = [apiOf(running), apiOf(peer)] as const
      const ask = (door: Api, dpop: string) => {
        const headers = { authorization: basicOf(party), host, dpop }
        return door.form('/oauth/token', { grant_type: 'client_credentials' }, headers)
      }
      try {
        for (const door of doors) t.is((await ask(door, await proof())).status, 200)
        const dpop = await proof()
        return await race((_, racer) => ask(doors[racer % 2]!, dpop))
      } finally {
        for (const door of doors) await door.close()
      }
    },
  ],
  [
    'a pushed request',
    302,
    400,
    async () => {
      const { browser } = await party.signedIn(person)
      const cookie = [...browser.cookies].map(([name, value]) => `${name}=${value}`).join('; ')
      const { url } = await party.journey()
      const fields = Object.fromEntries(url.searchParams)
      const headers = { authorization: basicOf(party) }
      const pushed = await callerOf(running.baseUrl).form('/oauth/par', fields, headers)
      const query = new URLSearchParams({
        client_id: party.clientId,
        request_uri: String(pushed.body['request_uri']),
      })
      return race((at) =>
        callerOf(at).call(`/oauth/authorize?${query.toString()}`, {
          headers: { cookie, accept: 'text/html' },
          redirect: 'manual',
        }),
      )
    },
  ],
  [
    'a challenge of proof of work for an agent',
    200,
    400,
    async () => {
      const caller = callerOf(running.baseUrl)
      const { challengeId, nonce } = await start(caller, `${REGISTER}/pow`)
      const json = { challenge_id: challengeId, nonce }
      return race((at) => callerOf(at).post(`${REGISTER}/pow/complete`, json))
    },
  ],
  [
    'a challenge of proof of work for a workspace',
    201,
    400,
    async () => {
      const { challengeId, nonce } = await start(callerOf(running.baseUrl))
      const json = {
        challenge_id: challengeId,
        nonce,
        organization_name: 'Raced',
        redirect_uris: [],
        issue_operator_invite: false,
        framework: 'generic',
      }
      return race((at) => callerOf(at).post(`${BOOTSTRAP}/pow/complete`, json))
    },
  ],
  [
    'a challenge to log in with',
    200,
    400,
    async () => {
      const api = apiOf(running)
      const { key, agentId, tenantId } = await api.workspace()
      const selector = { agent_id: agentId, tenant_id: tenantId }
      const caller = callerOf(running.baseUrl)
      const { body } = await caller.post('/api/v1/agents/auth/challenge', selector)
      const signature = key.signChallenge(String(body['payload']))
      const json = { challenge_id: body['challenge_id'], signature }
      return race((at) => callerOf(at).post('/api/v1/agents/auth/verify', json))
    },
  ],
]

for (const [artefact, won, lost, use] of ROWS) {
  test.serial(`${artefact} is used once of ${RACERS} concurrent uses`, async (t) => {
    t.timeout(120_000)
    const { [won]: winners, [lost]: losers = 0, [503]: later = 0, ...rest } = statuses(await use(t))
    t.is(winners, 1)
    t.deepEqual(rest, {})
    // Under load some requests get 503. None of them uses the artefact.
    t.is(losers + later, RACERS - 1)
  })
}

test.serial(`a refresh token has one successor of ${RACERS} concurrent uses`, async (t) => {
  t.timeout(120_000)
  const { tokens } = await party.signedIn(person)
  const form = { grant_type: 'refresh_token', refresh_token: tokens.refresh_token! }
  const headers = { authorization: basicOf(party) }
  const answers = await race((at) => callerOf(at).form('/oauth/token', form, headers))
  const given = answers.filter(({ status }) => status === 200)
  t.true(given.length > 0)
  // Uses within seconds get the stored response, not another successor.
  t.is(new Set(given.map(({ body }) => body['refresh_token'])).size, 1)
  t.true(answers.every(({ status }) => [200, 400, 503].includes(status)))
})

// Polls of one code are serialised within a process, so two processes race for the row.
test.serial(
  'of two processes that poll for a delegation at the same moment one gets a token',
  async (t) => {
    t.timeout(120_000)
    const doors = [apiOf(running), apiOf(peer)] as const
    const workspace = await doors[0].workspace()
    const human = await present(doors[0], fixtureOf(workspace))
    t.teardown(async () => {
      for (const door of doors) await door.close()
    })
    for (let round = 0; round < ROUNDS; round += 1) {
      const asked = await ask(doors[0], workspace.token, { scope: 'openid' })
      await decide(human, asked)
      const answers = await Promise.all(doors.map((door) => poll(door, workspace.token, asked)))
      t.deepEqual(answers.map(({ status }) => status).toSorted(), [200, 400])
    }
  },
)

// The same for refresh tokens.
test.serial('two processes that refresh at the same moment return one successor', async (t) => {
  t.timeout(120_000)
  const { tokens } = await party.signedIn(person)
  const headers = { authorization: basicOf(party) }
  let refresh_token = tokens.refresh_token!
  for (let round = 0; round < ROUNDS; round += 1) {
    const form = { grant_type: 'refresh_token', refresh_token }
    const [here, there] = await Promise.all(
      [running, peer].map(({ baseUrl }) => callerOf(baseUrl).form('/oauth/token', form, headers)),
    )
    t.deepEqual([here?.status, there?.status], [200, 200])
    t.deepEqual(here?.body, there?.body)
    refresh_token = String(here?.body['refresh_token'])
  }
})

test.serial(`an operator's invite is used once of ${RACERS} concurrent uses`, async (t) => {
  t.timeout(120_000)
  const { inviteUrl, tenantSlug } = await bootstrapped(running)
  const browsers = [openBrowser(running), openBrowser(peer)] as const
  const { pathname } = new URL(inviteUrl)
  const pages = [await browsers[0].get(pathname), await browsers[1].get(pathname)] as const
  const password = 'correct horse battery staple'
  const answers = await race((_, n) =>
    browsers[n % 2 ? 0 : 1].submit(pages[n % 2 ? 0 : 1], {
      name: 'Op',
      email: mailbox(`op-${tenantSlug}-${n}`),
      password,
    }),
  )
  t.is(statuses(answers)[303], 1)
  t.true(answers.every(({ status }) => status !== 500))
})

for (const [artefact, used] of [
  ['a code by mail', 'code'],
  ['a link by mail', 'link'],
] as const) {
  test.serial(`${artefact} signs in once of ${RACERS} concurrent uses`, async (t) => {
    t.timeout(120_000)
    const api = apiOf(running)
    const workspace = await api.workspace()
    const { token, body } = workspace
    const email = `ada@${mailDomain()}`
    await ownDomain(api, workspace, email)
    const json = { email, password: 'a password of the harbour master' }
    t.is((await api.call('POST', '/api/v1/tenant-users', { token, json })).status, 201)
    const browser = openBrowser(running)
    const query = `tenant_slug=${String(body['tenant_slug'])}&return_to=/auth/account`
    const login = await browser.get(`/auth/login?${query}`)
    const fields = { ...login.forms[0]!.fields, email }
    const waiting = await browser.follow(await browser.post('/auth/login/mail', fields))
    const letter = await mail.letterTo(email)
    const link = await browser.get(pathIn(letter, '/auth/magic/'))
    const code = codeIn(letter)
    const answers = await race(() =>
      used === 'code'
        ? browser.submit(waiting, { code }, '/auth/login/code')
        : browser.submit(link),
    )
    t.is(statuses(answers)[303], 1, JSON.stringify(statuses(answers)))
    t.true(answers.every(({ status }) => status < 500 || status === 503))
  })
}

/** The links of messages that are opened and then submitted as a form: request, success, failure. */
const TICKETS: readonly [
  artefact: string,
  path: string,
  won: number,
  fields: Readonly<Record<string, string>>,
  ask: (email: string, tenantSlug: string) => Promise<unknown>,
][] = [
  ['an invitation', '/auth/invitations/', 303, { name: 'Ada' }, async () => undefined],
  [
    'a link to a new password',
    '/auth/password/reset/',
    200,
    {},
    async (email, tenantSlug) => {
      const browser = openBrowser(running)
      const login = await browser.get(`/auth/login?tenant_slug=${tenantSlug}`)
      const forgot = /href="(\/auth\/password\/forgot\?[^"]*)"/.exec(login.html)![1]!
      await browser.submit(await browser.get(forgot), { email })
    },
  ],
]

for (const [artefact, start, won, fields, ask] of TICKETS) {
  test.serial(`${artefact} is used once of ${RACERS} concurrent uses`, async (t) => {
    t.timeout(120_000)
    const api = apiOf(running)
    const browsers = [openBrowser(running), openBrowser(peer)] as const
    const workspace = await api.workspace()
    const { token, body } = workspace
    const email = `grace@${mailDomain()}`
    await ownDomain(api, workspace, email)
    const invited = start === '/auth/invitations/'
    const json = { email, ...(invited ? {} : { password: 'a password of the harbour master' }) }
    await api.call('POST', '/api/v1/tenant-users', { token, json }).gives(201)
    await ask(email, String(body['tenant_slug']))
    const path = pathIn(await mail.letterTo(email), start)
    const pages = [await browsers[0].get(path), await browsers[1].get(path)] as const
    const answers = await race((_, racer) =>
      // The same form would get the answer of the first again.
      browsers[racer % 2 ? 0 : 1].submit(pages[racer % 2 ? 0 : 1], {
        ...fields,
        password: `another password of the harbour ${racer}`,
      }),
    )
    const { [won]: winners, [410]: losers = 0, [503]: later = 0, ...rest } = statuses(answers)
    t.is(winners, 1)
    t.deepEqual(rest, {})
    t.is(losers + later, RACERS - 1)
  })
}
