/**
 * Device-style delegation (RFC 8628 section 3, with agents for devices).
 *
 * A request: pending -> approved -> consumed by the one poll that fetches the token; pending ->
 * denied; pending or approved -> expired by time. Its delegation, from the approval on: active ->
 * revoked, or expired by time. Every transition is one conditional statement (interface.md, Device
 * delegation request; decisions.md section 3).
 */
import { defineActor } from '../../../runtime/kernel/actor.js'
import { browserSessions } from '../../identity/sessions/protocol.js'
import { tokens } from '../../oauth/tokens/protocol.js'
import { asking } from './request.js'
import { deciding } from './approve.js'
import { holding } from './manage.js'
import { type DelegationProtocol, delegation } from './protocol.js'
import type { DelegationNeeds } from './needs.js'

export const delegationActor = defineActor<DelegationProtocol, DelegationNeeds>({
  address: delegation,
  asks: { tokens, browserSessions },
  mailbox: { capacity: 4096, inflightMax: 256 },
  lane: {
    // Polls of one request take turns here; across processes the row decides.
    poll: ({ deviceCode }) => deviceCode,
    approve: ({ userCode }) => userCode,
    deny: ({ userCode }) => userCode,
    revoke: ({ delegationId }) => delegationId,
    revokeOwn: ({ delegationId }) => delegationId,
  },
  // A failure is one statement's or one request's: there is no state that a restart would mend.
  supervision: { onFailure: 'resume' },
  create: (needs) => ({ ...asking(needs), ...deciding(needs), ...holding(needs) }),
})
