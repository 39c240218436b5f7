/**
 * What ends in one process ends in every process, whatever backend the processes coordinate by
 * (decisions.md 18, revocation everywhere): one row for each kind of thing that can end.
 */
import type { ExecutionContext } from 'ava'
import test from 'ava'
import * as oidc from 'openid-client'
import { request } from 'undici'
import { createAgentKey } from '../../../../runtime/client/agent.js'
import type { Answer, Api, Json, Workspace } from '../../../support/api.js'
import { openBrowser } from '../../../support/pages/browser.js'
import {
  fixtureOf,
  type Human,
  lend,
  newFixture,
  ownToken,
  type Person,
  present,
} from '../../../support/agents/delegation.js'
import {
  bodyCall,
  CREDENTIALS,
  reachableUpstream,
  UPSTREAM_NAME,
} from '../../../support/vault/egress.js'
import { testWithProgram } from '../../../support/service/programs.js'
import {
  authorized,
  callbackOf,
  journey,
  relyingParty,
} from '../../../support/oauth/relying-party.js'
import { startMemcached, startRedis } from '../../../support/service/servers.js'
import { twoServices } from '../../../support/service/two-services.js'

/** decisions.md 18; what is left of it is for the test's own requests on a loaded machine. */
const WITHIN_MS = 1_000

type House = {
  readonly first: Api
  readonly second: Api
  readonly workspace: Workspace
  readonly person: Person
  readonly origin: string
}
/** Something alive: whether the second process still takes it, and how the first one ends it. */
type Life = {
  alive(): Promise<boolean>
  end(): Promise<unknown>
}
type Kind = (house: House) => Promise<Life>

const credentials = async (at: Api, token: string) => (await at.get(CREDENTIALS, token)).status
const notRefused = (status: number) => status !== 401

async function expected(status: number, answer: Promise<Answer>): Promise<Json> {
  const { status: found, body } = await answer
  if (found !== status) throw new Error(`${found}: ${JSON.stringify(body)}`)
  return body
}

/** A person with tokens of an application. */
async function signedIn({ first, workspace }: House, human: Human) {
  const scope = 'openid offline_access'
  const party = await relyingParty(first.at, workspace)
  const begun = await journey(party, { scope })
  const browser = openBrowser(first.at)
  const answer = callbackOf(await authorized(browser, human, begun.url))
  const tokens = await oidc.authorizationCodeGrant(party.config, answer, {
    pkceCodeVerifier: begun.verifier,
    expectedState: begun.state,
    expectedNonce: begun.nonce,
  })
  return { party, browser, tokens, token: tokens.access_token }
}

async function userId({ first, workspace }: House, { email }: Human): Promise<string> {
  const path = `/api/v1/tenant-users?email=${encodeURIComponent(email)}`
  return String((await first.list(path, workspace.token)).rows[0]!['id'])
}

/** A person's token at the second process. */
const seen = (house: House, token: string) => async () =>
  notRefused((await house.second.get('/userinfo', token)).status)

function personEnds(end: (house: House, id: string) => Promise<Answer>): Kind {
  return async (house) => {
    const human = await newFixture(house.first, house.workspace)
    const { token, browser } = await signedIn(house, human)
    await browser.close()
    const id = await userId(house, human)
    return { alive: seen(house, token), end: () => end(house, id) }
  }
}

/** An agent of the tenant with a token of its own. */
async function helper({ first, workspace: { tenantId } }: House) {
  const { key, agentId } = await first.register(tenantId)
  const login = () => first.login(key, { agent_id: agentId, tenant_id: tenantId })
  const body = await expected(200, login())
  return { key, agentId, token: String(body['access_token']), body }
}

function agentEnds(
  end: (house: House, agent: Awaited<ReturnType<typeof helper>>) => Promise<Answer>,
): Kind {
  return async (house) => {
    const agent = await helper(house)
    const alive = async () =>
      notRefused((await house.second.get('/api/v1/agents/me', agent.token)).status)
    return { alive, end: () => end(house, agent) }
  }
}

/** A credential for the upstream that an agent may use. */
async function granted(house: House, grantee: Json) {
  const { first, workspace } = house
  const record = { provider: 'upstream', label: 'Key', secret: 'a secret', auth_scheme: 'bearer' }
  const credential = await expected(
    201,
    first.post(CREDENTIALS, workspace.token, {
      ...record,
      credential_type: 'api_key',
      allowed_hosts: [UPSTREAM_NAME],
    }),
  )
  const credentialId = String(credential['id'])
  const grant = await expected(
    201,
    first.post(`${CREDENTIALS}/${credentialId}/grants`, workspace.token, grantee),
  )
  return { credentialId, grantId: String(grant['id']) }
}

function callEnds(
  end: (house: House, of: { credentialId: string; grantId: string }) => string,
): Kind {
  return async (house) => {
    const { agentId, token } = await helper(house)
    const of = await granted(house, { grantee_type: 'agent', grantee_id: agentId })
    const headers = bodyCall(of, `${house.origin}/echo`)
    const alive = async () =>
      (await house.second.call('POST', '/v1/proxy/body', { token, headers })).status === 200
    return {
      alive,
      end: () => expected(200, house.first.post(end(house, of), house.workspace.token)),
    }
  }
}

const KINDS: Readonly<Record<string, Kind>> = {
  'an access token of a person': async (house) => {
    const { party, token, browser } = await signedIn(house, fixtureOf(house.workspace))
    await browser.close()
    return { alive: seen(house, token), end: () => oidc.tokenRevocation(party.config, token) }
  },
  'a refresh token, and the access tokens of its family': async (house) => {
    const { party, token, tokens, browser } = await signedIn(house, fixtureOf(house.workspace))
    await browser.close()
    const end = () => oidc.tokenRevocation(party.config, tokens.refresh_token!)
    return { alive: seen(house, token), end }
  },
  'the session of a person who signs out': async (house) => {
    const { token, browser } = await signedIn(house, fixtureOf(house.workspace))
    return {
      alive: seen(house, token),
      async end() {
        await browser.submit(await browser.get('/auth/account'), {}, '/auth/logout')
        await browser.close()
      },
    }
  },
  'a suspended person': personEnds(({ first, workspace }, id) =>
    first.post(`/api/v1/tenant-users/${id}/suspend`, workspace.token),
  ),
  'a removed person': personEnds(({ first, workspace }, id) =>
    first.call('DELETE', `/api/v1/tenant-users/${id}`, { token: workspace.token }),
  ),
  'the key of an agent': agentEnds(async ({ first, workspace }, { agentId, key, token }) => {
    const { tenantId } = workspace
    const fresh = createAgentKey().registration({ issuer: first.at.baseUrl, tenantId })
    const { anchor_type: _type, anchor_value: _value, ...added } = fresh
    await expected(201, first.post(`/api/v1/agents/${agentId}/keys`, token, added))
    return first.post(`/api/v1/agents/${agentId}/keys/${key.fingerprint}/revoke`, workspace.token)
  }),
  'a suspended agent': agentEnds(({ first, workspace }, { agentId }) =>
    first.post(`/api/v1/agents/${agentId}/suspend`, workspace.token),
  ),
  'a deleted agent': agentEnds(({ first, workspace }, { agentId }) =>
    first.call('DELETE', `/api/v1/agents/${agentId}`, { token: workspace.token }),
  ),
  'a deleted application': async ({ first, second, workspace }) => {
    const made = await expected(
      201,
      first.post('/api/v1/applications', workspace.token, {
        name: 'Short-lived',
        redirect_uris: [],
        grant_types: ['client_credentials'],
        scopes: ['vault:list'],
      }),
    )
    const basic = Buffer.from(`${String(made['client_id'])}:${String(made['client_secret'])}`)
    const issued = await expected(
      200,
      first.form(
        '/oauth/token',
        { grant_type: 'client_credentials', scope: 'vault:list' },
        { authorization: `Basic ${basic.toString('base64')}` },
      ),
    )
    const token = String(issued['access_token'])
    const path = `/api/v1/applications/${String(made['id'])}`
    return {
      alive: async () => notRefused(await credentials(second, token)),
      end: () => expected(204, first.call('DELETE', path, { token: workspace.token })),
    }
  },
  'a delegation': async ({ first, second, workspace, person }) => {
    const own = await ownToken(first, workspace, person)
    const { token, delegationId } = await lend(first, workspace.token, person)
    return {
      alive: async () => notRefused(await credentials(second, token)),
      end: () => expected(200, first.post(`/api/v1/delegations/${delegationId}/revoke`, own)),
    }
  },
  'a grant of the vault': callEnds(
    (_house, { grantId }) => `/api/v1/vault/grants/${grantId}/revoke`,
  ),
  'a credential of the vault': callEnds(
    (_house, { credentialId }) => `${CREDENTIALS}/${credentialId}/revoke`,
  ),
  'a running stream whose delegation ends': async (house) => {
    const { first, second, workspace, person, origin } = house
    const own = await ownToken(first, workspace, person)
    const { token, delegationId } = await lend(first, workspace.token, person)
    const of = await granted(house, { grantee_type: 'delegation', grantee_id: delegationId })
    const { statusCode, body } = await request(new URL('/v1/proxy/body', second.at.baseUrl), {
      method: 'POST',
      headers: {
        authorization: `Bearer ${token}`,
        ...bodyCall(of, `${origin}/silent-after-chunk`),
      },
    })
    let open = statusCode === 200
    body
      .on('error', () => (open = false))
      .on('end', () => (open = false))
      .resume()
    return {
      alive: async () => open,
      end: () => expected(200, first.post(`/api/v1/delegations/${delegationId}/revoke`, own)),
    }
  },
}

async function table(t: ExecutionContext, environment: Readonly<Record<string, string>>) {
  t.timeout(240_000)
  const reachable = await reachableUpstream()
  t.teardown(reachable.end)
  const { first, second, end } = await twoServices({ ...reachable.environment, ...environment })
  t.teardown(end)
  const workspace = await first.workspace()
  const person = await present(first, await newFixture(first, workspace))
  t.teardown(() => person.browser.close())
  const house = { first, second, workspace, person, origin: reachable.upstream.origin }
  for (const [what, kind] of Object.entries(KINDS)) {
    const life = await kind(house)
    t.true(await life.alive(), `${what} lives`)
    await life.end()
    const endedAt = performance.now()
    while ((await life.alive()) && performance.now() - endedAt < WITHIN_MS) {
      await new Promise((resolve) => setTimeout(resolve, 10))
    }
    t.false(await life.alive(), `${what} has ended`)
  }
}

test('whatever ends here has ended in the next process: postgres', (t) => table(t, {}))

testWithProgram(
  'redis-server',
  'whatever ends here has ended in the next process: redis',
  async (t, path) => {
    const redis = await startRedis(path)
    t.teardown(() => redis.stop())
    await table(t, {
      SVC_DEPLOYMENT__COORDINATION_BACKEND: 'redis',
      SVC_REDIS__URL: `redis://127.0.0.1:${redis.port}`,
    })
  },
)

testWithProgram(
  'memcached',
  'whatever ends here has ended in the next process: memcached',
  async (t, path) => {
    const memcached = await startMemcached(path)
    t.teardown(() => memcached.stop())
    await table(t, {
      SVC_DEPLOYMENT__COORDINATION_BACKEND: 'memcached',
      SVC_MEMCACHED__ADDRESS: `127.0.0.1:${memcached.port}`,
    })
  },
)
