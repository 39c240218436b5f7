/**
 * Delegation by device flow (RFC 8628 section 3, with an agent as the device).
 *
 * States of a request: pending -> approved -> consumed (by the poll that gets the token), pending ->
 * denied, and pending or approved -> expired. States of a delegation: active -> revoked or expired.
 * Every transition is one conditional SQL statement (docs/reference/agents.md).
 */
import { defineActor } from '../../../runtime/kernel/actor.js'
import { browserSessions } from '../../identity/sign-in/sessions/protocol.js'
import { tokens } from '../../oauth/tokens/protocol.js'
import { pollDelegation, startDelegation } from './request.js'
import { approveDelegation, denyDelegation, showDelegation } from './approve.js'
import {
  listDelegations,
  ofPerson,
  readDelegation,
  revokeDelegation,
  revokeOwnDelegation,
} from './manage.js'
import { type DelegationProtocol, delegation } from './protocol.js'
import type { DelegationNeeds } from './needs.js'

export const delegationActor = defineActor<DelegationProtocol, DelegationNeeds>({
  address: delegation,
  asks: { tokens, browserSessions },
  mailbox: { capacity: 4096, inflightMax: 256 },
  lane: {
    // Serialised per request. Across processes the row lock serialises.
    pollDelegation: ({ deviceCode }) => deviceCode,
    approveDelegation: ({ userCode }) => userCode,
    denyDelegation: ({ userCode }) => userCode,
    revokeDelegation: ({ delegationId }) => delegationId,
    revokeOwnDelegation: ({ delegationId }) => delegationId,
  },
  // The handlers share no state, so a restart after a failure would change nothing.
  supervision: { onFailure: 'resume' },
  handlers: {
    startDelegation,
    pollDelegation,
    showDelegation,
    approveDelegation,
    denyDelegation,
    listDelegations,
    readDelegation,
    revokeDelegation,
    ofPerson,
    revokeOwnDelegation,
  },
})
