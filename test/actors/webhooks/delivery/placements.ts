/** Thread entry of the tests: the signer of webhooks, built inside of one. */
import { deliveriesActor } from '../../../../actors/webhooks/delivery/actor.js'
import { seatActor, serveThread } from '../../../../runtime/kernel/threads/thread-serve.js'

serveThread({
  placements: () => ({ actors: [seatActor(deliveriesActor, { worker: null })] }),
})
