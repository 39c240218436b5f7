/** How a call that waits for a person is answered. */
import { z } from 'zod'
import {
  APPROVAL_PAGE,
  APPROVAL_PATH,
  APPROVAL_STATUSES,
  type ApprovalStatus,
  POLL_AFTER_SECS,
} from '../../../actors/domain/vault/approvals.js'
import type { ReplyContext } from '../../response/replies.js'
import { reply } from '../../route.js'

const CallApprovalStatus = z
  .object({
    approval_id: z.uuid().meta({
      description: 'Repeat the same request with it as x-svc-approval, once it is approved.',
    }),
    status: z.enum(APPROVAL_STATUSES),
    poll_after_secs: z.int().optional().meta({ description: 'While it is pending.' }),
    expires_at: z.iso.datetime(),
    approval_url: z.string().meta({ description: 'The page for the person who approves.' }),
  })
  .meta({ id: 'CallApprovalStatus' })

type Waiting = {
  readonly approvalId: string
  readonly status: ApprovalStatus
  readonly expiresAt: Date
}

/** The state of an approval, for the agent. x-svc-approval tells it from an answer of an upstream. */
export const approvalReply = (status: 200 | 202) =>
  reply(status, CallApprovalStatus, statusJson, ({ approvalId }: Waiting) => ({
    location: `${APPROVAL_PATH}/${approvalId}`,
    'x-svc-approval': approvalId,
  }))

const statusJson = (
  { approvalId, status, expiresAt }: Waiting,
  { baseUrl }: ReplyContext,
): z.input<typeof CallApprovalStatus> => ({
  approval_id: approvalId,
  status,
  ...(status === 'pending' && { poll_after_secs: POLL_AFTER_SECS }),
  expires_at: expiresAt.toISOString(),
  approval_url: `${baseUrl}${APPROVAL_PAGE}/${approvalId}`,
})
