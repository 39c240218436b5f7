/** Events about an organization: written to its own list and, as copies with one id, to each of its environments. */
import type { Random } from '../../runtime/kernel/random.js'
import { holdMembers, tenantIdsOf } from '../../storage/identity/organization-members.js'
import {
  findCreation,
  recordOrganizationEvent,
} from '../../storage/identity/organization/events.js'
import type { OrganizationRow } from '../../storage/identity/organizations.js'
import { appendEvents } from '../../storage/platform/outbox.js'
import type { Transaction } from '../../storage/platform/sql.js'
import { actorOf, type Caller, doneBy } from '../domain/audit.js'
import {
  catalogued,
  type EventFields,
  type EventSubject,
  type EventType,
  type NewEvent,
} from '../domain/events.js'

/** At most this many environments get an event; the oldest ones first. */
export const NOTIFIED_TENANTS_MAX = 100_000

/** The actor in events caused by an operator of the deployment. */
export const DEPLOYMENT = { type: 'deployment', id: 'operator' } as const

/** Who caused the event. */
type Doer = {
  readonly actor: EventSubject['actor']
  /** The tenant whose subject the actor is. */
  readonly tenantId: string
  /** True for agents and commands. The subject of a person is pairwise, so only the copy of their tenant names them. */
  readonly isNamedEverywhere: boolean
  readonly audit?: NewEvent['audit']
}

type OrganizationEvent<T extends EventType> = {
  readonly type: T
  readonly organizationId: string
  readonly fields: EventFields<T>
  /** In the copies that name the doer, these members override the same ones of `fields`. */
  readonly namedFields?: Partial<EventFields<T>>
  /** Null: an operator of the deployment, whom the tenants must not learn. */
  readonly by: Doer | null
  readonly now: Date
  readonly requestId: string | undefined
}

/** The caller of a request, as the doer of an event. */
export function doerOf(caller: Caller): Doer {
  const { tenantId, subjectType } = caller.principal
  const isNamedEverywhere = subjectType === 'agent'
  return { actor: actorOf(caller), tenantId, isNamedEverywhere, audit: doneBy(caller) }
}

/** A person of a tenant, as the doer of an event. */
export function personOf(tenantId: string, sub: string): Doer {
  return { actor: { type: 'human', id: sub }, tenantId, isNamedEverywhere: false }
}

/** Appends the event. If the organization has no environment, the doer's tenant gets the copy. */
export async function appendOrganizationEvent<T extends EventType>(
  tx: Transaction,
  random: Random,
  { type, organizationId, fields, namedFields, by, now, requestId }: OrganizationEvent<T>,
): Promise<void> {
  const id = random.uuid()
  const resource = { type: 'organization', id: organizationId }
  const unnamed = by === null ? DEPLOYMENT : resource
  const copyFor = (tenantId: string | null) => {
    const isNamed = by !== null && (by.isNamedEverywhere || tenantId === by.tenantId)
    const about = { actor: isNamed ? by.actor : unnamed, resource, requestId }
    const { data } = catalogued(type, about, isNamed ? { ...fields, ...namedFields } : fields)
    return { data, ...(isNamed && by.audit !== undefined ? { audit: by.audit } : {}) }
  }
  const found = await tenantIdsOf(tx, organizationId, NOTIFIED_TENANTS_MAX)
  const tenantIds = found.length === 0 && by !== null ? [by.tenantId] : found
  const event = { id, type, occurredAt: now }
  recordOrganizationEvent(tx, { ...event, organizationId, data: copyFor(null).data })
  appendEvents(
    tx,
    tenantIds.map((tenantId) => ({ ...event, tenantId, ...copyFor(tenantId) })),
  )
}

/** Begins the feed of a new environment with the creation of its organization. */
export async function beginFeed(
  tx: Transaction,
  random: Random,
  { id: organizationId, name, slug, createdAt }: OrganizationRow,
  tenantId: string,
): Promise<void> {
  const type = 'org.created'
  let creation = await findCreation(tx, organizationId)
  if (creation === undefined) {
    // An organization from before its events were kept. Concurrent environments get the same event.
    await holdMembers(tx, organizationId)
    creation = await findCreation(tx, organizationId)
  }
  const resource = { type: 'organization', id: organizationId }
  const about = { actor: resource, resource, requestId: undefined }
  const { data: begun } = catalogued(type, about, { name, slug })
  const event = creation ?? { id: random.uuid(), data: begun, occurredAt: createdAt }
  const { id, data, occurredAt } = event
  if (creation === undefined)
    recordOrganizationEvent(tx, { id, organizationId, type, data, occurredAt })
  appendEvents(tx, [{ id, tenantId, type, data, occurredAt }])
}
