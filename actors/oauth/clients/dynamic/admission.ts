/**
 * Authorization of registration (initial access token, RFC 7591 section 3) and of its management
 * (registration access token, RFC 7592 section 2).
 */
import { timingSafeEqual } from 'node:crypto'
import type { ActorRef, MessageContext } from '../../../../runtime/kernel/actor.js'
import type { Clock } from '../../../../runtime/kernel/clock.js'
import {
  findRegistered,
  findRegistrationToken,
  type RegisteredRow,
  type ScopeBounds,
} from '../../../../storage/oauth/client-registration.js'
import type { Database } from '../../../../storage/platform/sql.js'
import { isUuid } from '../../../domain/ids.js'
import { sha256 } from '../../../domain/secret-hashes.js'
import type { TenantsProtocol } from '../../../identity/users/tenants/protocol.js'
import { creatorScopes } from '../../../platform/oauth/creator-scopes.js'
import { refused } from './metadata.js'
import type { MetadataRefused, TokenRefused } from './protocol.js'

/** The scope that creating an initial access token needs. */
const CREATOR_SCOPE = 'applications:manage'
const BEARER = /^bearer +([A-Za-z0-9._~+/-]+=*)$/i

export type AdmissionNeeds = {
  readonly database: Database
  readonly clock: Clock
  readonly tenants: ActorRef<TenantsProtocol>
  /** `oidc.registration_initial_access_token_required`. */
  readonly tokenRequired: boolean
}

/** The tenant and the limits of a new client. */
type Admission = {
  readonly tag: 'admitted'
  readonly tenantId: string
  readonly tenantSlug: string
  readonly bounds: ScopeBounds
  /** The initial access token. Null without one. */
  readonly tokenId: string | null
}

export async function admit(
  { database, clock, tenants, tokenRequired }: AdmissionNeeds,
  authorization: string | null,
  host: string,
  context: MessageContext,
): Promise<Admission | TokenRefused | MetadataRefused> {
  const token = bearerTokenOf(authorization)
  if (token !== null) {
    // The tenant is unknown until the token is found, so the look-up crosses tenants.
    const found = await database.system(async (tx) => {
      const row = await findRegistrationToken(tx, sha256(token), clock.now())
      if (row === undefined) return undefined
      const { maker: creator, tenantId } = row
      return {
        ...row,
        allowed: creator === null ? null : await creatorScopes(tx, tenantId, creator),
      }
    }, context)
    if (found === undefined)
      return denied('the initial access token is unknown, expired or used up')
    const { tenantId, tenantSlug, allowed, id: tokenId } = found
    if (allowed?.includes(CREATOR_SCOPE) === false)
      return denied('the creator of the initial access token may no longer manage applications')
    const held = found.bounds.held.filter((scope) => allowed?.includes(scope) ?? true)
    return { tag: 'admitted', tenantId, tenantSlug, bounds: { ...found.bounds, held }, tokenId }
  }
  if (tokenRequired || authorization !== null)
    return denied('registration needs an initial access token', authorization)
  const resolved = await tenants.resolve({ host }, context)
  if (resolved.tag !== 'resolved' || resolved.tenant.status !== 'active')
    return refused('this host does not belong to a tenant')
  const { id: tenantId, slug: tenantSlug, controlPlane } = resolved.tenant
  if (controlPlane) return denied('on this host, registration needs an initial access token', null)
  const bounds = { held: [], chosen: null }
  return { tag: 'admitted', tenantId, tenantSlug, bounds, tokenId: null }
}

/** The client of a registration access token. */
export async function authorizeManagement(
  { database }: Pick<AdmissionNeeds, 'database'>,
  clientId: string,
  authorization: string | null,
  context: MessageContext,
): Promise<{ tag: 'managed'; row: RegisteredRow; token: string } | TokenRefused> {
  const token = bearerTokenOf(authorization)
  const row =
    token === null || !isUuid(clientId)
      ? undefined
      : // The tenant is unknown until the client is found, so the look-up crosses tenants.
        await database.system((tx) => findRegistered(tx, clientId), context)
  const right =
    token !== null &&
    row?.active === true &&
    timingSafeEqual(sha256(token), Buffer.from(row.tokenSha256))
  if (!right)
    return denied('the registration access token is not valid for this client', authorization)
  return { tag: 'managed', row, token }
}

/** @param authorization null: the request has no credentials. */
export function denied(description: string, authorization: string | null = ''): TokenRefused {
  return { tag: 'token_refused', description, isMissing: authorization === null }
}

function bearerTokenOf(authorization: string | null): string | null {
  return BEARER.exec(authorization ?? '')?.[1] ?? null
}
