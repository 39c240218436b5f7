/** A bootstrapped workspace over HTTP: a tenant, and a token with all its scopes. */
import { type AgentKey, createAgentKey } from '../../../runtime/client/agent.js'
import { nonceFor } from './nonce.js'

export type Json = Record<string, unknown>
export type Answer = { status: number; headers: Headers; text: string; body: Json }

export async function callAt(
  baseUrl: string,
  path: string,
  init: RequestInit = {},
): Promise<Answer> {
  const response = await fetch(baseUrl + path, init)
  const text = await response.text()
  const isJson = response.headers.get('content-type')?.includes('json') ?? false
  const body = isJson ? (JSON.parse(text) as Json) : {}
  return { status: response.status, headers: response.headers, text, body }
}

export interface TenantAgent {
  readonly key: AgentKey
  readonly token: string
  readonly tenantId: string
  readonly agentId: string
  /** Sends a request as that agent, with its tenant token. */
  ask(
    method: string,
    path: string,
    body?: unknown,
    headers?: Record<string, string>,
  ): Promise<Answer>
  /** Issues another token of the tenant, which emits `auth.token.issued`. */
  login(scope?: string): Promise<Answer>
}

export async function tenantAgent(baseUrl: string): Promise<TenantAgent> {
  const post = (path: string, body: unknown, headers: Record<string, string> = {}) =>
    callAt(baseUrl, path, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body: JSON.stringify(body),
    })
  const path = '/api/v1/agents/workspace/bootstrap'
  const { body: metadata } = await callAt(baseUrl, path)
  const key = createAgentKey()
  const target = {
    issuer: String(metadata['issuer']),
    tenantId: String(metadata['control_plane_tenant_id']),
  }
  const start = await post(`${path}/pow`, { name: 'Agent', ...key.registration(target) })
  const nonce = nonceFor({
    challengeToken: String(start.body['challenge_token']),
    difficultyBits: Number(start.body['difficulty_bits']),
  })
  const done = await post(`${path}/pow/complete`, {
    challenge_id: start.body['challenge_id'],
    nonce,
    organization_name: 'Webhooks',
    redirect_uris: ['http://localhost:3000/callback'],
    issue_operator_invite: false,
    framework: 'generic',
  })
  if (done.status !== 201) throw new Error(done.text)
  const token = String(done.body['tenant_access_token'])
  const tenantId = String(done.body['tenant_id'])
  const agentId = (done.body['agent'] as { id: string }).id

  const ask = (method: string, at: string, body?: unknown, headers: Record<string, string> = {}) =>
    callAt(baseUrl, at, {
      method,
      headers: {
        authorization: `Bearer ${token}`,
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        ...headers,
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    })
  async function login(scope?: string) {
    const challenge = await post('/api/v1/agents/auth/challenge', {
      tenant_id: tenantId,
      agent_id: agentId,
    })
    return post('/api/v1/agents/auth/verify', {
      challenge_id: challenge.body['challenge_id'],
      signature: key.signChallenge(String(challenge.body['payload'])),
      ...(scope === undefined ? {} : { scope }),
    })
  }
  return { key, token, tenantId, agentId, ask, login }
}
