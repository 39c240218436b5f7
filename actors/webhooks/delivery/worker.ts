/** Sends webhooks on a separate thread, which has a signer: an attempt asks no other thread. */
import { defineWorker } from '../../../runtime/kernel/worker.js'
import { webhookSigner } from '../signer/protocol.js'
import { deliver, type DeliveryNeeds } from './delivery-loop.js'

export const deliveryWorker = defineWorker<DeliveryNeeds>({
  name: 'deliveries',
  asks: { signer: webhookSigner },
  run: deliver,
})
