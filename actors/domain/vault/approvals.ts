/** Approval of calls: words that the services and the API share. */
import { z } from 'zod'
import type { RecordOf } from '../entities/record.js'

/** What asks: a call through the egress proxy, or of a tool of an MCP server. */
export const APPROVAL_KINDS = ['egress', 'mcp'] as const
export type ApprovalKind = (typeof APPROVAL_KINDS)[number]

export const APPROVAL_STATUSES = ['pending', 'approved', 'denied', 'used', 'expired'] as const
export type ApprovalStatus = (typeof APPROVAL_STATUSES)[number]

/** Whether a person approves the calls of a grant: none, the first one, or each. */
export const APPROVAL_MODES = ['none', 'first', 'each'] as const
export type ApprovalMode = (typeof APPROVAL_MODES)[number]

/** The page of the gateway where a person answers; the id follows. */
export const APPROVAL_PAGE = '/vault/approvals'
/** Where an agent reads its approval; the id follows. */
export const APPROVAL_PATH = '/v1/approvals'
/** Between two reads of a pending approval. */
export const POLL_AFTER_SECS = 5

/** What a person sees of a call. */
export type ShownCall =
  | {
      readonly method: string
      readonly host: string
      readonly path: string
      /** With its question mark. Empty without one. */
      readonly query: string
      readonly bodySha256: string
      readonly bodyBytes: number
    }
  | { readonly server: string; readonly tool: string; readonly argumentsSha256: string }

/** The call waits for a person, or was approved and is to be repeated with the id. */
export type ApprovalNeeded = {
  readonly tag: 'approval_needed'
  readonly approvalId: string
  readonly status: 'pending' | 'approved'
  readonly expiresAt: Date
}
export type TooManyApprovals = { readonly tag: 'too_many_approvals' }

const time = z.iso.datetime()
const hash = z.string().meta({ description: 'SHA-256 in hexadecimal.' })

/** An approval as people and administrators see it. */
export const CallApproval = z
  .object({
    id: z.uuid(),
    tenant_id: z.uuid(),
    kind: z.enum(APPROVAL_KINDS),
    status: z.enum(APPROVAL_STATUSES).meta({
      description:
        '`approved`: the agent may repeat the call once. `expired`: it ended unanswered or unused.',
    }),
    approval: z.enum(['first', 'each']).meta({
      description:
        '`first`: an approval opens the grant for later calls too. The answer of the person of a delegation opens it for ' +
        'that delegation alone.',
    }),
    agent_id: z.uuid(),
    agent_name: z.string(),
    delegation_id: z.uuid().nullable(),
    purpose: z.string().nullable().meta({ description: 'The purpose of the delegation.' }),
    grant_id: z.uuid(),
    credential_id: z.uuid().nullable(),
    provider: z.string().nullable(),
    label: z.string().nullable(),
    method: z.string().optional(),
    host: z.string().optional(),
    path: z.string().optional(),
    query: z.string().optional(),
    body_sha256: hash.optional(),
    body_bytes: z.int().optional(),
    server: z.string().optional(),
    tool: z.string().optional(),
    arguments_sha256: hash.optional(),
    created_at: time,
    expires_at: time.meta({
      description:
        'The end of a pending one, and of the time in which an approved call may be repeated.',
    }),
    decided_at: time.nullable(),
    decided_by: z.string().nullable().meta({ description: 'The sub of the person.' }),
    used_at: time.nullable(),
  })
  .meta({ id: 'CallApproval' })
export type CallApprovalRecord = RecordOf<typeof CallApproval.shape>
