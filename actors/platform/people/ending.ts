/** What ends with a user, and the events about a user. */
import type { Random } from '../../../runtime/kernel/random.js'
import { endDelegations } from '../../../storage/agents/delegations.js'
import { endHumanSessions } from '../../../storage/identity/tenant-users.js'
import type { Transaction } from '../../../storage/platform/sql.js'
import type { Caller } from '../../domain/audit.js'
import { eventBy, type EventFields, type EventType, type NewEvent } from '../../domain/events.js'
import { byCaller, delegationsRevoked } from '../../domain/revocation.js'

export type EndingNeeds = { readonly random: Random }

/** Ends the sessions and delegations of a user. @returns the events to append. */
export async function endUser(
  tx: Transaction,
  needs: EndingNeeds,
  caller: Caller,
  user: { readonly tenantId: string; readonly sub: string; readonly accountId: string },
  reason: string,
  now: Date,
  requestId: string | undefined,
) {
  const { tenantId, sub } = user
  // End sessions first: this waits for approvals that are being decided in one of them, and those end too.
  await endHumanSessions(tx, user, reason, now)
  const ended = await endDelegations(tx, { tenantId, subject: sub }, reason, now)
  tx.forget([sub])
  return delegationsRevoked(needs.random, ended, byCaller(caller, requestId))
}

/** An event of the catalogue about a user. */
export function userEvent<T extends EventType>(
  random: Random,
  caller: Caller,
  user: { readonly tenantId: string; readonly id: string },
  type: T,
  fields: EventFields<T>,
  now: Date,
  requestId: string | undefined,
): NewEvent {
  const resource = { type: 'tenant_user', id: user.id }
  return eventBy(type, resource, { caller, random, now, requestId }, fields, user.tenantId)
}
