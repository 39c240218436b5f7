/** How a person becomes a user of a tenant, and, when invited, a member of its organization with the first sign-in. */
import type { MessageContext } from '../../../runtime/kernel/actor.js'
import type { Random } from '../../../runtime/kernel/random.js'
import {
  acceptMemberInvitation,
  type JoinedMember,
} from '../../../storage/identity/organization-members.js'
import { insertTenantUser } from '../../../storage/identity/tenant-users.js'
import { appendEvents, type NewEvent } from '../../../storage/platform/outbox.js'
import type { Transaction } from '../../../storage/platform/sql.js'
import { catalogued, type EventFields, type EventType } from '../../domain/events.js'
import { appendOrganizationEvent, personOf } from '../../platform/organization-events.js'

const SUBJECT_BYTES = 24

type NewUser = {
  readonly tenantId: string
  readonly accountId: string
  readonly roles: readonly string[]
}
type UserNames = { readonly id: string; readonly sub: string }

/** Makes an account an active user of the tenant. */
export async function insertActiveUser(
  tx: Transaction,
  random: Random,
  user: NewUser,
  now: Date,
): Promise<UserNames> {
  const names = { id: random.uuid(), sub: random.token(SUBJECT_BYTES) }
  await insertTenantUser(tx, {
    ...user,
    ...names,
    status: 'active',
    fixture: false,
    createdAt: now,
  })
  return names
}

/** The same by its own act, with the event. */
export async function becomeTenantUser(
  tx: Transaction,
  random: Random,
  { email, ...user }: NewUser & { readonly email: string },
  now: Date,
  { requestId }: MessageContext,
): Promise<UserNames> {
  const names = await insertActiveUser(tx, random, user, now)
  const fields = { email, status: 'active', fixture: false }
  const about = { ...names, tenantId: user.tenantId, requestId }
  appendEvents(tx, [newUserEvent(random, about, 'admin.user.created', fields, now)])
  return names
}

/** An event about a new user, who caused it. */
export function newUserEvent<T extends EventType>(
  random: Random,
  {
    tenantId,
    id,
    sub,
    requestId,
  }: UserNames & { readonly tenantId: string; readonly requestId: string | undefined },
  type: T,
  fields: EventFields<T>,
  now: Date,
): NewEvent {
  const about = { actor: { type: 'human', id: sub }, resource: { type: 'tenant_user', id } }
  const event = catalogued(type, { ...about, requestId }, fields)
  return { id: random.uuid(), tenantId, occurredAt: now, ...event }
}

export type Joining = {
  readonly tenantId: string
  readonly accountId: string
  readonly sub: string
  readonly requestId: string | undefined
}

/** Accepts the invitation to the organization of the tenant, if there is one for the user's verified address. */
export async function joinByInvitation(
  tx: Transaction,
  random: Random,
  { tenantId, accountId, sub, requestId }: Joining,
  now: Date,
): Promise<void> {
  const joined = await acceptMemberInvitation(tx, tenantId, accountId, now)
  if (joined !== undefined)
    await appendJoined(tx, random, joined, { tenantId, sub, requestId }, now)
}

/** Appends `org.member.added` of a person who joined by their own act at a tenant. */
export async function appendJoined(
  tx: Transaction,
  random: Random,
  { id, organizationId, role }: JoinedMember,
  { tenantId, sub, requestId }: Omit<Joining, 'accountId'>,
  now: Date,
): Promise<void> {
  const by = personOf(tenantId, sub)
  await appendOrganizationEvent(tx, random, {
    type: 'org.member.added',
    organizationId,
    fields: { member: { type: 'member', id }, member_id: id, role },
    namedFields: { member: by.actor },
    by,
    now,
    requestId,
  })
}
