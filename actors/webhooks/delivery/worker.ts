/** Signs and sends webhooks on a dedicated thread, so that no other thread holds unsealed secrets. */
import { defineWorker } from '../../../runtime/kernel/worker.js'
import type { DeliveryRunner } from './delivery-loop.js'

export const deliveryWorker = defineWorker<{ readonly runner: DeliveryRunner }>({
  name: 'deliveries',
  asks: {},
  run: ({ runner }, lifecycle) => runner.run(lifecycle),
})
