/** Sign-in with Ethereum: assembles the handlers. */
import { defineActor } from '../../../runtime/kernel/actor.js'
import { counter } from '../../platform/metrics.js'
import { browserSessions } from '../sessions/protocol.js'
import { adaptiveMfa } from '../adaptive-mfa/risk.js'
import { lockout } from '../sign-in/lockout.js'
import { mailQuota } from '../sign-in/mail-quota.js'
import { tenants } from '../tenants/protocol.js'
import { siweMessages } from './messages.js'
import type { SiweNeeds, SiweTools } from './needs.js'
import { ownWallets } from './own.js'
import { siwe, type SiweProtocol } from './protocol.js'
import { siweSignIn } from './sign-in.js'

export const siweActor = defineActor<SiweProtocol, SiweNeeds>({
  address: siwe,
  asks: { browserSessions, tenants },
  mailbox: { capacity: 512, inflightMax: 64 },
  lane: { removeOwnWallet: ({ session }) => session.accountId },
  // Failures are local to one statement or request. There is no state that a restart would repair.
  supervision: { onFailure: 'resume' },
  create: (needs) => {
    const { coordination, settings, clock, registry } = needs
    const tools: SiweTools = {
      ...needs,
      lockout: lockout(coordination, settings, clock),
      adaptive: adaptiveMfa(needs, mailQuota(coordination, needs.email)),
    }
    const messages = siweMessages(tools)
    const first = siweSignIn(tools, messages)
    const own = ownWallets(tools, messages)
    const steps = counter(registry, 'svc_siwe_steps_total', 'Signed messages by outcome.', [
      'step',
      'outcome',
    ])
    return {
      ...first,
      ...own,
      async signInWithEthereum(message, context) {
        const reply = await first.signInWithEthereum(message, context)
        steps.inc({ step: 'sign_in', outcome: reply.tag })
        return reply
      },
      async linkOwnWallet(message, context) {
        const reply = await own.linkOwnWallet(message, context)
        steps.inc({ step: 'link', outcome: reply.tag })
        return reply
      },
    }
  },
})
