/** Federated sign-in: assembles the handlers. */
import { boundHandlers, defineActor } from '../../../../../runtime/kernel/actor.js'
import { browserSessions } from '../../sessions/protocol.js'
import { tenants } from '../../../users/tenants/protocol.js'
import { trustedIssuers } from '../../../../oauth/trusted-issuers/protocol.js'
import { SIGN_INS_MAX } from './fair-client.js'
import { identities, unlinkOwnIdentity } from './identities.js'
import type { FederatedLoginNeeds, FederatedLoginTools } from './needs.js'
import { checkSso, offered } from './offered.js'
import { federatedLogin, type FederatedLoginProtocol } from './protocol.js'
import { providersOf } from './providers.js'
import { finishSso, linkOwnIdentity, startSso } from './sign-in.js'
import { receiveLogout } from './upstream-logout.js'
import { receiveSecurityEvent } from './upstream-signals.js'

const HANDLERS = {
  offered,
  startSso,
  linkOwnIdentity,
  finishSso,
  identities,
  unlinkOwnIdentity,
  checkSso,
  receiveLogout,
  receiveSecurityEvent,
}

export const federatedLoginActor = defineActor<FederatedLoginProtocol, FederatedLoginNeeds>({
  address: federatedLogin,
  asks: { tenants, browserSessions, trustedIssuers },
  // Callbacks wait for providers, which may be slow. The high limit keeps room for other requests.
  mailbox: { capacity: 1024, inflightMax: SIGN_INS_MAX },
  lane: { unlinkOwnIdentity: ({ session }) => session.accountId },
  supervision: { onFailure: 'resume' },
  create: (needs) =>
    boundHandlers<FederatedLoginProtocol, FederatedLoginTools>(HANDLERS, {
      ...needs,
      providers: providersOf(needs.settings, needs.database, needs.sealer),
    }),
})
