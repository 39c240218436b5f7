/** Lists, reads and ends connections. */
import type { MessageContext } from '../../../../runtime/kernel/actor.js'
import { appendEvents } from '../../../../storage/platform/outbox.js'
import {
  closeConnectionRequest,
  type ConnectionsOf,
  findConnection,
  listConnectionRows,
  pollConnection,
  listSeenConnections,
} from '../../../../storage/vault/connections.js'
import { granteeOf } from '../../../domain/grantee.js'
import { eventContext, type EventContext } from '../../../domain/events.js'
import { isUuid } from '../../../domain/ids.js'
import { isDirect, type Principal } from '../../../domain/principal.js'
import { inTenant } from '../../../platform/in-tenant.js'
import { page } from '../../../platform/paging.js'
import { endConnection } from './end.js'
import { revokeNow } from './revocations.js'
import { ownConnectionEvent, personAsCaller } from './events.js'
import type { ConnectionsHandler, ConnectionsNeeds } from './needs.js'
import type { ConnectionRow } from '../../../domain/vault/connections.js'
import { type Connection, POLL_SECS, type UnknownConnection } from './protocol.js'

const UNKNOWN: UnknownConnection = { tag: 'unknown_connection' }
const ALL: ConnectionsOf = { subject: null, agentId: null, clientId: null }

/** What a caller sees. Null: nothing. */
function seenBy(principal: Principal): ConnectionsOf | null {
  const { subject, subjectType, scopes } = principal
  if (isDirect(principal) && scopes.includes('vault:manage')) return ALL
  if (subjectType === 'service') return { ...ALL, clientId: subject }
  const { agentId } = granteeOf(principal)
  if (subjectType === 'human' && agentId !== null) return { ...ALL, subject, agentId }
  return null
}

export const listConnections: ConnectionsHandler<'listConnections'> = async (
  { database, clock },
  { caller, limit, after },
  context,
) => {
  const { tenantId } = caller.principal
  const of = seenBy(caller.principal)
  if (of === null) return { tag: 'listed', connections: [], next: null }
  const rows = await inTenant(database, tenantId, context, (tx) =>
    listConnectionRows(tx, tenantId, of, limit + 1, after),
  )
  const { items, next } = page(rows, limit)
  return { tag: 'listed', connections: items.map((row) => shown(row, clock.now())), next }
}

export const getConnection: ConnectionsHandler<'getConnection'> = async (
  needs,
  { caller, id },
  context,
) => {
  const { tenantId } = caller.principal
  const of = seenBy(caller.principal)
  if (of === null || !isUuid(id)) return UNKNOWN
  return inTenant(needs.database, tenantId, context, async (tx) => {
    const row = await findConnection(tx, tenantId, id, of)
    if (row === undefined) return UNKNOWN
    const now = needs.clock.now()
    if (row.status !== 'pending') return { tag: 'found', connection: shown(row, now) }
    if (isOver(row, now)) {
      const expired = await closeConnectionRequest(tx, row, 'expired', now)
      if (expired !== undefined)
        appendEvents(tx, [ownConnectionEvent('vault.connection.expired', expired, needs)])
      return { tag: 'found', connection: shown(expired ?? row, now) }
    }
    // Who manages the vault does not poll.
    const isPolling = of !== ALL
    if (isPolling && !(await pollConnection(tx, tenantId, id, now, POLL_SECS)))
      return { tag: 'too_fast', retryAfterSecs: POLL_SECS }
    return { tag: 'found', connection: shown(row, now) }
  })
}

export const deleteConnection: ConnectionsHandler<'deleteConnection'> = (
  needs,
  { caller, id },
  context,
) => {
  const { tenantId } = caller.principal
  const of = seenBy(caller.principal)
  if (of === null) return Promise.resolve(UNKNOWN)
  return remove(needs, { tenantId, id, of }, eventContext(needs, caller, context), context)
}

export const connectionsOfPerson: ConnectionsHandler<'connectionsOfPerson'> = async (
  { database, clock },
  { tenantId, sub },
  context,
) => {
  const rows = await database.system((tx) => listSeenConnections(tx, tenantId, sub), context)
  const connections = rows.map(({ name, lastUsedAt, ...row }) => ({
    ...shown(row, clock.now()),
    name,
    lastUsedAt,
  }))
  return { tag: 'seen', connections }
}

export const disconnectOwn: ConnectionsHandler<'disconnectOwn'> = (
  needs,
  { tenantId, sub, id, address },
  context,
) => {
  const of = { ...ALL, subject: sub }
  const caller = personAsCaller({ tenantId, sub }, address)
  return remove(needs, { tenantId, id, of }, eventContext(needs, caller, context), context)
}

async function remove(
  needs: ConnectionsNeeds,
  { tenantId, id, of }: { tenantId: string; id: string; of: ConnectionsOf },
  by: EventContext,
  context: MessageContext,
): Promise<{ tag: 'removed' } | UnknownConnection> {
  if (!isUuid(id)) return UNKNOWN
  const ended = await inTenant(needs.database, tenantId, context, async (tx) => {
    const row = await findConnection(tx, tenantId, id, of)
    return row === undefined ? UNKNOWN : endConnection(tx, needs, row, by)
  })
  if (ended !== undefined) return ended
  await needs.changed(tenantId)
  await revokeNow(needs, tenantId, context.log)
  return { tag: 'removed' }
}

const isOver = ({ codeExpiresAt }: ConnectionRow, now: Date) =>
  codeExpiresAt !== null && codeExpiresAt <= now

/** A request whose time is over is expired before that is stored. */
export function shown(row: ConnectionRow, now: Date): Connection {
  const { code: _code, codeExpiresAt: _at, grantId: _grant, ...connection } = row
  const isExpired = row.status === 'pending' && isOver(row, now)
  return isExpired ? { ...connection, status: 'expired' } : connection
}
