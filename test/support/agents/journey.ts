/** Agent registration and login over HTTP, for tests. */
import { type AgentKey, createAgentKey } from '../../../runtime/clients/client/agent.js'
import { nonceFor } from '../identity/nonce.js'

export type Json = Record<string, unknown>

export interface Answer {
  readonly status: number
  readonly headers: Headers
  readonly text: string
  /** Empty unless the body is a JSON object. */
  readonly body: Json
}

export interface Caller {
  readonly call: (path: string, init?: RequestInit) => Promise<Answer>
  readonly post: (path: string, body: unknown, headers?: Record<string, string>) => Promise<Answer>
  readonly form: (
    path: string,
    fields: Record<string, string>,
    headers?: Record<string, string>,
  ) => Promise<Answer>
}

export function callerOf(baseUrl: string): Caller {
  const call = async (path: string, init: RequestInit = {}) => {
    const response = await fetch(baseUrl + path, init)
    const text = await response.text()
    const isJson = /^application\/(.*\+)?json/.test(response.headers.get('content-type') ?? '')
    const body = isJson ? (JSON.parse(text) as Json) : {}
    return { status: response.status, headers: response.headers, text, body }
  }
  return {
    call,
    post: (path, body, headers = {}) =>
      call(path, {
        method: 'POST',
        headers: { 'content-type': 'application/json', ...headers },
        body: JSON.stringify(body),
      }),
    form: (path, fields, headers = {}) =>
      call(path, { method: 'POST', headers, body: new URLSearchParams(fields) }),
  }
}

export const BOOTSTRAP = '/api/v1/agents/workspace/bootstrap'
export const REGISTER = '/api/v1/agents/auth/register'

export interface Started {
  readonly key: AgentKey
  readonly challengeId: string
  readonly nonce: string
}

type Target = Parameters<AgentKey['registration']>[0]
type Answered = { readonly status: number; readonly body: Json }
/** Sends a body as JSON. */
type Posts<A extends Answered> = (path: string, body: Json) => Promise<A>

/** A key, a start and its nonce; of a workspace or of an agent in the control plane. */
export async function start({ call, post }: Caller, path = `${BOOTSTRAP}/pow`): Promise<Started> {
  const { body } = demand(await call(BOOTSTRAP), 200)
  const { issuer, control_plane_tenant_id: tenantId } = body
  const target = { issuer: String(issuer), tenantId: String(tenantId) }
  return startAt(post, path, target, { name: 'Journey' })
}

/** The same in a known tenant. */
export async function startAt<A extends Answered>(
  post: Posts<A>,
  path: string,
  target: Target,
  more: Json = {},
): Promise<Started> {
  const key = createAgentKey()
  const asked = { name: 'Test agent', ...key.registration(target), ...more }
  const { body } = demand(await post(path, asked), 200)
  const nonce = nonceFor({
    challengeToken: String(body['challenge_token']),
    difficultyBits: Number(body['difficulty_bits']),
  })
  return { key, challengeId: String(body['challenge_id']), nonce }
}

export interface Workspace {
  readonly key: AgentKey
  readonly agentId: string
  readonly tenantId: string
  readonly organizationId: string
  readonly clientId: string
  readonly clientSecret: string
  /** The token of the agent, in the new tenant. */
  readonly accessToken: string
}

export function complete(
  { post }: Caller,
  { challengeId, nonce }: Started,
  more: Json = {},
): Promise<Answer> {
  return post(`${BOOTSTRAP}/pow/complete`, {
    challenge_id: challengeId,
    nonce,
    organization_name: 'Journey',
    redirect_uris: ['http://localhost:3000/callback'],
    issue_operator_invite: false,
    framework: 'generic',
    ...more,
  })
}

/** The result of a completed bootstrap. */
export function workspaceOf(key: AgentKey, { body }: Answer): Workspace {
  return {
    key,
    agentId: String((body['agent'] as Json)['id']),
    tenantId: String(body['tenant_id']),
    organizationId: String(body['organization_id']),
    clientId: String(body['client_id']),
    clientSecret: String(body['client_secret']),
    accessToken: String(body['tenant_access_token']),
  }
}

export async function bootstrap(caller: Caller): Promise<Workspace> {
  const started = await start(caller)
  return workspaceOf(started.key, demand(await complete(caller, started), 201))
}

export function login(caller: Caller, { key, agentId, tenantId }: Workspace): Promise<Answer> {
  return verify(caller, key, { agent_id: agentId, tenant_id: tenantId })
}

/** Challenge and verify; the answer of the first that refused. */
export async function verify<A extends Answered>(
  { post }: { readonly post: Posts<A> },
  key: AgentKey,
  selector: Json,
  scope?: string,
): Promise<A> {
  const challenge = await post('/api/v1/agents/auth/challenge', selector)
  if (challenge.status !== 200) return challenge
  const { challenge_id, payload } = challenge.body
  const asked = scope === undefined ? {} : { scope }
  const signature = key.signChallenge(String(payload))
  return post('/api/v1/agents/auth/verify', { challenge_id, signature, ...asked })
}

/** client_credentials of the workspace's application. */
export function clientToken({ form }: Caller, { clientId, clientSecret }: Workspace) {
  const basic = Buffer.from(`${clientId}:${clientSecret}`).toString('base64')
  return form(
    '/oauth/token',
    { grant_type: 'client_credentials' },
    { authorization: `Basic ${basic}` },
  )
}

/** @throws with the body for another status. */
export function demand<A extends Answered>(answer: A, status: number): A {
  if (answer.status === status) return answer
  const { text = JSON.stringify(answer.body) } = answer as A & { readonly text?: string }
  throw new Error(`${status} was expected, not ${answer.status}: ${text}`)
}
