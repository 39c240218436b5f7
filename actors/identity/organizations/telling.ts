/** Events about an organization: each of its environments gets them. */
import type { Random } from '../../../runtime/kernel/random.js'
import { tenantIdsOf } from '../../../storage/identity/organization-members.js'
import type { Transaction } from '../../../storage/platform/sql.js'
import { actorOf, type Caller, doneBy } from '../../domain/audit.js'
import { type EventType, eventData, type NewEvent } from '../../domain/events.js'

/** An organization with more environments tells the oldest ones. */
export const TOLD_TENANTS_MAX = 100

export type OrganizationTold = {
  readonly type: EventType
  readonly organizationId: string
  readonly fields: Readonly<Record<string, unknown>>
  /** Null: an operator of the deployment, who is no concern of the tenants. */
  readonly caller: Caller | null
  readonly now: Date
  readonly requestId: string | undefined
}

/**
 * The same event for each environment. A person is named in the environment of their token alone: the
 * subject is pairwise. An organization without an environment tells the tenant of the caller.
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

/** The actor of what an operator of the deployment does to a tenant. */
export const DEPLOYMENT = { type: 'deployment', id: 'operator' } as const
