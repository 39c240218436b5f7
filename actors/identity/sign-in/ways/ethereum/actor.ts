/** Sign-in with Ethereum: assembles the handlers. */
import { boundHandlers, defineActor } from '../../../../../runtime/kernel/actor.js'
import { counted, counter } from '../../../../platform/metrics.js'
import { browserSessions } from '../../sessions/protocol.js'
import { limitsOf } from '../../limits/limits-of.js'
import { tenants } from '../../../users/tenants/protocol.js'
import type { SiweNeeds, SiweTools } from './needs.js'
import { composeLinkMessage, linkOwnWallet, removeOwnWallet, showNewWallet } from './own.js'
import { siwe, type SiweProtocol } from './protocol.js'
import { composeSignInMessage, showEthereumSignIn, signInWithEthereum } from './sign-in.js'

const HANDLERS = {
  showEthereumSignIn,
  composeSignInMessage,
  signInWithEthereum: counted('sign_in', signInWithEthereum),
  showNewWallet,
  composeLinkMessage,
  linkOwnWallet: counted('link', linkOwnWallet),
  removeOwnWallet,
}

export const siweActor = defineActor<SiweProtocol, SiweNeeds>({
  address: siwe,
  asks: { browserSessions, tenants },
  mailbox: { capacity: 512, inflightMax: 64 },
  lane: { removeOwnWallet: ({ session }) => session.accountId },
  // Failures are local to one statement or request. There is no state that a restart would repair.
  supervision: { onFailure: 'resume' },
  create(needs) {
    return boundHandlers<SiweProtocol, SiweTools>(HANDLERS, {
      ...needs,
      ...limitsOf(needs),
      outcomes: counter(needs.registry, 'svc_siwe_steps_total', 'Signed messages by outcome.', [
        'step',
        'outcome',
      ]),
    })
  },
})
