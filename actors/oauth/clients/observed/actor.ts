/** Lists and removes the clients that a tenant knows by their metadata documents. */
import { defineActor } from '../../../../runtime/kernel/actor.js'
import {
  deleteObservedClientRow,
  listObservedClientRows,
} from '../../../../storage/oauth/observed-clients.js'
import { isUuid } from '../../../domain/ids.js'
import { pageOf } from '../../../platform/paging.js'
import { recordAudit } from '../../../platform/record-audit.js'
import { observedClients, type ObservedClientsProtocol } from './protocol.js'
import type { WriteNeeds } from '../../../platform/write-needs.js'

export const observedClientsActor = defineActor<ObservedClientsProtocol, WriteNeeds>({
  address: observedClients,
  asks: {},
  mailbox: { capacity: 1024, inflightMax: 64 },
  // The actor has no state that a restart would repair.
  supervision: { onFailure: 'resume' },
  create: ({ database, clock, random }) => ({
    async listObservedClients({ tenantId, ...asked }, context) {
      const { items, next } = await pageOf({ database }, tenantId, asked, context, (...page) =>
        listObservedClientRows(...page, clock.now()),
      )
      return { tag: 'listed', clients: items, next }
    },

    async deleteObservedClient({ caller, id }, context) {
      if (!isUuid(id)) return { tag: 'unknown' }
      const { tenantId } = caller.principal
      // Ignores the request's abort signal: a client that disconnects must not prevent the revocation.
      const deleted = await database.tenant(tenantId, async (tx) => {
        const found = await deleteObservedClientRow(tx, tenantId, id, clock.now())
        if (found === undefined) return undefined
        const { clientId, families } = found
        tx.forget([id, ...families])
        recordAudit(tx, { clock, random }, caller, context, {
          type: 'admin.observed_client.deleted',
          resource: { type: 'client', id: clientId },
          data: { client_id: clientId, grants_ended: families.length },
        })
        return found
      })
      if (deleted === undefined) return { tag: 'unknown' }
      return { tag: 'removed' }
    },
  }),
})
