/**
 * Merchant operations: catalog, charges, refunds and subscriptions. `charges.ts` moves the money.
 */
import { defineActor } from '../../../runtime/kernel/actor.js'
import { findCharge, listCharges } from '../../../storage/commerce/charges.js'
import { isUuid } from '../../domain/ids.js'
import { catalog } from './catalog.js'
import { type CommerceProtocol, commerce } from './protocol.js'
import { chargeOf, listedOf } from './records.js'
import { refunds } from './refund.js'
import { subscriptions } from './subscriptions.js'
import type { CommerceNeeds } from './needs.js'

export const commerceActor = defineActor<CommerceProtocol, CommerceNeeds>({
  address: commerce,
  asks: {},
  mailbox: { capacity: 1024, inflightMax: 128 },
  lane: {
    refundCharge: ({ chargeId }) => chargeId,
    cancelSubscription: ({ id }) => id,
    simulateRenewal: ({ id }) => id,
  },
  supervision: { onFailure: 'resume' },
  create: (needs) => {
    const { database } = needs
    return {
      ...catalog(needs),
      ...refunds(needs),
      ...subscriptions(needs),

      listCharges: ({ tenantId, limit, after }, { signal }) =>
        database.tenant(
          tenantId,
          async (tx) =>
            listedOf(await listCharges(tx, tenantId, limit + 1, after), limit, chargeOf),
          { signal },
        ),

      async getCharge({ tenantId, id }, { signal }) {
        if (!isUuid(id)) return { tag: 'unknown' }
        const row = await database.tenant(tenantId, (tx) => findCharge(tx, tenantId, id), {
          signal,
        })
        return row === undefined ? { tag: 'unknown' } : { tag: 'found', row: chargeOf(row) }
      },
    }
  },
})
