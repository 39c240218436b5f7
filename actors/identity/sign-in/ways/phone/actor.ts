/** Phone numbers: assembles the handlers. */
import { boundHandlers, defineActor } from '../../../../../runtime/kernel/actor.js'
import { counted, counter } from '../../../../platform/metrics.js'
import { browserSessions } from '../../sessions/protocol.js'
import { limitsOf } from '../../limits/limits-of.js'
import { tenants } from '../../../users/tenants/protocol.js'
import { textQuota } from './limits.js'
import type { PhoneNeeds, PhoneTools } from './needs.js'
import { proveOwnPhone, removeOwnPhone, requestPhoneProof, showOwnPhone } from './own.js'
import { phone, type PhoneProtocol } from './protocol.js'
import { requestSignInText, showPhoneSignIn, showTextCode, signInWithTextCode } from './sign-in.js'

const HANDLERS = {
  showPhoneSignIn,
  requestSignInText: counted('request', requestSignInText),
  showTextCode,
  signInWithTextCode: counted('sign_in', signInWithTextCode),
  showOwnPhone,
  requestPhoneProof: counted('own_request', requestPhoneProof),
  proveOwnPhone: counted('proof', proveOwnPhone),
  removeOwnPhone,
}

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
  create(needs) {
    return boundHandlers<PhoneProtocol, PhoneTools>(HANDLERS, {
      ...needs,
      ...limitsOf(needs),
      quota: textQuota(needs.coordination, needs.sms),
      outcomes: counter(needs.registry, 'svc_phone_steps_total', 'Submitted forms by outcome.', [
        'step',
        'outcome',
      ]),
    })
  },
})
