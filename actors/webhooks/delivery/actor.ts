/** Signs and sends webhooks on a thread of its own. Decrypted secrets exist on that thread only. */
import { defineActor } from '../../../runtime/kernel/actor.js'
import { deliveries, type DeliveriesProtocol } from './protocol.js'
import { createSigner } from './signer.js'
import type { DeliveryWorker } from './delivery-loop.js'

export type DeliveriesNeeds = {
  /** Null for an actor that only signs. */
  readonly worker: DeliveryWorker | null
}

export const deliveriesActor = defineActor<DeliveriesProtocol, DeliveriesNeeds>({
  address: deliveries,
  asks: {},
  mailbox: { capacity: 4096, inflightMax: 256 },
  lane: { sign: () => undefined },
  create: ({ worker }, lifecycle) => {
    const signer = createSigner()
    worker?.start(lifecycle)
    return {
      sign: async (delivery) => signer.sign(delivery),
    }
  },
})
