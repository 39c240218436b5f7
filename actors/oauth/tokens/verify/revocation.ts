/**
 * Ends a token that its client gives back. RFC 7009; decisions.md 7.3, revoke. A refresh token takes
 * its family along, and with it every access token of the family; an access token ends alone.
 */
import type { MessageContext } from '../../../../runtime/kernel/actor.js'
import type { Clock } from '../../../../runtime/kernel/clock.js'
import type { Random } from '../../../../runtime/kernel/random.js'
import { revokeDelegation } from '../../../../storage/agents/delegations.js'
import { appendEvents } from '../../../../storage/platform/outbox.js'
import { findRefreshToken, revokeRefreshFamily } from '../../../../storage/oauth/refresh-tokens.js'
import { insertRevokedToken } from '../../../../storage/oauth/revoked-tokens.js'
import { endSession } from '../../../../storage/oauth/token-sessions.js'
import type { Database } from '../../../../storage/platform/sql.js'
import { byClient, delegationsRevoked } from '../../../domain/revocation.js'
import type { Bearer } from './access-token-verifier.js'
import type { Client } from '../clients/clients.js'
import type { OAuthForm } from '../form.js'
import { revokedEvent } from '../issue/issued-event.js'
import type { OAuthRefused, Revoked } from '../protocol.js'
import { hashRefreshToken } from '../grants/refresh-token.js'
import { refuse } from '../refusals.js'

/** An access token is a JWS, a refresh token has no dots: the hint is not needed. */
const ACCESS_TOKEN_FORM = /\./
const DONE: Revoked = { tag: 'revoked' }

export type RevocationNeeds = {
  readonly database: Database
  readonly bearer: Bearer
  readonly clock: Clock
  readonly random: Random
  /** Told what was ended, so that this process refuses it from now on. */
  readonly standingChanged: (ids: readonly string[]) => void
}

export async function revoke(
  needs: RevocationNeeds,
  client: Client,
  form: OAuthForm,
  context: MessageContext,
): Promise<Revoked | OAuthRefused> {
  const token = form.get('token')
  if (token === null) return refuse('invalid_request', 'token is missing')
  return ACCESS_TOKEN_FORM.test(token)
    ? revokeAccess(needs, client, token, context)
    : revokeFamily(needs, client, token, context)
}

async function revokeAccess(
  { bearer, database, clock, random, standingChanged }: RevocationNeeds,
  client: Client,
  token: string,
  context: MessageContext,
): Promise<Revoked | OAuthRefused> {
  const found = await bearer.read(token, context)
  if (found === null || clock.nowSecs() >= found.principal.expiresAtSecs) return DONE
  const { tenantId, tokenId, clientId, subject, sessionId, expiresAtSecs } = found.principal
  if (clientId !== client.row.id) return notTheirs()
  const now = clock.now()
  await database.tenant(tenantId, async (tx) => {
    const expiresAt = new Date(expiresAtSecs * 1000)
    const first = await insertRevokedToken(tx, { tenantId, tokenId, revokedAt: now, expiresAt })
    if (!first) return
    const resource = { type: 'token', id: tokenId } as const
    const ended = { tenantId, resource, clientId, subject, sessionId }
    appendEvents(tx, [revokedEvent(random, ended, now, context.requestId)])
  })
  standingChanged([tokenId])
  return DONE
}

/** Any token of a family speaks for it, also one that was turned into the next before. */
async function revokeFamily(
  { database, clock, random, standingChanged }: RevocationNeeds,
  client: Client,
  token: string,
  context: MessageContext,
): Promise<Revoked | OAuthRefused> {
  // The tenant of a token is not known before the token is: the look-up crosses tenants.
  const row = await database.system((tx) => findRefreshToken(tx, hashRefreshToken(token)), {
    signal: context.signal,
  })
  if (row === undefined) return DONE
  if (row.clientId !== client.row.id) return notTheirs()
  const { tenantId, familyId, sessionId, clientId, subject, subjectType, delegationId } = row
  const now = clock.now()
  await database.tenant(tenantId, async (tx) => {
    if (!(await revokeRefreshFamily(tx, tenantId, familyId, 'revoked', now))) return
    // The session of an agent is this family; that of a person has other applications in it.
    if (subjectType === 'agent') await endSession(tx, tenantId, sessionId, 'revoked', now)
    // The grant behind the family of an agent that acts for a person (RFC 7009 section 2.1).
    const returned =
      delegationId === null
        ? undefined
        : await revokeDelegation(tx, tenantId, delegationId, 'returned', now)
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
  standingChanged([familyId, sessionId])
  return DONE
}

/** RFC 7009 section 2.1: refused, and nothing ends. */
function notTheirs(): OAuthRefused {
  return refuse('invalid_grant', 'the token was issued to another client')
}
