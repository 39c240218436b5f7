/** Approval of calls: the side of the agent that waits and of the person who answers. */
import { defineActor } from '../../../runtime/kernel/actor.js'
import { browserSessions } from '../../identity/sign-in/sessions/protocol.js'
import { approveCall, denyCall } from './answer.js'
import type { ApprovalsNeeds } from './needs.js'
import { approveShownCall, denyShownCall, showCallApproval } from './page.js'
import { approvals, type ApprovalsProtocol } from './protocol.js'
import { getCallApproval, listCallApprovals, readCallApproval, waitingFor } from './read.js'

export const approvalsActor = defineActor<ApprovalsProtocol, ApprovalsNeeds>({
  address: approvals,
  asks: { browserSessions },
  mailbox: { capacity: 2048, inflightMax: 128 },
  supervision: { onFailure: 'resume' },
  handlers: {
    getCallApproval,
    listCallApprovals,
    readCallApproval,
    approveCall,
    denyCall,
    showCallApproval,
    approveShownCall,
    denyShownCall,
    waitingFor,
  },
})
