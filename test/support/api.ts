/** The API of a test service as its clients use it, over either transport. */
import { Agent, request as send } from 'undici'
import { type AgentKey, createAgentKey } from '../../runtime/client/agent.js'
import { nonceFor } from './identity/nonce.js'
import type { TestService } from './service.js'
import { checkServerIdentity } from './service/trust.js'

export type Json = Record<string, unknown>
export type Answer = { status: number; headers: Record<string, string>; body: Json }
export type Call = {
  readonly token?: string | undefined
  readonly json?: unknown
  readonly headers?: Record<string, string>
}

export interface Api {
  readonly at: TestService
  call(method: string, path: string, call?: Call): Promise<Answer>
  get(path: string, token?: string): Promise<Answer>
  post(
    path: string,
    token?: string,
    json?: unknown,
    headers?: Record<string, string>,
  ): Promise<Answer>
  form(
    path: string,
    fields: Record<string, string> | readonly (readonly [string, string])[],
    headers?: Record<string, string>,
  ): Promise<Answer>
  /** A list: its rows, and the path of the next page where there is one. */
  list(
    path: string,
    token: string,
  ): Promise<{ rows: Json[]; next: string | undefined; status: number }>
  /**
   * A fresh workspace with its tokens.
   * @param from the client's address: the service trusts loopback as a proxy.
   */
  workspace(name?: string, from?: string): Promise<Workspace>
  /** An agent registered into a tenant. */
  register(tenantId: string): Promise<{ key: AgentKey; agentId: string }>
  /** Challenge and verify; the answer of whichever refused first. */
  login(key: AgentKey, selector: Json, scope?: string): Promise<Answer>
  close(): Promise<void>
  /** Closes the connections, then ends the service. */
  end(): Promise<void>
}

export type Workspace = {
  readonly key: AgentKey
  readonly agentId: string
  readonly organizationId: string
  readonly tenantId: string
  readonly controlPlane: string
  /** Of the control plane. */
  readonly operator: string
  /** Of its own sandbox tenant. */
  readonly token: string
  readonly body: Json
}

/** @param agent Opens the connections. Default: any connection of the service. */
export function apiOf(at: TestService, agent = agentOf(at)): Api {
  async function call(method: string, path: string, { token, json, headers = {} }: Call = {}) {
    const answer = await send(new URL(path, at.baseUrl), {
      dispatcher: agent,
      method: method as 'GET',
      headers: {
        ...(json === undefined ? {} : { 'content-type': 'application/json' }),
        ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
        ...headers,
      },
      body: json === undefined ? null : JSON.stringify(json),
    })
    return read(answer)
  }

  async function start(path: string, tenantId: string, more: Json) {
    const key = createAgentKey()
    const target = { issuer: at.baseUrl, tenantId }
    const started = await call('POST', path, {
      json: { name: 'Test agent', ...key.registration(target), ...more },
    })
    if (started.status !== 200) throw new Error(JSON.stringify(started.body))
    const nonce = nonceFor({
      challengeToken: String(started.body['challenge_token']),
      difficultyBits: Number(started.body['difficulty_bits']),
    })
    return { key, proof: { challenge_id: started.body['challenge_id'], nonce } }
  }

  async function expected(status: number, answer: Promise<Answer>): Promise<Json> {
    const { status: found, body } = await answer
    if (found !== status) throw new Error(`${found}: ${JSON.stringify(body)}`)
    return body
  }

  const api: Api = {
    at,
    call,
    get: (path, token) => call('GET', path, { token }),
    post: (path, token, json, headers = {}) => call('POST', path, { token, json, headers }),
    async form(path, fields, headers = {}) {
      const answer = await send(new URL(path, at.baseUrl), {
        dispatcher: agent,
        method: 'POST',
        headers: { 'content-type': 'application/x-www-form-urlencoded', ...headers },
        body: new URLSearchParams(fields as Record<string, string>).toString(),
      })
      return read(answer)
    },
    async list(path, token) {
      const { status, headers, body } = await call('GET', path, { token })
      const next = /<([^>]+)>; rel="next"/.exec(headers['link'] ?? '')?.[1]
      return { status, rows: body as unknown as Json[], next: next?.slice(at.baseUrl.length) }
    },
    async workspace(name = 'Acme', from) {
      const path = '/api/v1/agents/workspace/bootstrap'
      const metadata = await expected(200, call('GET', path))
      const controlPlane = String(metadata['control_plane_tenant_id'])
      const { key, proof } = await start(`${path}/pow`, controlPlane, {})
      const body = await expected(
        201,
        call('POST', `${path}/pow/complete`, {
          ...(from === undefined ? {} : { headers: { 'x-forwarded-for': from } }),
          json: {
            ...proof,
            organization_name: name,
            redirect_uris: [],
            issue_operator_invite: false,
            framework: 'generic',
          },
        }),
      )
      return {
        key,
        controlPlane,
        agentId: String((body['agent'] as Json)['id']),
        organizationId: String(body['organization_id']),
        tenantId: String(body['tenant_id']),
        operator: String(body['control_plane_access_token']),
        token: String(body['tenant_access_token']),
        body,
      }
    },
    async register(tenantId) {
      const path = '/api/v1/agents/auth/register/pow'
      const { key, proof } = await start(path, tenantId, { tenant_id: tenantId })
      const body = await expected(200, call('POST', `${path}/complete`, { json: proof }))
      return { key, agentId: String(body['agent_id']) }
    },
    async login(key, selector, scope) {
      const challenged = await call('POST', '/api/v1/agents/auth/challenge', { json: selector })
      if (challenged.status !== 200) return challenged
      return call('POST', '/api/v1/agents/auth/verify', {
        json: {
          challenge_id: challenged.body['challenge_id'],
          signature: key.signChallenge(String(challenged.body['payload'])),
          ...(scope === undefined ? {} : { scope }),
        },
      })
    },
    close: () => agent.close(),
    async end() {
      await agent.close()
      await at.end()
    },
  }
  return api
}

/** A busy machine accepts a thousand connections in more than undici's ten seconds. */
const CONNECT_MS_MAX = 60_000

function agentOf({ ca }: TestService): Agent {
  return new Agent({
    allowH2: ca !== undefined,
    connect: { timeout: CONNECT_MS_MAX, ...(ca === undefined ? {} : { ca, checkServerIdentity }) },
    connections: 16,
  })
}

async function read(answer: Awaited<ReturnType<typeof send>>): Promise<Answer> {
  const text = await answer.body.text()
  const isJson = /json\b/.test(String(answer.headers['content-type'] ?? '')) && text !== ''
  const parse = () => (text.includes('\n{') ? { text } : (JSON.parse(text) as Json))
  return {
    status: answer.statusCode,
    headers: Object.fromEntries(
      Object.entries(answer.headers).map(([name, value]) => [name, String(value)]),
    ),
    body: isJson && !String(answer.headers['content-type']).includes('ndjson') ? parse() : { text },
  }
}

/** What a token says of itself, unverified. */
export function claimsOf(token: unknown): Json {
  const [, payload = ''] = String(token).split('.')
  return JSON.parse(Buffer.from(payload, 'base64url').toString('utf8')) as Json
}
