/** What ends with a user, and the events about a user. */
import { endDelegations } from '../../../storage/agents/delegations.js'
import { endHumanSessions } from '../../../storage/identity/tenant-users.js'
import type { Transaction } from '../../../storage/platform/sql.js'
import {
  eventBy,
  type EventContext,
  type EventFields,
  type EventType,
  type NewEvent,
} from '../../domain/events.js'
import { byCaller, delegationsRevoked } from '../../domain/revocation.js'

/** Ends the sessions and delegations of a user. @returns the events to append. */
export async function endUser(
  tx: Transaction,
  user: { readonly tenantId: string; readonly sub: string; readonly accountId: string },
  reason: string,
  { caller, random, now, requestId }: EventContext,
) {
  const { tenantId, sub } = user
  // End sessions first: this waits for approvals that are being decided in one of them, and those end too.
  await endHumanSessions(tx, user, reason, now)
  const ended = await endDelegations(tx, { tenantId, subject: sub }, reason, now)
  tx.forget([sub])
  return delegationsRevoked(random, ended, byCaller(caller, requestId))
}

/** An event of the catalogue about a user. */
export function userEvent<T extends EventType>(
  type: T,
  user: { readonly tenantId: string; readonly id: string },
  by: EventContext,
  fields: EventFields<T>,
): NewEvent {
  return eventBy(type, { type: 'tenant_user', id: user.id }, by, fields, user.tenantId)
}
