/**
 * A revocation in one process is effective in every process, with every coordination backend:
 * one row for each kind of revocation.
 */
import type { ExecutionContext } from 'ava'
import test from 'ava'
import * as oidc from 'openid-client'
import { request } from 'undici'
import { createAgentKey } from '../../../../runtime/clients/client/agent.js'
import { type Answer, type Api, expected, type Json, type Workspace } from '../../../support/api.js'
import { openBrowser } from '../../../support/pages/browser.js'
import {
  fixtureOf,
  type Human,
  delegate,
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
import { authorized, callbackOf, relyingParty } from '../../../support/oauth/relying-party.js'
import { startMemcached, startRedis } from '../../../support/service/servers.js'
import { twoServices } from '../../../support/service/two-services.js'
import { twoThreads } from '../../../support/service/two-threads.js'
import { IS_LONG } from '../../../support/runs.js'

/** The limit is one second. The rest is for the test's own requests on a loaded machine. */
const WITHIN_MS = 1_000

type ProcessResources = {
  readonly first: Api
  readonly second: Api
  readonly workspace: Workspace
  readonly person: Person
  readonly origin: string
}
/** A credential: whether the second process accepts it, and how the first process revokes it. */
type Lifecycle = {
  alive(): Promise<boolean>
  end(): Promise<unknown>
}
type Kind = (resources: ProcessResources) => Promise<Lifecycle>

const credentials = async (at: Api, token: string) => (await at.get(CREDENTIALS, token)).status
const notRefused = (status: number) => status !== 401

/** A user with tokens of an application. */
async function signedIn({ first, workspace }: ProcessResources, human: Human) {
  const scope = 'openid offline_access'
  const party = await relyingParty(first.at, workspace)
  const begun = await party.journey({ scope })
  const browser = openBrowser(first.at)
  const answer = callbackOf(await authorized(browser, human, begun.url))
  const tokens = await oidc.authorizationCodeGrant(party.config, answer, begun.checks)
  return { party, browser, tokens, token: tokens.access_token }
}

async function userId({ first, workspace }: ProcessResources, { email }: Human): Promise<string> {
  const path = `/api/v1/tenant-users?email=${encodeURIComponent(email)}`
  return String((await first.list(path, workspace.token)).rows[0]!['id'])
}

/** A user token at the second process. */
const seen = (resources: ProcessResources, token: string) => async () =>
  notRefused((await resources.second.get('/userinfo', token)).status)

function personEnds(end: (resources: ProcessResources, id: string) => Promise<Answer>): Kind {
  return async (resources) => {
    const human = await newFixture(resources.first, resources.workspace)
    const { token } = await signedIn(resources, human)
    const id = await userId(resources, human)
    return { alive: seen(resources, token), end: () => end(resources, id) }
  }
}

/** An agent of the tenant with its own token. */
async function helper({ first, workspace: { tenantId } }: ProcessResources) {
  const { key, agentId } = await first.register(tenantId)
  const login = () => first.login(key, { agent_id: agentId, tenant_id: tenantId })
  const body = await expected(200, login())
  return { key, agentId, token: String(body['access_token']), body }
}

function agentEnds(
  end: (resources: ProcessResources, agent: Awaited<ReturnType<typeof helper>>) => Promise<Answer>,
): Kind {
  return async (resources) => {
    const agent = await helper(resources)
    const alive = async () =>
      notRefused((await resources.second.get('/api/v1/agents/me', agent.token)).status)
    return { alive, end: () => end(resources, agent) }
  }
}

/** A credential for the upstream that an agent may use. */
async function granted(resources: ProcessResources, grantee: Json) {
  const { first, workspace } = resources
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
  end: (resources: ProcessResources, of: { credentialId: string; grantId: string }) => string,
): Kind {
  return async (resources) => {
    const { agentId, token } = await helper(resources)
    const of = await granted(resources, { grantee_type: 'agent', grantee_id: agentId })
    const headers = bodyCall(of, `${resources.origin}/echo`)
    const alive = async () =>
      (await resources.second.call('POST', '/v1/proxy/body', { token, headers })).status === 200
    return {
      alive,
      end: () => expected(200, resources.first.post(end(resources, of), resources.workspace.token)),
    }
  }
}

const KINDS: Readonly<Record<string, Kind>> = {
  'an access token of a user': async (resources) => {
    const { party, token } = await signedIn(resources, fixtureOf(resources.workspace))
    return { alive: seen(resources, token), end: () => oidc.tokenRevocation(party.config, token) }
  },
  'a refresh token, and the access tokens of its family': async (resources) => {
    const { party, token, tokens } = await signedIn(resources, fixtureOf(resources.workspace))
    const end = () => oidc.tokenRevocation(party.config, tokens.refresh_token!)
    return { alive: seen(resources, token), end }
  },
  'the session of a user who signs out': async (resources) => {
    const { token, browser } = await signedIn(resources, fixtureOf(resources.workspace))
    return {
      alive: seen(resources, token),
      async end() {
        await browser.submit(await browser.get('/auth/account'), {}, '/auth/logout')
      },
    }
  },
  'a suspended user': personEnds(({ first, workspace }, id) =>
    first.post(`/api/v1/tenant-users/${id}/suspend`, workspace.token),
  ),
  'a removed user': personEnds(({ first, workspace }, id) =>
    first.delete(`/api/v1/tenant-users/${id}`, workspace.token),
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
    first.delete(`/api/v1/agents/${agentId}`, workspace.token),
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
      end: () => expected(204, first.delete(path, workspace.token)),
    }
  },
  'a delegation': async ({ first, second, workspace, person }) => {
    const own = await ownToken(first, workspace, person)
    const { token, delegationId } = await delegate(first, workspace.token, person)
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
  'a running stream whose delegation ends': async (resources) => {
    const { first, second, workspace, person, origin } = resources
    const own = await ownToken(first, workspace, person)
    const { token, delegationId } = await delegate(first, workspace.token, person)
    const of = await granted(resources, { grantee_type: 'delegation', grantee_id: delegationId })
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

/** Daily, where the table has passed with PostgreSQL: one of each way that a process learns of an end. */
const FEW = [
  'an access token of a user',
  'a suspended agent',
  'a running stream whose delegation ends',
]
const FEWER = IS_LONG ? KINDS : Object.fromEntries(FEW.map((what) => [what, KINDS[what]!]))

type Pair = (environment: Readonly<Record<string, string>>) => Promise<{
  readonly first: Api
  readonly second: Api
  end(): Promise<void>
}>

async function table(
  t: ExecutionContext,
  environment: Readonly<Record<string, string>>,
  { kinds = FEWER, pair = twoServices }: { kinds?: typeof KINDS; pair?: Pair } = {},
) {
  t.timeout(240_000)
  const reachable = await reachableUpstream()
  t.teardown(reachable.end)
  const { first, second, end } = await pair({ ...reachable.environment, ...environment })
  t.teardown(end)
  const workspace = await first.workspace()
  const person = await present(first, await newFixture(first, workspace))
  const resources = { first, second, workspace, person, origin: reachable.upstream.origin }
  for (const [what, kind] of Object.entries(kinds)) {
    const lifecycle = await kind(resources)
    t.true(await lifecycle.alive(), `${what} lives`)
    await lifecycle.end()
    const endedAt = performance.now()
    while ((await lifecycle.alive()) && performance.now() - endedAt < WITHIN_MS) {
      await new Promise((resolve) => setTimeout(resolve, 10))
    }
    t.false(await lifecycle.alive(), `${what} has ended`)
  }
}

test('a revocation is effective in the other process: postgres', (t) =>
  table(t, {}, { kinds: KINDS }))

test('a revocation is effective on the other gateway thread', (t) =>
  table(t, {}, { pair: twoThreads }))

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
