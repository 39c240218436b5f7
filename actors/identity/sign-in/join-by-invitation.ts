/** A user invited to an organization becomes a member with their first sign-in at one of its tenants. */
import type { Random } from '../../../runtime/kernel/random.js'
import {
  acceptMemberInvitation,
  type JoinedMember,
} from '../../../storage/identity/organization-members.js'
import type { Transaction } from '../../../storage/platform/sql.js'
import { appendOrganizationEvent, personOf } from '../../platform/organization-events.js'

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
