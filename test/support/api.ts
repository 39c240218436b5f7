/** The API of a test service as its clients use it, over either transport. */
import { Agent, request as send } from 'undici'
import type { AgentKey } from '../../runtime/clients/client/agent.js'
import { startAt, verify } from './agents/journey.js'
import { type Reply, replyOf } from './reply.js'
import type { TestService } from './service/settings.js'
import { clientEnds } from './endings.js'
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
  call(method: string, path: string, call?: Call): Reply<Answer>
  get(path: string, token?: string): Reply<Answer>
  post(
    path: string,
    token?: string,
    json?: unknown,
    headers?: Record<string, string>,
  ): Reply<Answer>
  put(path: string, token: string | undefined, json: unknown): Reply<Answer>
  patch(path: string, token: string | undefined, json: unknown): Reply<Answer>
  delete(path: string, token?: string): Reply<Answer>
  form(
    path: string,
    fields: Record<string, string> | readonly (readonly [string, string])[],
    headers?: Record<string, string>,
  ): Reply<Answer>
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
  login(key: AgentKey, selector: Json, scope?: string): Reply<Answer>
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
  /** The operator's token, in the control plane. */
  readonly operator: string
  /** A token of its sandbox tenant. */
  readonly token: string
  readonly body: Json
}

/**
 * Its connections are closed at the end of the test file.
 * @param agent Opens them. Default: any connection of the service.
 */
export function apiOf(at: TestService, agent = agentOf(at)): Api {
  async function sent(
    method: string,
    path: string,
    headers: Record<string, string>,
    body: string | null = null,
  ): Promise<Answer> {
    const url = new URL(path, at.baseUrl)
    return read(await send(url, { dispatcher: agent, method: method as 'GET', headers, body }))
  }

  const call = (method: string, path: string, { token, json, headers = {} }: Call = {}) =>
    replyOf(
      sent(
        method,
        path,
        {
          ...(json === undefined ? {} : { 'content-type': 'application/json' }),
          ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
          ...headers,
        },
        json === undefined ? null : JSON.stringify(json),
      ),
    )

  const post = (path: string, json: Json) => call('POST', path, { json })

  async function start(path: string, tenantId: string, more: Json = {}) {
    const target = { issuer: at.baseUrl, tenantId }
    const { key, challengeId, nonce } = await startAt(post, path, target, more)
    return { key, proof: { challenge_id: challengeId, nonce } }
  }

  const api: Api = {
    at,
    call,
    get: (path, token) => call('GET', path, { token }),
    post: (path, token, json, headers = {}) => call('POST', path, { token, json, headers }),
    put: (path, token, json) => call('PUT', path, { token, json }),
    patch: (path, token, json) => call('PATCH', path, { token, json }),
    delete: (path, token) => call('DELETE', path, { token }),
    form(path, fields, headers = {}) {
      const body = new URLSearchParams(fields as Record<string, string>).toString()
      const type = { 'content-type': 'application/x-www-form-urlencoded' }
      return replyOf(sent('POST', path, { ...type, ...headers }, body))
    },
    async list(path, token) {
      const { status, headers, body } = await call('GET', path, { token })
      const next = /<([^>]+)>; rel="next"/.exec(headers['link'] ?? '')?.[1]
      return { status, rows: body as unknown as Json[], next: next?.slice(at.baseUrl.length) }
    },
    async workspace(name = 'Acme', from) {
      const path = '/api/v1/agents/workspace/bootstrap'
      const metadata = await call('GET', path).gives(200)
      const controlPlane = String(metadata.body['control_plane_tenant_id'])
      const { key, proof } = await start(`${path}/pow`, controlPlane)
      const { body } = await call('POST', `${path}/pow/complete`, {
        ...(from === undefined ? {} : { headers: { 'x-forwarded-for': from } }),
        json: {
          ...proof,
          organization_name: name,
          redirect_uris: [],
          issue_operator_invite: false,
          framework: 'generic',
        },
      }).gives(201)
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
      const { body } = await call('POST', `${path}/complete`, { json: proof }).gives(200)
      return { key, agentId: String(body['agent_id']) }
    },
    login: (key, selector, scope) => replyOf(verify({ post }, key, selector, scope)),
    close: clientEnds(() => agent.close()),
    async end() {
      await api.close()
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

/** The body of an answer with this status. */
export async function expected(status: number, answer: Promise<Answer>): Promise<Json> {
  return (await replyOf(answer).gives(status)).body
}
