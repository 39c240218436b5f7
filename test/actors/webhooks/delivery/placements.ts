/** Thread entry of the tests: the webhook signer in a thread. */
import { deliveriesActor } from '../../../../actors/webhooks/delivery/actor.js'
import { seatActor, serveThread } from '../../../../runtime/kernel/threads/thread-serve.js'

serveThread({
  placements: () => ({ actors: [seatActor(deliveriesActor, { worker: null })] }),
})
