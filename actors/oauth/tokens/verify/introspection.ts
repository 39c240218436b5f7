/** Token introspection (RFC 7662). See docs/guides/oauth/token-introspection.md. */
import type { MessageContext } from '../../../../runtime/kernel/actor.js'
import { findRefreshToken } from '../../../../storage/oauth/refresh-tokens.js'
import { findMetadataUrl } from '../../../../storage/oauth/applications.js'
import type { Database } from '../../../../storage/platform/sql.js'
import type { ReadToken } from '../issue/access-token.js'
import type { AccessTokenVerifier } from './access-token-verifier.js'
import type { ApiKeyVerifier } from './api-key-verifier.js'
import { isApiKey } from '../../../domain/oauth/api-key.js'
import { delegationIntent } from '../../../domain/agents/delegation-intent.js'
import { sha256 } from '../../../domain/secret-hashes.js'
import { type Client, isAdmitted } from '../clients/clients.js'
import type { Clock } from '../../../../runtime/kernel/clock.js'
import type { ActiveToken, Introspection } from '../protocol.js'

const INACTIVE = { active: false } as const
/** Access tokens are JWTs with dots. Refresh tokens have no dots. */
const ACCESS_TOKEN_FORM = /\./

/** Which tokens the requester may introspect. */
export type Inspector = {
  /** Null for a client that may introspect its own tokens only. */
  readonly tenantId: string | null
  /** Set for an agent: it may also introspect its own tokens of other tenants. */
  readonly clientId: string | null
}

type IntrospectionNeeds = {
  readonly database: Database
  readonly verifier: AccessTokenVerifier
  /** Null where API keys are off. */
  readonly apiKeys: ApiKeyVerifier | null
  readonly clock: Clock
  readonly issuer: string
}

/** Confidential clients introspect the tokens of their tenant, public clients none (RFC 7662 section 4). */
export function inspectorOf(client: Client, clientId: string): Inspector | null {
  if (!client.confidential) return null
  // Such a client is not registered, so it introspects its own tokens only.
  if (client.kind === 'application' && client.row.metadataUrl !== null)
    return { tenantId: null, clientId }
  // The rule bounds what a workload may do as the client.
  if (isAdmitted(client) && !client.row.scopes.includes('tokens:introspect'))
    return { tenantId: null, clientId }
  return client.kind === 'application'
    ? { tenantId: client.row.tenantId, clientId: null }
    : { tenantId: client.row.homeTenantId, clientId: client.row.id }
}

export async function introspect(
  needs: IntrospectionNeeds,
  inspector: Inspector,
  token: string,
  context: MessageContext,
): Promise<Introspection> {
  const inspected = await inspect(needs, token, context)
  if (!inspected.active) return INACTIVE
  const mayKnow =
    inspected.tenantId === inspector.tenantId ||
    (inspector.clientId !== null && inspected.clientId === inspector.clientId)
  return mayKnow ? inspected : INACTIVE
}

function inspect(
  needs: IntrospectionNeeds,
  token: string,
  context: MessageContext,
): Promise<Introspection> {
  if (ACCESS_TOKEN_FORM.test(token)) return accessToken(needs, token, context)
  if (needs.apiKeys !== null && isApiKey(token)) return apiKey(needs.apiKeys, needs.issuer, token)
  return refreshToken(needs, token, context)
}

/** The scopes that the key has now: at most the scopes of its creator. */
async function apiKey(keys: ApiKeyVerifier, issuer: string, token: string): Promise<Introspection> {
  const found = await keys.inspect(token)
  if (found === null) return INACTIVE
  const { principal, issuedAtSecs } = found
  return describe({
    principal,
    issuer,
    issuedAtSecs,
    notBeforeSecs: issuedAtSecs,
    amr: [],
    mayAct: null,
    authorizationDetails: null,
  })
}

async function accessToken(
  { verifier }: IntrospectionNeeds,
  token: string,
  context: MessageContext,
): Promise<Introspection> {
  const inspected = await verifier.inspect(token, context, 'fresh')
  return inspected.state === 'active' ? describe(inspected.token) : INACTIVE
}

type DescribedMembers =
  | 'principal'
  | 'issuer'
  | 'issuedAtSecs'
  | 'notBeforeSecs'
  | 'amr'
  | 'mayAct'
  | 'authorizationDetails'

function describe({
  principal,
  issuer,
  issuedAtSecs,
  notBeforeSecs,
  amr,
  mayAct,
  authorizationDetails,
}: Pick<ReadToken, DescribedMembers>): ActiveToken {
  return {
    active: true,
    tokenType: principal.jkt === null ? 'Bearer' : 'DPoP',
    scope: principal.scopes.join(' '),
    clientId: principal.clientId,
    subject: principal.subject,
    subjectType: principal.subjectType,
    tenantId: principal.tenantId,
    issuer,
    audience: principal.audience,
    expiresAtSecs: principal.expiresAtSecs,
    issuedAtSecs,
    notBeforeSecs,
    tokenId: principal.tokenId,
    organizationId: principal.organizationId,
    organizationBound: principal.organizationBound === true,
    sessionId: principal.sessionId,
    grantId: principal.grantId ?? null,
    jkt: principal.jkt,
    amr,
    authTimeSecs: principal.authTimeSecs,
    acr: principal.acr,
    actors: principal.actors,
    delegationId: principal.delegationId,
    delegation: principal.delegation,
    mayAct,
    // A resource server gets the same details here as in the token (RFC 9396 section 9.2).
    authorizationDetails,
  }
}

async function refreshToken(
  { database, clock, issuer }: IntrospectionNeeds,
  token: string,
  context: MessageContext,
): Promise<Introspection> {
  // The tenant is unknown until the token is found, so the look-up crosses tenants.
  const [row, clientId] = await database.system(async (tx) => {
    const found = await findRefreshToken(tx, sha256(token))
    const url = found && (await findMetadataUrl(tx, found.tenantId, found.clientId))
    return [found, url ?? found?.clientId] as const
  }, context)
  if (row === undefined || clientId === undefined) return INACTIVE
  if (row.rotatedAt !== null || row.revokedAt !== null) return INACTIVE
  if (row.sessionEndedAt !== null || row.expiresAt <= clock.now()) return INACTIVE
  if (!row.tenantActive || !row.clientActive) return INACTIVE
  const seconds = (at: Date) => Math.floor(at.getTime() / 1000)
  return {
    active: true,
    tokenType: 'refresh_token',
    scope: row.scopes.join(' '),
    clientId,
    subject: row.subject,
    subjectType: row.subjectType,
    tenantId: row.tenantId,
    issuer,
    audience: row.audience,
    expiresAtSecs: seconds(row.expiresAt),
    issuedAtSecs: seconds(row.issuedAt),
    notBeforeSecs: seconds(row.issuedAt),
    tokenId: `${row.familyId}.${row.generation}`,
    organizationId: row.organizationId,
    organizationBound: false,
    sessionId: row.sessionId,
    grantId: row.subjectType === 'human' && row.delegationId === null ? row.familyId : null,
    jkt: row.jkt,
    amr: row.amr,
    authTimeSecs: seconds(row.authTime),
    acr: row.level === null ? null : `aal${row.level}`,
    actors: row.delegationId === null ? [] : [{ sub: row.clientId, subjectType: 'agent' }],
    delegationId: row.delegationId,
    delegation: row.delegation === null ? undefined : delegationIntent(row.delegation),
    mayAct: null,
    authorizationDetails: row.authorizationDetails,
  }
}
