/** The events of the token life cycle: issued, revoked, refresh token reuse. */
import { isoTime } from '../../../../runtime/kernel/text/iso-time.js'
import type { Random } from '../../../../runtime/kernel/random.js'
import { EventForm, type WrittenEvent } from '../../../../storage/platform/event-text.js'
import type { NewEvent } from '../../../../storage/platform/outbox.js'
import { catalogued } from '../../../domain/events.js'
import type { AccessGrant } from './access-token.js'
import type { IssuedFor } from '../metrics.js'
import type { SignedAccess } from './token-signer.js'

const ACTOR_TYPES = { agent: 'agent', service: 'application', human: 'user' } as const

/** `auth.token.issued`. The event never contains the token itself. */
export function issuedEvent(
  random: Random,
  grant: AccessGrant,
  signed: SignedAccess,
  issuedFor: IssuedFor,
  requestId: string | undefined,
): NewEvent {
  const { type, tenantId, data, audit } = issued(grant, issuedFor, {
    tokenId: signed.tokenId,
    expiresAt: isoTime(expiryOf(signed)),
    requestId,
  })
  return { id: random.uuid(), tenantId, type, occurredAt: signed.issuedAt, data, audit }
}

/** Template of `auth.token.issued` for a grant that is issued repeatedly. */
export class IssuedForm {
  readonly #form: EventForm

  constructor(grant: AccessGrant, issuedFor: IssuedFor) {
    this.#form = new EventForm(3, (tokenId, expiresAt, requestId) =>
      issued(grant, issuedFor, { tokenId, expiresAt, requestId }),
    )
  }

  /** Builds the same event as `issuedEvent`. */
  fill(random: Random, signed: SignedAccess, requestId: string | undefined): WrittenEvent {
    const { issuedAt, tokenId } = signed
    const words = [tokenId, isoTime(expiryOf(signed)), requestId ?? null]
    return this.#form.fill(random.uuid(), issuedAt, words)
  }
}

function expiryOf({ issuedAt, expiresInSecs }: SignedAccess): Date {
  return new Date(issuedAt.getTime() + expiresInSecs * 1000)
}

type IssuedToken = {
  readonly tokenId: string
  readonly expiresAt: string
  readonly requestId: string | undefined
}

function issued(
  grant: AccessGrant,
  issuedFor: IssuedFor,
  { tokenId, expiresAt, requestId }: IssuedToken,
): Pick<NewEvent, 'tenantId' | 'type' | 'data' | 'audit'> {
  const { subjectType, clientId, subject, delegationId = null, actors = [] } = grant
  const id = subjectType === 'human' ? subject : clientId
  // An agent that another issuer knows could have the id of one here.
  const acting = actors[0]?.issuer === undefined ? actors[0] : undefined
  const actor =
    acting === undefined
      ? { type: ACTOR_TYPES[subjectType], id }
      : { type: ACTOR_TYPES[acting.subjectType], id: acting.sub }
  return {
    tenantId: grant.tenantId,
    ...catalogued(
      'auth.token.issued',
      { actor, resource: { type: 'token', id: tokenId }, requestId },
      {
        audience: grant.audience,
        client_id: grant.clientId,
        ...(delegationId === null ? {} : { delegation_id: delegationId }),
        expires_at: expiresAt,
        grant: issuedFor,
        scope: grant.scopes.join(' '),
        session_id: grant.sessionId,
        sub: grant.subject,
        subject_type: grant.subjectType,
      },
    ),
    audit:
      actors.length === 0
        ? undefined
        : {
            delegation: grant.delegation,
            subject: { sub: subject, subject_type: subjectType },
            actors: actors.map(({ sub, subjectType, issuer }) => ({
              sub: issuer === undefined ? sub : `${issuer} ${sub}`,
              subject_type: subjectType,
            })),
          },
  }
}

type Ended = {
  readonly tenantId: string
  readonly resource: { readonly type: 'token' | 'refresh_family'; readonly id: string }
  readonly clientId: string
  readonly subject: string
  readonly sessionId: string | null
}

/** `auth.token.revoked`: a client revoked a token. */
export function revokedEvent(
  random: Random,
  { tenantId, resource, clientId, subject, sessionId }: Ended,
  now: Date,
  requestId: string | undefined,
): NewEvent {
  return {
    id: random.uuid(),
    tenantId,
    occurredAt: now,
    ...catalogued(
      'auth.token.revoked',
      { actor: { type: 'client', id: clientId }, resource, requestId },
      { client_id: clientId, sub: subject, session_id: sessionId },
    ),
  }
}

type Reuse = {
  readonly tenantId: string
  readonly familyId: string
  readonly sessionId: string
  readonly clientId: string
  readonly subject: string
  readonly reason: string
}

/** `security.refresh_token.reuse`: a family was revoked because of a replayed token. */
export function reuseEvent(
  random: Random,
  reuse: Reuse,
  now: Date,
  requestId: string | undefined,
): NewEvent {
  return {
    id: random.uuid(),
    tenantId: reuse.tenantId,
    occurredAt: now,
    ...catalogued(
      'security.refresh_token.reuse',
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
