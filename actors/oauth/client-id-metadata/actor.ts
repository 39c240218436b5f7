/** Lists and removes the clients that a tenant knows by their metadata documents. */
import { type ActorRef, defineActor } from '../../../runtime/kernel/actor.js'
import type { Clock } from '../../../runtime/kernel/clock.js'
import type { Random } from '../../../runtime/kernel/random.js'
import {
  deleteObservedClient,
  listObservedClients,
} from '../../../storage/oauth/observed-clients.js'
import { appendAudit } from '../../../storage/operations/audit.js'
import type { Database } from '../../../storage/platform/sql.js'
import { audited } from '../../domain/audit.js'
import { isUuid } from '../../domain/ids.js'
import { page } from '../../platform/paging.js'
import { tokens, type TokensProtocol } from '../tokens/protocol.js'
import { observedClients, type ObservedClientsProtocol } from './protocol.js'

export type ObservedClientsNeeds = {
  readonly database: Database
  readonly clock: Clock
  readonly random: Random
  readonly tokens: ActorRef<TokensProtocol>
}

export const observedClientsActor = defineActor<ObservedClientsProtocol, ObservedClientsNeeds>({
  address: observedClients,
  asks: { tokens },
  mailbox: { capacity: 1024, inflightMax: 64 },
  // The actor has no state that a restart would repair.
  supervision: { onFailure: 'resume' },
  create: ({ database, clock, random, tokens }) => ({
    async listObservedClients({ tenantId, limit, after }, { signal }) {
      const rows = await database.tenant(
        tenantId,
        (tx) => listObservedClients(tx, tenantId, limit + 1, after, clock.now()),
        { signal },
      )
      const { items, next } = page(rows, limit)
      return { tag: 'listed', clients: items, next }
    },

    async deleteObservedClient({ caller, id }, { requestId }) {
      if (!isUuid(id)) return { tag: 'unknown' }
      const { tenantId } = caller.principal
      // Ignores the request's abort signal: a client that disconnects must not prevent the revocation.
      const deleted = await database.tenant(tenantId, async (tx) => {
        const now = clock.now()
        const found = await deleteObservedClient(tx, tenantId, id, now)
        if (found === undefined) return undefined
        appendAudit(tx, [
          audited(caller, {
            id: random.uuid(),
            tenantId,
            type: 'admin.observed_client.deleted',
            occurredAt: now,
            resource: { type: 'client', id: found.clientId },
            requestId,
            data: { client_id: found.clientId, grants_ended: found.families.length },
          }),
        ])
        return found
      })
      if (deleted === undefined) return { tag: 'unknown' }
      tokens.send('invalidate', { ids: [id, ...deleted.families] })
      return { tag: 'removed' }
    },
  }),
})
