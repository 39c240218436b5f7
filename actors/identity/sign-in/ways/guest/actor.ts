/** Guests: assembles the handlers. */
import { boundHandlers, defineActor } from '../../../../../runtime/kernel/actor.js'
import { counted, counter } from '../../../../platform/metrics.js'
import { limitsOf } from '../../limits/limits-of.js'
import { proveOwnEmail, requestEmailProof, showNewEmail } from './address.js'
import { continueAsGuest } from './enter.js'
import type { GuestsNeeds, GuestsTools } from './needs.js'
import { guests, type GuestsProtocol } from './protocol.js'

const HANDLERS = {
  continueAsGuest: counted('enter', continueAsGuest),
  showNewEmail,
  requestEmailProof,
  proveOwnEmail: counted('proof', proveOwnEmail),
}

export const guestsActor = defineActor<GuestsProtocol, GuestsNeeds>({
  address: guests,
  asks: {},
  mailbox: { capacity: 512, inflightMax: 64 },
  lane: { proveOwnEmail: ({ session }) => session.accountId },
  // Failures are local to one statement or request. There is no state that a restart would repair.
  supervision: { onFailure: 'resume' },
  create(needs) {
    return boundHandlers<GuestsProtocol, GuestsTools>(HANDLERS, {
      ...needs,
      ...limitsOf(needs),
      outcomes: counter(needs.registry, 'svc_guest_steps_total', 'Steps of guests by outcome.', [
        'step',
        'outcome',
      ]),
    })
  },
})
