/** Login by signed challenge (docs/reference/agents.md). */
import {
  CHALLENGE_FIELDS,
  CHALLENGE_SUITE,
  FIELD_SEPARATOR,
} from '../../../actors/domain/signed-strings.js'
import type { AgentKey } from './agent.js'
import type { HttpClient } from './http.js'
import { expectAnswer, type Members, numberMember, textMember } from './refusal.js'
import type { TenantChoice } from './registration.js'

export type LoginOptions = TenantChoice & {
  readonly http: HttpClient
  readonly key: AgentKey
  /** The agent that the key must belong to. Default: any. */
  readonly agentId?: string | undefined
  /** The issuer from the bootstrap metadata: a challenge of another issuer is not signed. */
  readonly issuer: string
  /** Separated by spaces. Default: all that the agent may have. */
  readonly scope?: string | undefined
}

export type AgentToken = {
  readonly accessToken: string
  readonly expiresInSecs: number
  readonly scope: string
  readonly agentId: string
  readonly tenantId: string
}

/**
 * A fresh access token. Its refresh token is dropped, because the key replaces it.
 * @throws ServiceRefusal; Error for a challenge that must not be signed.
 */
export async function logIn(options: LoginOptions): Promise<AgentToken> {
  const { http, key, tenantId, tenantSlug, scope } = options
  const challenge = await expectAnswer(http, 200, {
    method: 'POST',
    path: '/api/v1/agents/auth/challenge',
    json: {
      // By its key, not its id: for an agent with several keys the service would ask for the
      // newest.
      key_id: key.fingerprint,
      ...(tenantId === undefined ? {} : { tenant_id: tenantId }),
      ...(tenantSlug === undefined ? {} : { tenant_slug: tenantSlug }),
    },
  })
  const payload = textMember(challenge, 'payload')
  const reason = unfit(payload, challenge, options)
  if (reason !== null) throw new Error(`the challenge is not signed: ${reason}`)
  const body = await expectAnswer(http, 200, {
    method: 'POST',
    path: '/api/v1/agents/auth/verify',
    json: {
      challenge_id: textMember(challenge, 'challenge_id'),
      signature: key.signChallenge(payload),
      ...(scope === undefined ? {} : { scope }),
    },
  })
  return {
    accessToken: textMember(body, 'access_token'),
    expiresInSecs: numberMember(body, 'expires_in'),
    scope: textMember(body, 'scope'),
    agentId: textMember(body, 'agent_id'),
    tenantId: textMember(body, 'tenant_id'),
  }
}

/**
 * A signature confirms every part of the string, so each part is checked. Null when all are valid.
 */
function unfit(
  payload: string,
  challenge: Members,
  { key, agentId, tenantId, issuer }: LoginOptions,
): string | null {
  const fields = payload.split(FIELD_SEPARATOR)
  if (fields.length !== CHALLENGE_FIELDS.length) return 'it must have eight fields'
  const [suite, forIssuer, forTenant, forAgent, forKey, forChallenge] = fields
  if (suite !== CHALLENGE_SUITE) return 'it has another signature suite'
  if (forIssuer !== issuer) return `it names the issuer ${forIssuer}, not ${issuer}`
  if (tenantId !== undefined && forTenant !== tenantId.toLowerCase())
    return 'it names another tenant'
  if (agentId !== undefined && forAgent !== agentId) return 'it names another agent'
  if (forKey !== key.fingerprint) return 'it names another key'
  if (forChallenge !== challenge['challenge_id']) return 'it names another challenge'
  return null
}
