/** Phone numbers: assembles the handlers. */
import { defineActor, type MessageContext } from '../../../runtime/kernel/actor.js'
import { counter } from '../../platform/metrics.js'
import { browserSessions } from '../sessions/protocol.js'
import { adaptiveMfa } from '../adaptive-mfa/risk.js'
import { lockout } from '../sign-in/lockout.js'
import { mailQuota } from '../sign-in/mail-quota.js'
import { tenants } from '../tenants/protocol.js'
import { textQuota } from './limits.js'
import type { PhoneNeeds, PhoneTools } from './needs.js'
import { ownPhone } from './own.js'
import { phone, type PhoneProtocol } from './protocol.js'
import { phoneSignIn } from './sign-in.js'

export const phoneActor = defineActor<PhoneProtocol, PhoneNeeds>({
  address: phone,
  asks: { browserSessions, tenants },
  mailbox: { capacity: 512, inflightMax: 64 },
  lane: {
    proveOwnPhone: ({ session }) => session.accountId,
    removeOwnPhone: ({ session }) => session.accountId,
  },
  // Failures are local to one statement or request. There is no state that a restart would repair.
  supervision: { onFailure: 'resume' },
  create: (needs) => {
    const { coordination, settings, clock, sms, registry } = needs
    const tools: PhoneTools = {
      ...needs,
      lockout: lockout(coordination, settings, clock),
      adaptive: adaptiveMfa(needs, mailQuota(coordination, needs.email)),
      quota: textQuota(coordination, sms),
    }
    const first = phoneSignIn(tools)
    const own = ownPhone(tools)
    const steps = counter(registry, 'svc_phone_steps_total', 'Submitted forms by outcome.', [
      'step',
      'outcome',
    ])
    /** Wraps a handler and counts its outcome. */
    const counted =
      <Message, Reply extends { readonly tag: string }>(
        step: 'request' | 'sign_in' | 'own_request' | 'proof',
        handle: (message: Message, context: MessageContext) => Promise<Reply>,
      ) =>
      async (message: Message, context: MessageContext): Promise<Reply> => {
        const reply = await handle(message, context)
        steps.inc({ step, outcome: reply.tag })
        return reply
      }
    return {
      ...first,
      ...own,
      requestSignInText: counted('request', first.requestSignInText),
      signInWithTextCode: counted('sign_in', first.signInWithTextCode),
      requestPhoneProof: counted('own_request', own.requestPhoneProof),
      proveOwnPhone: counted('proof', own.proveOwnPhone),
    }
  },
})
