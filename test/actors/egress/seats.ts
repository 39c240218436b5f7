/** Thread entry of the tests: the two engines that live on threads, built inside of one. */
import { deliveriesActor } from '../../../actors/deliveries/actor.js'
import { egressActor, type EgressSettings } from '../../../actors/egress/actor.js'
import { systemRandom } from '../../../runtime/kernel/random.js'
import { seatActor, serveThread } from '../../../runtime/kernel/thread-serve.js'

serveThread({
  seats: ({ data, clock }) => ({
    actors: [
      seatActor(deliveriesActor, { worker: null }),
      seatActor(egressActor, {
        settings: data as EgressSettings,
        clock,
        random: systemRandom(clock),
      }),
    ],
  }),
})
