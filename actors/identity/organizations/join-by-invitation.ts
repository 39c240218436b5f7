/** A user invited to an organization becomes a member with their first sign-in at one of its tenants. */
import type { Random } from '../../../runtime/kernel/random.js'
import { acceptMemberInvitation } from '../../../storage/identity/organization-members.js'
import type { Transaction } from '../../../storage/platform/sql.js'
import { eventData, type NewEvent } from '../../domain/events.js'

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
): Promise<NewEvent[]> {
  const joined = await acceptMemberInvitation(tx, tenantId, accountId, now)
  if (joined === undefined) return []
  const who = { type: 'human', id: sub }
  const resource = { type: 'organization', id: joined.organizationId }
  const data = eventData(
    { actor: who, resource, requestId },
    { member: who, member_id: joined.id, role: joined.role },
  )
  return [{ id: random.uuid(), tenantId, type: 'org.member.added', occurredAt: now, data }]
}
