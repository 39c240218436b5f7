/** The tokens of a user, access token and ID token, for a first grant and for a refresh. */
import type { MessageContext } from '../../../../runtime/kernel/actor.js'
import type { Clock } from '../../../../runtime/kernel/clock.js'
import type { Random } from '../../../../runtime/kernel/random.js'
import type {
  RequestedClaims,
  AuthorizationDetails,
} from '../../../../storage/oauth/authorization-codes.js'
import type { ApiResource } from '../../../domain/entities/api-resource.js'
import type { Database } from '../../../../storage/platform/sql.js'
import { findPerson } from '../../../../storage/identity/tenant-users.js'
import { claimsOf } from '../../../domain/person-claims.js'
import type { SigningAlgorithm } from '../../signing-keys/protocol.js'
import type { AccessGrant } from './access-token.js'
import { claimsOfResources, resourceLifetimeSecs } from './api-resource.js'
import { idTokenClaims } from './id-token.js'
import type { TokenScope } from './downscoping.js'
import type { GroupCommit } from '../../../platform/batching/group-commit.js'
import type { TokenMetrics } from '../metrics.js'
import type { JwtSettings } from '../settings.js'
import type { SignedAccess, TokenSigner } from './token-signer.js'

/** What a user granted to an application, from the row of its code or refresh family. */
type PersonGrant = {
  readonly tenantId: string
  readonly grantId: string
  readonly clientId: string
  readonly sessionId: string
  /** The `sid` of the ID token, for RP-initiated logout. */
  readonly idTokenSessionId: string
  readonly subject: string
  readonly organizationId: string | null
  readonly scopes: readonly string[]
  readonly audience: readonly string[]
  /** The API resources of the token. Empty for other audiences. */
  readonly resources: readonly ApiResource[]
  readonly level: number
  readonly amr: readonly string[]
  readonly authTime: Date
  readonly authorizationDetails: AuthorizationDetails | null
  readonly claims: RequestedClaims | null
  readonly nonce: string | null
  readonly jkt: string | null
}

type OfRow = 'tenantId' | 'subject' | 'organizationId' | 'amr' | 'authTime'

/**
 * Builds the grant from a row and the downscoped request. It copies member by member: an object that
 * starts as a spread gets a new hidden class each time, which V8 reads slowly.
 */
export function personGrant(
  row: Pick<PersonGrant, OfRow>,
  tokenScope: TokenScope,
  own: Omit<PersonGrant, OfRow | keyof TokenScope>,
): PersonGrant {
  return {
    tenantId: row.tenantId,
    grantId: own.grantId,
    clientId: own.clientId,
    sessionId: own.sessionId,
    idTokenSessionId: own.idTokenSessionId,
    subject: row.subject,
    organizationId: row.organizationId,
    scopes: own.scopes,
    audience: tokenScope.audience,
    resources: tokenScope.resources,
    level: own.level,
    amr: row.amr,
    authTime: row.authTime,
    authorizationDetails: tokenScope.authorizationDetails,
    claims: own.claims,
    nonce: own.nonce,
    jkt: own.jkt,
  }
}

export type PersonTokens = {
  readonly access: SignedAccess
  readonly grant: AccessGrant
  /** Null without the scope `openid`. */
  readonly idToken: string | null
}

export type PersonTokensNeeds = {
  readonly database: Database
  readonly signer: TokenSigner
  readonly issuer: string
  readonly jwt: JwtSettings
}

/** What every grant needs. */
export type GrantNeeds = PersonTokensNeeds & {
  readonly commits: GroupCommit
  readonly metrics: TokenMetrics
  readonly clock: Clock
  readonly random: Random
}

export async function signPersonTokens(
  { database, signer, issuer, jwt }: PersonTokensNeeds,
  of: PersonGrant,
  algorithm: SigningAlgorithm,
  context: MessageContext,
): Promise<PersonTokens> {
  const authTimeSecs = Math.floor(of.authTime.getTime() / 1000)
  const grant: AccessGrant = {
    subject: of.subject,
    subjectType: 'human',
    tenantId: of.tenantId,
    organizationId: of.organizationId,
    clientId: of.clientId,
    scopes: of.scopes,
    audience: of.audience,
    ...claimsOfResources(of.resources),
    sessionId: of.sessionId,
    grantId: of.grantId,
    level: of.level,
    amr: of.amr,
    authTimeSecs,
    jkt: of.jkt,
    authorizationDetails: of.authorizationDetails,
  }
  const lifetimeSecs = resourceLifetimeSecs(of.resources, jwt.access_token_lifetime_human_secs)
  const access = await signer.sign(grant, lifetimeSecs, context)
  if (!of.scopes.includes('openid')) return { access, grant, idToken: null }
  const claims = idTokenClaims({
    issuer,
    subject: of.subject,
    tenantId: of.tenantId,
    clientId: of.clientId,
    sessionId: of.idTokenSessionId,
    nowSecs: Math.floor(access.issuedAt.getTime() / 1000),
    lifetimeSecs: jwt.id_token_lifetime_secs,
    authTimeSecs,
    nonce: of.nonce,
    acr: `aal${of.level}`,
    amr: of.amr,
    accessToken: access.accessToken,
    algorithm,
    personal: await personal(database, of, context),
  })
  return { access, grant, idToken: await signer.signIdToken(claims, algorithm, context) }
}

async function personal(
  database: Database,
  { tenantId, subject, claims }: PersonGrant,
  context: MessageContext,
): Promise<Readonly<Record<string, unknown>>> {
  const names = claims?.idToken ?? []
  if (names.length === 0) return {}
  // Accounts belong to no tenant, so the look-up crosses tenants.
  const facts = await database.system((tx) => findPerson(tx, tenantId, subject), context)
  return facts === undefined ? {} : claimsOf(facts, [], names)
}
