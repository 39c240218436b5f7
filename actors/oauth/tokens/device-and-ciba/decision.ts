/** Stores the decision of a user once, with the granted scopes and their authentication context. */
import type { MessageContext } from '../../../../runtime/kernel/actor.js'
import type { AuthorizingClientRow } from '../../../../storage/oauth/applications.js'
import { appendAudit } from '../../../../storage/operations/audit.js'
import {
  approveBackchannelRequestRow,
  type BackchannelKind,
  denyBackchannelRequestRow,
  findDecision,
  type PendingBackchannelRequest,
} from '../../../../storage/oauth/backchannel-requests.js'
import { rememberConsent, rememberResourceConsent } from '../../../../storage/oauth/consents.js'
import { holdOpenSession } from '../../../../storage/oauth/token-sessions.js'
import type { AuditOnlyType } from '../../../domain/audit.js'
import { isUuid } from '../../../domain/ids.js'
import { type OrganizationRole, SCOPES, sessionScopes } from '../../../domain/scopes.js'
import { activeClient } from '../clients/active-client.js'
import { tokenAudience } from '../issue/audience.js'
import { inTenant } from '../../../platform/in-tenant.js'
import type { WriteNeeds } from '../../../platform/write-needs.js'

const OURS = new Set<string>(SCOPES)

export type DecisionNeeds = WriteNeeds & {
  readonly issuer: string
}

/** The user who decides, and how they authenticated. */
export type Decider = {
  /** The session of the decision. */
  readonly id: string
  readonly sub: string
  readonly role: OrganizationRole
  readonly confined: boolean
  readonly organizationId: string | null
  readonly level: number
  readonly amr: readonly string[]
  readonly authTime: Date
}

/**
 * The requested scopes that this user can grant to this application. Scopes of API resources depend on neither the role
 * of the user nor the scopes of the application: `readClientRequest` checked them.
 */
export function grantable(
  { scopes: requested, resourceIds }: Pick<PendingBackchannelRequest, 'scopes' | 'resourceIds'>,
  client: { readonly scopes: readonly string[] },
  decider: Pick<Decider, 'role' | 'confined' | 'organizationId'>,
): readonly string[] {
  const userScopes: readonly string[] = sessionScopes(decider)
  if (resourceIds !== null)
    return requested.filter((scope) => !OURS.has(scope) || userScopes.includes(scope))
  return requested.filter((scope) => client.scopes.includes(scope) && userScopes.includes(scope))
}

const AUDITED: Record<BackchannelKind, { approved: AuditOnlyType; denied: AuditOnlyType }> = {
  device: { approved: 'auth.device.approved', denied: 'auth.device.denied' },
  ciba: { approved: 'auth.ciba.approved', denied: 'auth.ciba.denied' },
}

type Decision = {
  readonly kind: BackchannelKind
  readonly request: PendingBackchannelRequest
  readonly client: AuthorizingClientRow
  readonly decider: Decider
  /** The granted scopes. Null denies the request. */
  readonly scopes: readonly string[] | null
  readonly address: string | null
}

/** Time in which a form that is sent again has the same outcome. */
const REPEATED_MS = 60_000

/**
 * What this session decided about a request just before: a double click, or Back and again. Null if it decided nothing,
 * or its application is gone.
 */
export async function decidedBefore(
  { database, clock }: Pick<DecisionNeeds, 'database' | 'clock'>,
  { id: sessionId, tenantId }: { readonly id: string; readonly tenantId: string },
  id: string,
  context: MessageContext,
): Promise<{ readonly approved: boolean; readonly client: AuthorizingClientRow } | null> {
  if (!isUuid(id)) return null
  const since = new Date(clock.now().getTime() - REPEATED_MS)
  const row = await inTenant(database, tenantId, context, (tx) =>
    findDecision(tx, { tenantId, id, sessionId, since }),
  )
  const client = row === undefined ? null : await activeClient(database, row.clientId, context)
  return client === null ? null : { approved: row?.status !== 'denied', client }
}

/** False if the request was already decided or expired, or the session ended. */
export async function decide(
  { database, clock, random, issuer }: DecisionNeeds,
  { kind, request, client, decider, scopes, address }: Decision,
  context: MessageContext,
): Promise<boolean> {
  const { tenantId, id } = request
  const { sub: subject, organizationId, level, amr, authTime } = decider
  const now = clock.now()
  const key = { tenantId, id, sessionId: decider.id, now }
  return inTenant(database, tenantId, context, async (tx) => {
    // The decision is based on the session, so the session must still be open.
    if (!(await holdOpenSession(tx, tenantId, decider.id))) return false
    const done =
      scopes === null
        ? await denyBackchannelRequestRow(tx, key)
        : await approveBackchannelRequestRow(tx, {
            ...key,
            scopes,
            audience:
              request.resourceIds === null
                ? tokenAudience(request.audience, { own: client.audience, issuer, scopes })
                : request.audience,
            subject,
            organizationId,
            level,
            amr,
            authTime,
          })
    if (!done) return false
    // The consent appears on the account page, where withdrawing it revokes the tokens.
    const consent = { tenantId, subject, clientId: client.id }
    if (scopes !== null && request.resourceIds === null)
      await rememberConsent(tx, consent, scopes, now)
    for (const resourceId of scopes === null ? [] : (request.resourceIds ?? []))
      await rememberResourceConsent(tx, consent, resourceId, scopes ?? [], now)
    appendAudit(tx, [
      {
        id: random.uuid(),
        tenantId,
        type: AUDITED[kind][scopes === null ? 'denied' : 'approved'],
        occurredAt: now,
        subject: { sub: subject, subject_type: 'human' },
        actors: [],
        clientId: client.id,
        delegationId: null,
        grantId: id,
        resource: { type: 'backchannel_request', id },
        outcome: scopes === null ? 'denied' : 'success',
        requestId: context.requestId ?? null,
        ip: address,
        data: { client_id: client.id, scope: (scopes ?? request.scopes).join(' ') },
      },
    ])
    return true
  })
}
