/** Calls as the API shows them, from events of the audit chain. */
import type { EgressCallRow, GrantBudgetRow } from '../../../storage/vault/egress-calls.js'
import { csvOf } from '../../domain/entities/csv.js'
import { budgetLeft } from '../../domain/vault/budgets.js'
import { type Call, CALL_TYPES } from './protocol.js'

const EGRESS: ReadonlySet<string> = new Set(CALL_TYPES.egress)

export function callOf(row: EgressCallRow, budget: GrantBudgetRow | undefined, now: Date): Call {
  const { data, resource, subject, actors } = row
  const text = (name: string) => {
    const value = data[name]
    return typeof value === 'string' ? value : null
  }
  const figure = (name: string) => {
    const value = data[name]
    return typeof value === 'number' ? value : null
  }
  const isEgress = EGRESS.has(row.type)
  const [acting = subject] = actors
  const both = [figure('request_bytes'), figure('response_bytes')]
  const server = data['server'] as { readonly id?: unknown; readonly slug?: unknown } | undefined
  const members = {
    id: row.id,
    kind: isEgress ? 'egress' : 'mcp',
    ended_at: row.occurredAt.toISOString(),
    agent_id: acting?.subject_type === 'agent' ? acting.sub : null,
    subject: subject?.sub,
    delegation_id: row.delegationId,
    grant_id: row.grantId,
    credential_id:
      text('credential_id') ?? (resource?.type === 'vault_credential' ? resource.id : null),
    host: text('host'),
    method: text('method'),
    server: server && { id: String(server.id), slug: String(server.slug) },
    tool: text('tool'),
    outcome: text('outcome') ?? (row.type === 'mcp.tool.denied' ? 'policy_denied' : 'unknown'),
    status: figure('status'),
    bytes: figure('bytes') ?? (both.every((each) => each === null) ? null : sum(both)),
    duration_ms: figure('duration_ms'),
    input_tokens: figure('input_tokens'),
    output_tokens: figure('output_tokens'),
    approval_id: text('approval_id'),
    request_id: row.requestId,
    budget_left: budget && leftOf(budget, now),
  } satisfies { readonly [K in keyof Call]: Call[K] | null | undefined }
  return given(members) as Call
}

function leftOf(row: GrantBudgetRow, now: Date) {
  const { requests, bytes, llmTokens, windowEndsAt } = budgetLeft(row.budget, row, now)
  const amounts = given({ requests, bytes, llm_tokens: llmTokens })
  return { ...amounts, window_ends_at: windowEndsAt?.toISOString() ?? null }
}

/** Without the members that have no value. */
const given = (members: Readonly<Record<string, unknown>>) =>
  Object.fromEntries(
    Object.entries(members).filter(([, value]) => value !== null && value !== undefined),
  )

const sum = (figures: readonly (number | null)[]) =>
  figures.reduce<number>((total, each) => total + (each ?? 0), 0)

/** The members of a file of calls. */
const COLUMNS = [
  'ended_at',
  'kind',
  'agent_id',
  'subject',
  'delegation_id',
  'grant_id',
  'credential_id',
  'host',
  'method',
  'tool',
  'outcome',
  'status',
  'bytes',
  'duration_ms',
  'input_tokens',
  'output_tokens',
  'request_id',
  'id',
] as const satisfies readonly (keyof Call)[]

export const CSV_HEAD = csvOf([COLUMNS])

export const csvLines = (calls: readonly Call[]) =>
  csvOf(calls.map((call) => COLUMNS.map((name) => String(call[name] ?? ''))))
