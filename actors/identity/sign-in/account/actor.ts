/** The account page: collects what users may see of their account and revokes what they end. */
import { defineActor } from '../../../../runtime/kernel/actor.js'
import { connections } from '../../../vault/vault/connections/protocol.js'
import { delegation } from '../../../agents/delegation/protocol.js'
import { authorization } from '../../../oauth/tokens/authorization/protocol.js'
import { approvals } from '../../../vault/approvals/protocol.js'
import { federatedLogin } from '../ways/federated/protocol.js'
import { browserSessions } from '../sessions/protocol.js'
import { revokeOtherOwnSessions, revokeOwnSession, withdrawConsent } from './end.js'
import type { AccountNeeds } from './needs.js'
import {
  addOwnAuthenticatorApp,
  addOwnFactor,
  removeOwnFactor,
  replaceOwnRecoveryCodes,
  showNewAuthenticatorApp,
} from './own-factors.js'
import { saveOwnProfile } from './own-profile.js'
import { account, type AccountProtocol } from './protocol.js'
import { showAccount } from './show-account.js'

export const accountActor = defineActor<AccountProtocol, AccountNeeds>({
  address: account,
  asks: { browserSessions, authorization, delegation, approvals, connections, federatedLogin },
  mailbox: { capacity: 512, inflightMax: 64 },
  lane: {
    removeOwnFactor: ({ session }) => session.accountId,
    addOwnAuthenticatorApp: ({ session }) => session.accountId,
    replaceOwnRecoveryCodes: ({ session }) => session.accountId,
  },
  handlers: {
    showAccount,
    saveOwnProfile,
    revokeOwnSession,
    revokeOtherOwnSessions,
    withdrawConsent,
    addOwnFactor,
    removeOwnFactor,
    showNewAuthenticatorApp,
    addOwnAuthenticatorApp,
    replaceOwnRecoveryCodes,
  },
})
