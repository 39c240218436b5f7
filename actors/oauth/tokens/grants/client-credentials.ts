/** grant_type=client_credentials: an application gets a token for itself (RFC 6749 section 4.4). */
import type { MessageContext } from '../../../../runtime/kernel/actor.js'
import type { Random } from '../../../../runtime/kernel/random.js'
import type { ClientRow } from '../../../../storage/oauth/applications.js'
import type { OutboxEvent } from '../../../../storage/platform/outbox.js'
import type { Database } from '../../../../storage/platform/sql.js'
import { PERSON_SCOPES } from '../../../domain/scopes.js'
import type { AccessGrant } from '../issue/access-token.js'
import { knownAudience, readRequestedAudience, tokenAudience } from '../issue/audience.js'
import type { Client } from '../clients/clients.js'
import { type OAuthForm, readScope } from '../form.js'
import { issuedEvent } from '../issue/issued-event.js'
import type { TokenMetrics } from '../metrics.js'
import type { Issued, OAuthRefused } from '../protocol.js'
import { refuse } from '../refusals.js'
import type { JwtSettings } from '../settings.js'
import type { PreparedGrantsCache } from '../issue/prepared-grants-cache.js'
import type { GroupCommit } from '../../../platform/batching/group-commit.js'
import type { SignedAccess, TokenSigner } from '../issue/token-signer.js'

export type ClientCredentialsNeeds = {
  readonly database: Database
  readonly commits: GroupCommit
  readonly preparedGrants: PreparedGrantsCache
  readonly signer: TokenSigner
  readonly metrics: TokenMetrics
  readonly random: Random
  readonly issuer: string
  readonly jwt: JwtSettings
}

/**
 * Returns the token only after its `auth.token.issued` event is committed. Issues no refresh token,
 * since the client can authenticate again (RFC 6749 section 4.4.3).
 */
export async function grantClientCredentials(
  needs: ClientCredentialsNeeds,
  client: Client,
  form: OAuthForm,
  jkt: string | null,
  context: MessageContext,
): Promise<Issued | OAuthRefused> {
  if (client.kind !== 'application' || !client.confidential)
    return refuse('unauthorized_client', 'client_credentials is for confidential applications')
  const { row } = client
  if (!row.grantTypes.includes('client_credentials'))
    return refuse('unauthorized_client', 'the application does not have this grant')

  const scope = form.get('scope')
  const isCacheable = jkt === null && form.get('audience') === null && form.get('resource') === null
  const prepared = isCacheable ? needs.preparedGrants.get(row, scope) : undefined
  if (prepared !== undefined) {
    const { grant, claims, issued } = prepared
    const signed = await needs.signer.sign(grant, lifetimeSecs(needs), context, claims)
    return write(needs, grant, signed, issued.fill(needs.random, signed, context.requestId))
  }

  const scopes = requestedScopes(scope, row)
  if (scopes === null)
    return refuse('invalid_scope', 'a scope is malformed or not allowed for the application')
  const read = readRequestedAudience(form)
  if ('fault' in read) return refuse('invalid_target', read.fault)
  const { database, issuer, random } = needs
  const requested = isCacheable
    ? read.requested
    : await knownAudience(database, issuer, row, read.requested, context)
  if (requested === null)
    return refuse('invalid_target', 'the audience is not known in this tenant')

  const grant: AccessGrant = {
    subject: row.id,
    subjectType: 'service',
    tenantId: row.tenantId,
    organizationId: null,
    clientId: row.id,
    scopes,
    audience: tokenAudience(requested, { own: row.audience, issuer, scopes }),
    sessionId: null,
    grantId: null,
    level: null,
    amr: [],
    authTimeSecs: null,
    jkt,
    authorizationDetails: null,
  }
  if (isCacheable) needs.preparedGrants.record(row, scope, grant)
  const signed = await needs.signer.sign(grant, lifetimeSecs(needs), context)
  const event = issuedEvent(random, grant, signed, 'client_credentials', context.requestId)
  return write(needs, grant, signed, event)
}

const lifetimeSecs = ({ jwt }: ClientCredentialsNeeds) => jwt.access_token_lifetime_agent_secs

async function write(
  { commits, metrics }: ClientCredentialsNeeds,
  { tenantId, scopes }: AccessGrant,
  { accessToken, tokenType, expiresInSecs }: SignedAccess,
  event: OutboxEvent,
): Promise<Issued> {
  await commits.write(tenantId, { events: [event] })
  metrics.issued('client_credentials', 'service')
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

/** The scopes of the token, or null if the request names one that the application does not have. */
function requestedScopes(scope: string | null, row: DefaultedScopes): readonly string[] | null {
  if (scope === null) return defaultScopesOf(row)
  const requested = readScope(scope)
  return requested?.every((one) => row.scopes.includes(one)) ? requested : null
}

type DefaultedScopes = Pick<ClientRow, 'scopes' | 'defaultScopes'>

/**
 * The scopes of a request without `scope` (RFC 6749 section 3.3, pre-defined default): the
 * application's `default_scopes`. Without these, all of its scopes except `*:manage`, `vault:*` and
 * the user scopes, so that a token gets such a power only on request.
 */
export function defaultScopesOf({ scopes, defaultScopes }: DefaultedScopes): readonly string[] {
  // The application may have lost a scope since: its defaults do not restore it.
  if (defaultScopes !== null) return defaultScopes.filter((scope) => scopes.includes(scope))
  return scopes.filter(
    (scope) =>
      !scope.endsWith(':manage') && !scope.startsWith('vault:') && !PERSON_SCOPES.has(scope),
  )
}
