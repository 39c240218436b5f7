/**
 * The CIBA inbox of a user. An answer on the page needs a second factor and a recent sign-in, like the
 * approval of a delegation. An access token can list and deny requests if its sign-in used a second
 * factor. See docs/reference/oauth.md.
 */
import { highestRole } from '../../../domain/scopes.js'
import type { ActorRef, Handler, MessageContext } from '../../../../runtime/kernel/actor.js'
import {
  findInInbox,
  type InboxRequest,
  listInbox,
  type PendingBackchannelRequest,
} from '../../../../storage/oauth/backchannel-requests.js'
import { findTenantBranding } from '../../../../storage/identity/sign-in-flows.js'
import { findPersonRoles } from '../../../../storage/identity/tenant-users.js'
import { activeClient } from '../clients/active-client.js'
import type {
  BrowserSession,
  BrowserSessionsProtocol,
} from '../../../identity/sign-in/sessions/protocol.js'
import { type AssuranceLevel, unmetDemand } from '../../../domain/assurance.js'
import { isUuid } from '../../../domain/ids.js'
import type { Principal } from '../../../domain/principal.js'
import { brandingOf } from '../../../domain/tenants/branding.js'
import type { PageTenant } from '../../../domain/tenants/branding.js'
import { reachesOrganization } from '../../../domain/scopes.js'
import { decide, decidedBefore, type Decider, type DecisionNeeds, grantable } from './decision.js'
import type { BackchannelMetrics } from './metrics.js'
import type {
  AnswerInbox,
  BackchannelProtocol,
  DecideRequest,
  InboxAnswered,
  InboxDecided,
  InboxEntry,
  InboxListed,
  InboxPerson,
  InboxRefused,
  InboxSeen,
  StepUpNeeded,
} from './protocol.js'
import { inTenant } from '../../../platform/in-tenant.js'

/** Longest list: a user never has so many genuine requests. */
const SHOWN_MAX = 50
const INBOX_PAGE = '/auth/requests'

export type InboxNeeds = DecisionNeeds & {
  readonly sessions: ActorRef<BrowserSessionsProtocol>
  readonly settings: { readonly approval_max_auth_age_secs: number }
  readonly metrics: BackchannelMetrics
}

type TenantDecider = Decider & { readonly tenantId: string }

/** The assurance level that an access token needs. The age of its sign-in does not matter. */
const TOKEN_DEMAND = { level: 2, maxAgeSecs: null } as const

/** The pending requests of a user. `step_up_needed` if the sign-in of the token was too weak. */
export async function listBackchannelRequests(
  needs: InboxNeeds,
  { person }: { readonly person: InboxPerson },
  context: MessageContext,
): Promise<InboxListed | StepUpNeeded> {
  const who = await deciderOf(needs, person, context)
  if (who === null) return { tag: 'listed', requests: [] }
  if (person.by === 'token' && who.level < TOKEN_DEMAND.level)
    return { tag: 'step_up_needed', ...TOKEN_DEMAND }
  return { tag: 'listed', requests: await listOf(needs, who, context) }
}

async function listOf(
  { database, clock }: InboxNeeds,
  who: TenantDecider,
  context: MessageContext,
): Promise<readonly InboxEntry[]> {
  const { tenantId, sub: subject } = who
  const rows = await inTenant(database, tenantId, context, (tx) =>
    listInbox(tx, { tenantId, subject, now: clock.now() }, SHOWN_MAX),
  )
  return rows.map((row) => entryOf(row, who))
}

function entryOf(row: InboxRequest, who: Decider): InboxEntry {
  const { id, clientId, clientName, bindingMessage, scopes, levelAsked, createdAt, expiresAt } = row
  return {
    id,
    clientId,
    clientName,
    bindingMessage,
    scopes,
    grantable: grantable(row, { scopes: row.clientScopes }, who),
    level: levelOf(row),
    acrAsked: levelAsked === 1 ? null : `aal${levelAsked}`,
    createdAt,
    expiresAt,
  }
}

const levelOf = ({ levelAsked }: Pick<PendingBackchannelRequest, 'levelAsked'>): 2 | 3 =>
  levelAsked === 3 ? 3 : 2

type Handling<K extends keyof BackchannelProtocol> = Handler<InboxNeeds, BackchannelProtocol, K>

export const approveBackchannelRequest: Handling<'approveBackchannelRequest'> = (
  needs,
  message,
  context,
) => decideInInbox(needs, message, { approve: true }, context)

export const denyBackchannelRequest: Handling<'denyBackchannelRequest'> = (
  needs,
  message,
  context,
) => decideInInbox(needs, message, { approve: false }, context)

/** `shown`: the scopes that the page showed. Others are not granted. Absent: all grantable scopes. */
async function decideInInbox(
  needs: InboxNeeds,
  { person, requestId, address }: DecideRequest<InboxPerson>,
  { approve, shown }: { readonly approve: boolean; readonly shown?: readonly string[] },
  context: MessageContext,
): Promise<InboxDecided | InboxRefused> {
  const { database, clock, settings, metrics } = needs
  const who = await deciderOf(needs, person, context)
  if (who === null || !isUuid(requestId)) return { tag: 'unknown_request' }
  const { tenantId, sub: subject } = who
  const request = await inTenant(database, tenantId, context, (tx) =>
    findInInbox(tx, { tenantId, subject, now: clock.now() }, requestId),
  )
  const client = request && (await activeClient(database, request.clientId, context))
  if (request === undefined || client == null) return { tag: 'unknown_request' }

  const demand =
    person.by === 'token'
      ? TOKEN_DEMAND
      : { level: levelOf(request), maxAgeSecs: settings.approval_max_auth_age_secs }
  const evidence = { level: who.level as AssuranceLevel, authTime: who.authTime }
  const required = { level: demand.level, maxAgeSecs: demand.maxAgeSecs ?? undefined }
  if (unmetDemand(evidence, required, clock.now()) !== null)
    return { tag: 'step_up_needed', ...demand }

  // Requests may need scopes that the page did not show. Those are not granted.
  const asked = grantable(request, client, who)
  const scopes = approve ? asked.filter((scope) => shown?.includes(scope) ?? true) : null
  if (scopes?.length === 0) return { tag: 'nothing_to_grant' }
  const decision = { kind: 'ciba', request, client, decider: who, scopes, address } as const
  if (!(await decide(needs, decision, context))) return { tag: 'unknown_request' }
  metrics.count('ciba', approve ? 'approved' : 'denied')
  return { tag: 'decided', approved: approve, clientName: client.name }
}

/** Null if the user of the token left the tenant or is suspended, or the token has no session. */
async function deciderOf(
  { database }: InboxNeeds,
  person: InboxPerson,
  context: MessageContext,
): Promise<TenantDecider | null> {
  if (person.by === 'session') return person.session
  const { principal } = person
  const { tenantId, subject: sub, sessionId: id, organizationId, authTimeSecs } = principal
  if (id === null) return null
  // Accounts belong to no tenant, so the look-up crosses tenants.
  const roles = await database.system((tx) => findPersonRoles(tx, tenantId, sub), context)
  if (roles === undefined) return null
  return {
    id,
    tenantId,
    sub,
    role: highestRole(roles),
    // A token that reaches no organization grants none.
    confined: !reachesOrganization(principal.scopes),
    organizationId,
    level: levelIn(principal),
    amr: principal.amr ?? [],
    // Without auth_time the sign-in counts as infinitely old.
    authTime: new Date((authTimeSecs ?? 0) * 1000),
  }
}

function levelIn({ acr }: Principal): number {
  return Number(/^aal([1-3])$/.exec(acr ?? '')?.[1] ?? 0)
}

export async function showInbox(
  needs: InboxNeeds,
  { session }: { readonly session: BrowserSession },
  context: MessageContext,
): Promise<InboxSeen> {
  const requests = await listOf(needs, session, context)
  return { tag: 'listed', requests, session, tenant: await tenantOf(needs, session, context) }
}

export async function answerInbox(
  needs: InboxNeeds,
  { session, sessionToken, requestId, approve, shown, address }: AnswerInbox,
  context: MessageContext,
): Promise<InboxAnswered> {
  const person = { by: 'session', session } as const
  const message = { person, requestId, address }
  const outcome = await decideInInbox(needs, message, { approve, shown }, context)
  switch (outcome.tag) {
    case 'decided':
      return { ...outcome, tenant: await tenantOf(needs, session, context) }
    case 'step_up_needed': {
      const { level, maxAgeSecs } = outcome
      const verdict = await needs.sessions.demand(
        {
          token: sessionToken,
          tenantId: session.tenantId,
          sub: session.sub,
          demand: { level, maxAgeSecs: maxAgeSecs ?? undefined },
          flow: { returnTo: INBOX_PAGE, reason: { tag: 'sensitive' } },
        },
        context,
      )
      // The session satisfies the demand by now: the user answers again.
      const location = verdict.tag === 'sign_in' ? verdict.location : INBOX_PAGE
      return { tag: 'interaction', location }
    }
    case 'unknown_request': {
      const before = await decidedBefore(needs, session, requestId, context)
      if (before === null) return outcome
      const { approved, client } = before
      const tenant = await tenantOf(needs, session, context)
      return { tag: 'decided', approved, clientName: client.name, tenant }
    }
    default:
      return outcome
  }
}

async function tenantOf(
  { database }: InboxNeeds,
  { tenantId }: BrowserSession,
  context: MessageContext,
): Promise<PageTenant> {
  const branding = await database.system((tx) => findTenantBranding(tx, tenantId), context)
  if (branding === undefined) throw new Error('the tenant of an open session is gone')
  return brandingOf(tenantId, branding.tenantName, branding.tenantSettings)
}
