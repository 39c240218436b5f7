/**
 * Token revocation (RFC 7009). Revoking a refresh token revokes its family and all of its access
 * tokens. Revoking an access token affects that token only.
 */
import type { MessageContext } from '../../../../runtime/kernel/actor.js'
import { revokeDelegationRow } from '../../../../storage/agents/delegations.js'
import { appendEvents } from '../../../../storage/platform/outbox.js'
import { findRefreshToken, revokeRefreshFamily } from '../../../../storage/oauth/refresh-tokens.js'
import { insertRevokedToken } from '../../../../storage/oauth/revoked-tokens.js'
import { endSessionRow } from '../../../../storage/oauth/token-sessions.js'
import { byClient, delegationsRevoked } from '../../../domain/revocation.js'
import { sha256 } from '../../../domain/secret-hashes.js'
import type { AccessTokenVerifier } from './access-token-verifier.js'
import { type Client, publicClientId } from '../clients/clients.js'
import type { OAuthForm } from '../form.js'
import { revokedEvent } from '../issue/issued-event.js'
import type { OAuthRefused, Revoked } from '../protocol.js'
import { refuse } from '../refusals.js'
import type { WriteNeeds } from '../../../platform/write-needs.js'

/** Access tokens are JWTs with dots, refresh tokens have none: token_type_hint is not needed. */
const ACCESS_TOKEN_FORM = /\./
const DONE: Revoked = { tag: 'revoked' }

type RevocationNeeds = WriteNeeds & {
  readonly verifier: AccessTokenVerifier
  /** Drops cached status of these ids, so that this process refuses their tokens immediately. */
  readonly invalidate: (ids: readonly string[]) => void
}

export async function revoke(
  needs: RevocationNeeds,
  client: Client,
  form: OAuthForm,
  context: MessageContext,
): Promise<Revoked | OAuthRefused> {
  const token = form.get('token')
  if (token === null) return refuse('invalid_request', 'token is missing', 'parameter_missing')
  return ACCESS_TOKEN_FORM.test(token)
    ? revokeAccess(needs, client, token, context)
    : revokeFamily(needs, client, token, context)
}

async function revokeAccess(
  { verifier, database, clock, random, invalidate }: RevocationNeeds,
  client: Client,
  token: string,
  context: MessageContext,
): Promise<Revoked | OAuthRefused> {
  const accessToken = await verifier.read(token, context)
  if (accessToken === null || clock.nowSecs() >= accessToken.principal.expiresAtSecs) return DONE
  const { tenantId, tokenId, clientId, subject, sessionId, expiresAtSecs } = accessToken.principal
  if (clientId !== publicClientId(client)) return notTheirs()
  const now = clock.now()
  await database.tenant(tenantId, async (tx) => {
    const expiresAt = new Date(expiresAtSecs * 1000)
    const first = await insertRevokedToken(tx, { tenantId, tokenId, revokedAt: now, expiresAt })
    if (!first) return
    const resource = { type: 'token', id: tokenId } as const
    const ended = { tenantId, resource, clientId, subject, sessionId }
    appendEvents(tx, [revokedEvent(random, ended, now, context.requestId)])
  })
  invalidate([tokenId])
  return DONE
}

/** Every token of a family identifies it, including a rotated one. */
async function revokeFamily(
  { database, clock, random, invalidate }: RevocationNeeds,
  client: Client,
  token: string,
  context: MessageContext,
): Promise<Revoked | OAuthRefused> {
  // The tenant is unknown until the token is found, so the look-up crosses tenants.
  const row = await database.system((tx) => findRefreshToken(tx, sha256(token)), context)
  if (row === undefined) return DONE
  if (row.clientId !== client.row.id) return notTheirs()
  const { tenantId, familyId, sessionId, subject, subjectType, delegationId } = row
  const clientId = publicClientId(client)
  const now = clock.now()
  await database.tenant(tenantId, async (tx) => {
    if (!(await revokeRefreshFamily(tx, tenantId, familyId, 'revoked', now))) return
    // An agent's session has only this family. A user's session has families of other applications too.
    if (subjectType === 'agent') await endSessionRow(tx, tenantId, sessionId, 'revoked', now)
    // An agent's delegated family ends together with its delegation (RFC 7009 section 2.1).
    const returned =
      delegationId === null
        ? undefined
        : await revokeDelegationRow(tx, tenantId, delegationId, 'returned', now)
    const resource = { type: 'refresh_family', id: familyId } as const
    const ended = { tenantId, resource, clientId, subject, sessionId }
    appendEvents(tx, [
      revokedEvent(random, ended, now, context.requestId),
      ...delegationsRevoked(
        random,
        returned === undefined ? [] : [returned],
        byClient(clientId, context.requestId),
      ),
    ])
  })
  invalidate([familyId, sessionId])
  return DONE
}

/** RFC 7009 section 2.1: the request is refused and nothing is revoked. */
function notTheirs(): OAuthRefused {
  return refuse('invalid_grant', 'the token was issued to another client', 'token_of_other_client')
}
