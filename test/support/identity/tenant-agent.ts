/** A bootstrapped workspace over HTTP: a tenant, and a token with all its scopes. */
import type { AgentKey } from '../../../runtime/clients/client/agent.js'
import { type Answer, bootstrap, callerOf, verify } from '../agents/journey.js'

export type { Answer, Json } from '../agents/journey.js'

export function callAt(baseUrl: string, path: string, init: RequestInit = {}): Promise<Answer> {
  return callerOf(baseUrl).call(path, init)
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
  const caller = callerOf(baseUrl)
  const { key, accessToken: token, tenantId, agentId } = await bootstrap(caller)
  const ask = (method: string, at: string, body?: unknown, headers: Record<string, string> = {}) =>
    caller.call(at, {
      method,
      headers: {
        authorization: `Bearer ${token}`,
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        ...headers,
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    })
  const login = (scope?: string) =>
    verify(caller, key, { tenant_id: tenantId, agent_id: agentId }, scope)
  return { key, token, tenantId, agentId, ask, login }
}
