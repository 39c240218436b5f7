/** What no caller waits for: requests whose time is over, connections of deleted connectors, revocations at providers. */
import type { Logger } from '../../../../runtime/kernel/log.js'
import { appendEvents } from '../../../../storage/platform/outbox.js'
import {
  closeConnectionRequest,
  expiredConnections,
} from '../../../../storage/vault/connections.js'
import { forgetConnector, listRemovedConnectors } from '../../../../storage/vault/connectors.js'
import { eventContext } from '../../../domain/events.js'
import type { WriteNeeds } from '../../../platform/write-needs.js'
import { END_BATCH, endConnectionsOf } from './end.js'
import { ownConnectionEvent, vaultAsCaller } from './events.js'
import type { EndNeeds } from './needs.js'
import { revokeDue } from './revocations.js'

const EXPIRED_BATCH = 500
const CONNECTORS_BATCH = 20

/** A round of it. */
export const tendingOf = (needs: EndNeeds, log: Logger) => async (signal: AbortSignal) => {
  await expireConnections(needs)
  await endRemoved(needs)
  await revokeDue(needs, log, signal)
}

/** Stores that requests have expired, and appends their events. */
async function expireConnections(needs: WriteNeeds): Promise<void> {
  // The transaction crosses tenants.
  await needs.database.system(async (tx) => {
    const now = needs.clock.now()
    for (const row of await expiredConnections(tx, now, EXPIRED_BATCH)) {
      const expired = await closeConnectionRequest(tx, row, 'expired', now)
      if (expired !== undefined)
        appendEvents(tx, [ownConnectionEvent('vault.connection.expired', expired, needs)])
    }
  })
}

/** Goes on where the deletion of a connector stopped: a batch of each in a round. */
async function endRemoved(needs: EndNeeds): Promise<void> {
  // The transaction crosses tenants.
  const removed = await needs.database.system((tx) => listRemovedConnectors(tx, CONNECTORS_BATCH))
  for (const { tenantId, id } of removed) {
    const by = eventContext(needs, vaultAsCaller(tenantId), { requestId: undefined })
    if ((await endConnectionsOf(needs, tenantId, id, by)) < END_BATCH)
      await needs.database.tenant(tenantId, (tx) => forgetConnector(tx, tenantId, id))
    else await needs.changed(tenantId)
  }
}
