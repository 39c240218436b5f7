/** grant_type=client_credentials: an application gets a token of its own. RFC 6749 section 4.4. */
import type { Turn } from '../../runtime/kernel/actor.js'
import type { Random } from '../../runtime/kernel/random.js'
import type { Database } from '../../storage/sql.js'
import type { AccessGrant } from './access-token.js'
import { areKnownAudiences, readAskedAudience, tokenAudience } from './audience.js'
import type { Client } from './clients.js'
import { type OAuthForm, readScope } from './form.js'
import { issuedEvent } from './issued-event.js'
import type { TokenMetrics } from './metrics.js'
import type { Issued, OAuthRefused } from './protocol.js'
import { refuse } from './refusals.js'
import type { JwtSettings } from './settings.js'
import type { TenantCommits } from './tenant-commits.js'
import type { TokenSigner } from './token-signer.js'

export type ClientCredentialsNeeds = {
  readonly database: Database
  readonly commits: TenantCommits
  readonly signer: TokenSigner
  readonly metrics: TokenMetrics
  readonly random: Random
  readonly issuer: string
  readonly jwt: JwtSettings
}

/**
 * Issues once the row of the token is committed: what was not written down was not issued. No
 * refresh token: the client has its credentials (RFC 6749 section 4.4.3).
 */
export async function grantClientCredentials(
  needs: ClientCredentialsNeeds,
  client: Client,
  form: OAuthForm,
  jkt: string | null,
  turn: Turn,
): Promise<Issued | OAuthRefused> {
  if (client.kind !== 'application' || !client.confidential)
    return refuse('unauthorized_client', 'client_credentials is for confidential applications')
  const { row } = client
  if (!row.grantTypes.includes('client_credentials'))
    return refuse('unauthorized_client', 'the application does not have this grant')

  const scopes = askedScopes(form, row.scopes)
  if (scopes === null)
    return refuse('invalid_scope', 'a scope is malformed or not one of the application')
  const asked = readAskedAudience(form)
  if ('fault' in asked) return refuse('invalid_target', asked.fault)
  const { database, issuer, jwt } = needs
  if (
    asked.asked.length > 0 &&
    !(await areKnownAudiences(database, issuer, row, asked.asked, turn))
  )
    return refuse('invalid_target', 'the audience is not one of this tenant')

  const grant: AccessGrant = {
    subject: row.id,
    subjectType: 'service',
    tenantId: row.tenantId,
    organizationId: null,
    clientId: row.id,
    scopes,
    audience: tokenAudience(asked.asked, { own: row.audience, issuer, scopes }),
    sessionId: null,
    grantId: null,
    level: null,
    amr: [],
    authTimeSecs: null,
    jkt,
    authorizationDetails: null,
  }
  const signed = await needs.signer.sign(grant, jwt.access_token_lifetime_agent_secs, turn)
  const event = issuedEvent(needs.random, grant, signed, 'client_credentials', turn.requestId)
  await needs.commits.write(row.tenantId, { events: [event] })
  needs.metrics.issued('client_credentials', 'service')
  const { accessToken, tokenType, expiresInSecs } = signed
  return {
    tag: 'issued',
    accessToken,
    tokenType,
    expiresInSecs,
    scopes,
    refreshToken: null,
    idToken: null,
    authorizationDetails: null,
  }
}

/** Nothing asked for is everything the application has; null when something else was asked for. */
function askedScopes(form: OAuthForm, own: readonly string[]): readonly string[] | null {
  const scope = form.get('scope')
  if (scope === null) return own
  const asked = readScope(scope)
  return asked?.every((one) => own.includes(one)) ? asked : null
}
