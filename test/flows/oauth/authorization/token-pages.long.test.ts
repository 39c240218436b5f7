/** Runs the code of the documentation pages about tokens, with openid-client and with curl. */
import test, { type ExecutionContext } from 'ava'
import { apiOf, claimsOf } from '../../../support/api.js'
import { fixtureOf, delegate, present } from '../../../support/agents/delegation.js'
import { docsPage, type Language, testCommands } from '../../../support/pages/docs-page.js'
import { bootstrapped, type Workspace } from '../../../support/identity/person.js'
import { relyingParty } from '../../../support/oauth/relying-party.js'
import { freePort, sharedService, type TestService } from '../../../support/service.js'
import { tenantAgent } from '../../../support/identity/tenant-agent.js'

const EXCHANGE = 'urn:ietf:params:oauth:grant-type:token-exchange'

type Place = { readonly running: TestService; readonly person: Workspace }
/** A service that requires a nonce in every proof. */
const place = async (profile: 'plain' | 'nonces') => {
  const running = await sharedService(profile)
  return { running, person: await bootstrapped(running) }
}
const plain = await place('plain')
const strict = await place('nonces')
test.after.always(async () => {
  await plain?.running.end()
  await strict?.running.end()
})

async function opened({ running, person }: Place = plain) {
  const party = await relyingParty(running, person, {
    scopes: ['openid', 'profile', 'email', 'applications:read'],
    grantTypes: ['authorization_code', 'refresh_token', 'client_credentials', EXCHANGE],
  })
  const env = { BASE: running.baseUrl, CLIENT_ID: party.clientId, CLIENT_SECRET: party.secret }
  const tokens = async () => {
    const { tokens: given } = await party.signedIn(person)
    return given
  }
  return { running, person, party, env, tokens }
}

/** A page with a program and commands that print the same. */
function bothWays(title: string, body: (t: ExecutionContext, language: Language) => Promise<void>) {
  test(`${title}, with openid-client`, (t) => body(t, 'js'))
  testCommands(`${title}, with curl`, (t) => body(t, 'sh'))
}

bothWays('docs/guides/oauth/client-credentials.md: a token and its use', async (t, language) => {
  const { env } = await opened()
  const told = await docsPage(t, 'guides/oauth/client-credentials').run(language, 0, env)
  t.is(told, 'applications:read for 300 s\nI am Lighthouse')
})

bothWays('docs/guides/oauth/private-key-jwt.md: a key instead of a secret', async (t, language) => {
  const BASE = plain.running.baseUrl
  const { token: TOKEN } = await tenantAgent(BASE)
  const told = await docsPage(t, 'guides/oauth/private-key-jwt').run(language, 0, { BASE, TOKEN })
  const once = 'applications:read'
  t.is(told, language === 'js' ? once : `${once}\ninvalid_client\n${once}`)
})

for (const nonce of [false, true]) {
  const title = `docs/guides/oauth/dpop.md: bound, and useless without its key${nonce ? ', with nonces' : ''}`
  bothWays(title, async (t, language) => {
    const { env } = await opened(nonce ? strict : plain)
    const told = await docsPage(t, 'guides/oauth/dpop').run(language, 0, env)
    const [type, ...uses] = told.split('\n')
    t.is(type?.toLowerCase(), 'dpop')
    if (language === 'sh') t.deepEqual(uses, ['200', '401', '401'])
    else t.deepEqual(uses, ['with a proof: 200', 'as a bearer token: 401'])
  })
}

bothWays(
  'docs/guides/oauth/refresh-tokens.md: rotated, downscoped, and revoked by reuse',
  async (t, language) => {
    const { env, tokens } = await opened()
    const REFRESH_TOKEN = (await tokens()).refresh_token!
    const told = await docsPage(t, 'guides/oauth/refresh-tokens').run(language, 0, {
      ...env,
      REFRESH_TOKEN,
    })
    if (language === 'js') t.is(told, 'rotated\nopenid\nthe first one again: invalid_grant')
    else t.is(told, 'openid profile email\ninvalid_grant\ninvalid_grant')
  },
)

bothWays(
  'docs/guides/oauth/token-introspection.md: active, revoked, inactive',
  async (t, language) => {
    const { env, tokens } = await opened()
    const TOKEN = (await tokens()).access_token
    const told = await docsPage(t, 'guides/oauth/token-introspection').run(language, 0, {
      ...env,
      TOKEN,
    })
    const [before, after] = told.split('\n')
    t.regex(before!, /^active: true, bearer, of human$/i)
    t.is(after, language === 'js' ? 'active: false' : '{"active":false}')
  },
)

test('docs/concepts/tokens.md: an API that verifies tokens', async (t) => {
  const { running, person, party, env, tokens } = await opened()
  const port = await freePort()
  const api = docsPage(t, 'concepts/tokens').begin('js', 0, {
    ...env,
    ISSUER: running.baseUrl,
    AUDIENCE: party.audience,
    TENANT_ID: person.tenantId,
    PORT: String(port),
  })
  t.is(await api.line(), 'ready')
  const ask = (token: string) =>
    fetch(`http://localhost:${port}`, { headers: { authorization: `Bearer ${token}` } })
  const { access_token, id_token, refresh_token } = await tokens()
  const answer = await ask(access_token)
  t.is(answer.status, 200)
  t.deepEqual(await answer.json(), { hello: claimsOf(access_token)['sub'] })
  const { tokens: less } = await party.signedIn(person, { scope: 'openid' })
  t.is((await ask(less.access_token)).status, 403)
  for (const token of [id_token!, refresh_token!, `${access_token}x`]) {
    t.is((await ask(token)).status, 401)
  }
})

test('docs/guides/oauth/token-exchange.md: an application downscopes, with openid-client', async (t) => {
  const { person, env, tokens } = await opened()
  const SUBJECT_TOKEN = (await tokens()).access_token
  const told = await docsPage(t, 'guides/oauth/token-exchange').run('js', 0, {
    ...env,
    SUBJECT_TOKEN,
  })
  t.is(told, `openid email\n${person.email}, name: not told`)
})

testCommands(
  'docs/guides/oauth/token-exchange.md: agents downscope and pass on, with curl',
  async (t) => {
    const api = apiOf(plain.running)
    const here = await api.workspace()
    const person = await present(api, fixtureOf(here))
    const agent = async () => {
      const { key, agentId } = await api.register(here.tenantId)
      const { body } = await api.login(key, { agent_id: agentId, tenant_id: here.tenantId })
      return { agentId, token: String(body['access_token']) }
    }
    const [first, second] = [await agent(), await agent()]
    const page = docsPage(t, 'guides/oauth/token-exchange')
    const told = await page.runCommands({
      BASE: api.at.baseUrl,
      DELEGATED_TOKEN: (await delegate(api, first.token, person)).token,
      AGENT_TOKEN: first.token,
      SECOND_AGENT_ID: second.agentId,
      SECOND_AGENT_TOKEN: second.token,
    })
    const [narrowed, act] = told.split('\n')
    t.is(narrowed, 'vault:list, urn:ietf:params:oauth:token-type:access_token')
    t.like(JSON.parse(act!), { sub: second.agentId, act: { sub: first.agentId } })
  },
)
