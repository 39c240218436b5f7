/** Events about an organization, written to each of its environments. */
import type { Random } from '../../../runtime/kernel/random.js'
import { tenantIdsOf } from '../../../storage/identity/organization-members.js'
import type { Transaction } from '../../../storage/platform/sql.js'
import { actorOf, type Caller, doneBy } from '../../domain/audit.js'
import { type EventType, eventData, type NewEvent } from '../../domain/events.js'

/** At most this many environments get an event; the oldest ones first. */
export const TOLD_TENANTS_MAX = 100

export type OrganizationTold = {
  readonly type: EventType
  readonly organizationId: string
  readonly fields: Readonly<Record<string, unknown>>
  /** Null: an operator of the deployment, whom the tenants must not learn. */
  readonly caller: Caller | null
  readonly now: Date
  readonly requestId: string | undefined
}

/**
 * The same event for each environment. A user is named only in the environment of their token, because the subject is
 * pairwise. If the organization has no environment, the event is written to the caller's tenant.
 */
export async function organizationEvents(
  tx: Transaction,
  random: Random,
  { type, organizationId, fields, caller, now, requestId }: OrganizationTold,
): Promise<NewEvent[]> {
  const own = caller?.principal.tenantId
  const found = await tenantIdsOf(tx, organizationId, TOLD_TENANTS_MAX)
  const tenantIds = found.length === 0 && own !== undefined ? [own] : found
  const resource = { type: 'organization', id: organizationId }
  return tenantIds.map((tenantId) => {
    const named =
      caller !== null && (caller.principal.subjectType === 'agent' || tenantId === own)
        ? caller
        : null
    const actor = named === null ? anonymousActor(caller, organizationId) : actorOf(named)
    const data = eventData({ actor, resource, requestId }, fields)
    const event = { id: random.uuid(), tenantId, type, occurredAt: now, data }
    return named === null ? event : { ...event, audit: doneBy(named) }
  })
}

function anonymousActor(caller: Caller | null, organizationId: string) {
  return caller === null ? DEPLOYMENT : { type: 'organization', id: organizationId }
}

/** The actor in events caused by an operator of the deployment. */
export const DEPLOYMENT = { type: 'deployment', id: 'operator' } as const
