/** The events that tokens give rise to. decisions.md 9: token issue, refresh reuse. */
import type { Random } from '../../runtime/kernel/random.js'
import type { NewEvent } from '../../storage/outbox.js'
import { type EventType, eventData } from '../domain/events.js'
import type { AccessGrant } from './access-token.js'
import type { IssuedFor } from './metrics.js'
import type { SignedAccess } from './token-signer.js'

const ACTOR_TYPES = { agent: 'agent', service: 'application', human: 'user' } as const

/** `auth.token.issued`: to whom, for what, until when; never the token. */
export function issuedEvent(
  random: Random,
  grant: AccessGrant,
  signed: SignedAccess,
  issuedFor: IssuedFor,
  requestId: string | undefined,
): NewEvent {
  const type: EventType = 'auth.token.issued'
  const { subjectType, clientId, subject, delegationId = null, actors = [] } = grant
  const id = subjectType === 'human' ? subject : clientId
  const acting = actors[0]
  const actor =
    acting === undefined
      ? { type: ACTOR_TYPES[subjectType], id }
      : { type: ACTOR_TYPES[acting.subjectType], id: acting.sub }
  const expiresAt = new Date(signed.issuedAt.getTime() + signed.expiresInSecs * 1000)
  return {
    id: random.uuid(),
    tenantId: grant.tenantId,
    type,
    occurredAt: signed.issuedAt,
    data: eventData(
      { actor, resource: { type: 'token', id: signed.tokenId }, requestId },
      {
        audience: grant.audience,
        client_id: grant.clientId,
        ...(delegationId === null ? {} : { delegation_id: delegationId }),
        expires_at: expiresAt.toISOString(),
        grant: issuedFor,
        scope: grant.scopes.join(' '),
        session_id: grant.sessionId,
        sub: grant.subject,
        subject_type: grant.subjectType,
      },
    ),
    ...(acting === undefined
      ? {}
      : {
          audit: {
            subject: { sub: subject, subject_type: subjectType },
            actors: actors.map((one) => ({ sub: one.sub, subject_type: one.subjectType })),
          },
        }),
  }
}

export type Ended = {
  readonly tenantId: string
  readonly resource: { readonly type: 'token' | 'refresh_family'; readonly id: string }
  readonly clientId: string
  readonly subject: string
  readonly sessionId: string | null
}

/** `auth.token.revoked`: a client gave a token back. */
export function revokedEvent(
  random: Random,
  { tenantId, resource, clientId, subject, sessionId }: Ended,
  now: Date,
  requestId: string | undefined,
): NewEvent {
  const type: EventType = 'auth.token.revoked'
  return {
    id: random.uuid(),
    tenantId,
    type,
    occurredAt: now,
    data: eventData(
      { actor: { type: 'client', id: clientId }, resource, requestId },
      { client_id: clientId, sub: subject, session_id: sessionId },
    ),
  }
}

export type Reuse = {
  readonly tenantId: string
  readonly familyId: string
  readonly sessionId: string
  readonly clientId: string
  readonly subject: string
  readonly reason: string
}

/** `security.refresh_token.reuse`: a family that was revoked because a token of it came back. */
export function reuseEvent(
  random: Random,
  reuse: Reuse,
  now: Date,
  requestId: string | undefined,
): NewEvent {
  const type: EventType = 'security.refresh_token.reuse'
  return {
    id: random.uuid(),
    tenantId: reuse.tenantId,
    type,
    occurredAt: now,
    data: eventData(
      {
        actor: { type: 'client', id: reuse.clientId },
        resource: { type: 'refresh_family', id: reuse.familyId },
        requestId,
      },
      {
        reason: reuse.reason,
        client_id: reuse.clientId,
        sub: reuse.subject,
        session_id: reuse.sessionId,
      },
    ),
  }
}
