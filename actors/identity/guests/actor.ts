/** Guests: assembles the handlers. */
import { defineActor } from '../../../runtime/kernel/actor.js'
import { counter } from '../../platform/metrics.js'
import { lockout } from '../sign-in/lockout.js'
import { mailQuota } from '../sign-in/mail-quota.js'
import { addressSteps } from './address.js'
import { enterStep } from './enter.js'
import type { GuestsNeeds, GuestsTools } from './needs.js'
import { guests, type GuestsProtocol } from './protocol.js'

export const guestsActor = defineActor<GuestsProtocol, GuestsNeeds>({
  address: guests,
  asks: {},
  mailbox: { capacity: 512, inflightMax: 64 },
  lane: { proveOwnEmail: ({ session }) => session.accountId },
  // Failures are local to one statement or request. There is no state that a restart would repair.
  supervision: { onFailure: 'resume' },
  create: (needs) => {
    const { coordination, settings, clock, email, registry } = needs
    const tools: GuestsTools = {
      ...needs,
      lockout: lockout(coordination, settings, clock),
      mailQuota: mailQuota(coordination, email),
    }
    const enter = enterStep(tools)
    const address = addressSteps(tools)
    const steps = counter(registry, 'svc_guest_steps_total', 'Steps of guests by outcome.', [
      'step',
      'outcome',
    ])
    return {
      ...address,
      async continueAsGuest(message, context) {
        const reply = await enter(message, context)
        steps.inc({ step: 'enter', outcome: reply.tag })
        return reply
      },
      async proveOwnEmail(message, context) {
        const reply = await address.proveOwnEmail(message, context)
        steps.inc({ step: 'proof', outcome: reply.tag })
        return reply
      },
    }
  },
})
