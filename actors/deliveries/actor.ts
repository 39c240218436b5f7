/** The webhook signer: holds derived keys on its own thread and signs what it is given. */
import { defineActor } from '../../runtime/kernel/actor.js'
import { deliveries, type DeliveriesProtocol } from './protocol.js'
import { createSigner } from './signer.js'

/** Nothing but the message is needed to sign; timestamps are the caller's, per attempt. */
export type DeliveriesNeeds = Record<never, never>

export const deliveriesActor = defineActor<DeliveriesProtocol, DeliveriesNeeds>({
  address: deliveries,
  asks: {},
  mailbox: { capacity: 4096, inflightMax: 256 },
  lane: { sign: () => undefined },
  create: () => {
    const signer = createSigner()
    return {
      sign: async (delivery) => signer.sign(delivery),
    }
  },
})
