/** Dynamically registered clients for tests: tokens, requests and responses. */
import { CALLBACK } from '../oauth/relying-party.js'
import { callAt, type Json, type TenantAgent } from './tenant-agent.js'

export const TOKENS = '/api/v1/oauth/registration-tokens'
export const REGISTRATION = { SVC_OIDC__DYNAMIC_REGISTRATION_ENABLED: 'true' }

export function registering(baseUrl: string, agent: TenantAgent) {
  async function initialToken(more: Json = {}): Promise<string> {
    const made = await agent.ask('POST', TOKENS, more)
    if (made.status !== 201) throw new Error(made.text)
    return String(made.body['token'])
  }

  const send = (method: string, path: string, token: string | null, body?: unknown) =>
    callAt(baseUrl, path, {
      method,
      headers: {
        ...(token === null ? {} : { authorization: `Bearer ${token}` }),
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    })
  const register = (token: string | null, metadata: unknown) =>
    send('POST', '/oauth/register', token, metadata)

  /** A client registered with a token for its scopes, with the path and the token of its registration. */
  async function registered(metadata: Json = {}) {
    const { scope } = metadata
    const initial = await initialToken(
      typeof scope === 'string' ? { scopes: scope.split(' ') } : {},
    )
    const answer = await register(initial, { redirect_uris: [CALLBACK], ...metadata })
    if (answer.status !== 201) throw new Error(answer.text)
    const { body } = answer
    const path = new URL(String(body['registration_client_uri'])).pathname
    const token = String(body['registration_access_token'])
    return { body, path, token, headers: answer.headers }
  }
  return { initialToken, send, register, registered }
}
