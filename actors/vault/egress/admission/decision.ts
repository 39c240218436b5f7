/** Decides admissions in a transaction: by the stored grants and leases, and within their limits and budgets. */
import type { Random } from '../../../../runtime/kernel/random.js'
import {
  type AuthorityQuery,
  type AuthorityRow,
  findEgressAuthorities,
  takeFromAuthority,
} from '../../../../storage/vault/egress-authorities.js'
import { type BudgetHold, takeFromBudget } from '../../../../storage/vault/grant-budgets.js'
import type { OutboxEvent } from '../../../../storage/platform/outbox.js'
import type { Transaction } from '../../../../storage/platform/sql.js'
import type { HeldCredentialRow } from '../../../../storage/vault/vault-credentials.js'
import type { Caller } from '../../../domain/audit.js'
import { granteeOf } from '../../../domain/grantee.js'
import type { Principal } from '../../../domain/principal.js'
import { refusalOf } from './grant-budgets.js'
import { budgetExceeded, type CallFacts } from './events.js'
import { PORTION_BYTES } from './byte-budget.js'
import { lacking, type ProxiedCall, judgeCall, type Refusal, SPENT } from './rules.js'
import {
  approvalEvent,
  type ApprovalLimits,
  askApproval,
  type CallToApprove,
  doerOf,
  takeApproval,
} from '../../../platform/call-approvals.js'
import { returnApproval } from '../../../../storage/vault/call-approvals.js'
import { denied } from '../../../domain/vault/denied.js'
import type { EventContext } from '../../../domain/events.js'

export type AdmissionRequest = {
  readonly caller: Caller
  readonly credentialId: string
  readonly call: ProxiedCall
  readonly requestId: string | undefined
  /** The approval that the caller names; null when it names none. */
  readonly approvalId: string | null
  /** What an approval would cover. Null until an approval is needed: its body is read then. */
  readonly toApprove: CallToApprove | null
}
/** Only an approval admits the call: it is decided again with `toApprove`. */
export type CallWanted = { readonly tag: 'call_wanted' }
const CALL_WANTED: CallWanted = { tag: 'call_wanted' }

/** What a decision can be. */
export type AdmissionOutcome = Admitted | Refusal | CallWanted

export type Admitted = {
  readonly tag: 'admitted'
  readonly facts: CallFacts
  readonly row: HeldCredentialRow
  /** Null when bytes are not limited. */
  readonly budget: { readonly takenBytes: number } | null
  /** Whether the caller's Range header is relayed. */
  readonly allowRange: boolean
}

export function hasLimits({ maxRequests, maxBytes, budget }: AuthorityRow): boolean {
  return maxRequests !== null || maxBytes !== null || budget !== null
}

/** The grantee of each principal as text, and its keys by credential: a known text is found without hashing it again. */
const keysOf = new WeakMap<
  Principal,
  { readonly grantee: string; readonly keys: Map<string, string> }
>()
/** Credentials of one principal whose keys are kept. Callers choose the ids. */
const KEYS_MAX = 32

/** Requests with the same key share one look-up of grants and leases. */
export function keyOf({ credentialId, caller }: AdmissionRequest): string {
  let known = keysOf.get(caller.principal)
  if (known === undefined) {
    const { agentId, delegationId, person } = granteeOf(caller.principal)
    known = { grantee: `${agentId} ${delegationId} ${person}`, keys: new Map() }
    keysOf.set(caller.principal, known)
  }
  let key = known.keys.get(credentialId)
  if (key === undefined) {
    key = `${credentialId} ${known.grantee}`
    if (known.keys.size >= KEYS_MAX) known.keys.clear()
    known.keys.set(credentialId, key)
  }
  return key
}

export function queryOf({ credentialId, caller }: AdmissionRequest): AuthorityQuery {
  return { credentialId, ...granteeOf(caller.principal) }
}

/** The grants and leases of each query, by its key, with one statement. */
export async function authoritiesOf(
  tx: Transaction,
  tenantId: string,
  queries: ReadonlyMap<string, AuthorityQuery>,
  now: Date,
): Promise<ReadonlyMap<string, readonly AuthorityRow[]>> {
  if (queries.size === 0) return new Map()
  const found = await findEgressAuthorities(tx, tenantId, [...queries.values()], now)
  return new Map([...queries.keys()].map((key, index) => [key, found[index]!] as const))
}

const NOT_APPROVED: Refusal = denied(
  'not_approved',
  'The approval is unknown, not approved, used or expired, or is for another request.',
)

type DecisionNeeds = { readonly random: Random; readonly approvals: ApprovalLimits }

export class Decision {
  readonly #tx: Transaction
  readonly #tenantId: string
  readonly #needs: DecisionNeeds
  readonly #now: Date
  /** Events besides the beginnings of calls. */
  readonly told: OutboxEvent[] = []

  constructor(tx: Transaction, tenantId: string, needs: DecisionNeeds, now: Date) {
    this.#tx = tx
    this.#tenantId = tenantId
    this.#needs = needs
    this.#now = now
  }

  /** Synchronous without limits, which saves a microtask per call. */
  of(
    request: AdmissionRequest,
    row: HeldCredentialRow | undefined,
    authorities: readonly AuthorityRow[],
  ): AdmissionOutcome | Promise<AdmissionOutcome> {
    const verdict = judgeCall(request.call, row, authorities, this.#now)
    if (verdict.tag !== 'allowed') return verdict
    if (request.approvalId !== null) return this.#approved(request, row!, verdict.authorities)
    const first = verdict.authorities[0]!
    if (hasLimits(first) || first.approval !== 'none')
      return this.#withinLimits(request, row!, verdict.authorities)
    return admitted(this.#needs.random, request, row!, first)
  }

  async #withinLimits(
    request: AdmissionRequest,
    row: HeldCredentialRow,
    authorities: readonly AuthorityRow[],
  ): Promise<AdmissionOutcome> {
    for (const authority of authorities) {
      // The others need an approval too.
      if (authority.approval !== 'none') return this.#ask(request, authority)
      const outcome = await this.#by(authority, request, row)
      if (outcome !== undefined) return outcome
    }
    return this.#spent(request, authorities)
  }

  async #spent(
    request: AdmissionRequest,
    authorities: readonly AuthorityRow[],
  ): Promise<AdmissionOutcome> {
    const lack = await refusalOf(this.#tx, this.#tenantId, request, authorities, this.#now)
    if (lack === undefined) return SPENT
    const { random } = this.#needs
    if (lack.isFirst) this.told.push(budgetExceeded(request, lack.budget, random, this.#now))
    return lacking(lack.budget, this.#now)
  }

  /** Undefined: too little is left of its limits. */
  async #by(
    authority: AuthorityRow,
    request: AdmissionRequest,
    row: HeldCredentialRow,
  ): Promise<Admitted | undefined> {
    const { random } = this.#needs
    if (!hasLimits(authority)) return admitted(random, request, row, authority)
    const taken = await this.#take(authority, request.call.bodyBytes)
    if (taken === undefined) return undefined
    const { bytes, hold } = taken
    // The next request of this batch sees the reduced budget.
    authority.bytesUsed += bytes
    const isLimited = authority.maxBytes !== null || typeof authority.budget?.bytes === 'number'
    const outcome = admitted(random, request, row, authority, isLimited ? bytes : null)
    outcome.facts.hold = hold
    return outcome
  }

  async #ask(request: AdmissionRequest, { id: grantId }: AuthorityRow): Promise<AdmissionOutcome> {
    const { toApprove: call, credentialId } = request
    if (call === null) return CALL_WANTED
    const asking = { kind: 'egress', grantId, credentialId, call } as const
    return askApproval(this.#tx, this.#needs.approvals, asking, this.#context(request))
  }

  /** Admits the call that was approved, once. */
  async #approved(
    request: AdmissionRequest,
    row: HeldCredentialRow,
    authorities: readonly AuthorityRow[],
  ): Promise<AdmissionOutcome> {
    const { toApprove: call, approvalId } = request
    if (call === null) return CALL_WANTED
    const covered = { kind: 'egress', call, grantIds: authorities.map(({ id }) => id) } as const
    const context = this.#context(request)
    const taken = await takeApproval(this.#tx, approvalId!, covered, context)
    const authority = authorities.find(({ id }) => id === taken?.grantId)
    if (taken === undefined || authority === undefined) return NOT_APPROVED
    const outcome = await this.#by(authority, request, row)
    if (outcome === undefined) {
      await returnApproval(this.#tx, this.#tenantId, taken.id)
      return this.#spent(request, [authority])
    }
    this.told.push(approvalEvent('vault.approval.used', taken, doerOf(context)))
    return outcome
  }

  #context({ caller, requestId }: AdmissionRequest): EventContext {
    return { caller, random: this.#needs.random, now: this.#now, requestId }
  }

  async #take(
    authority: AuthorityRow,
    bodyBytes: number,
  ): Promise<{ readonly bytes: number; readonly hold?: BudgetHold } | undefined> {
    const { id, budget } = authority
    const taking = {
      requests: 1,
      bytesMin: bodyBytes,
      bytesMax: bodyBytes + PORTION_BYTES,
      now: this.#now,
    } as const
    if (budget === null) {
      const bytes = await takeFromAuthority(this.#tx, this.#tenantId, authority, taking)
      return bytes === undefined ? undefined : { bytes }
    }
    const taken = await takeFromBudget(this.#tx, this.#tenantId, { id, budget }, taking)
    if (taken === undefined) return undefined
    const { bytes, began } = taken
    return { bytes, hold: { grantId: id, budget, began, bytesBegan: began } }
  }
}

/**
 * A call that an authority admits.
 * @param takenBytes what is taken from its limit of bytes; null without one.
 */
export function admitted(
  random: Random,
  { caller, credentialId, call, requestId, approvalId }: AdmissionRequest,
  row: HeldCredentialRow,
  { kind, id, allowRange }: AuthorityRow,
  takenBytes: number | null = null,
): Admitted {
  const facts: CallFacts = {
    endId: random.uuid(),
    caller,
    credentialId,
    authority: { kind, id },
    host: call.url.hostname,
    method: call.method,
    requestId,
    templates: undefined,
    block: undefined,
    hold: undefined,
    approvalId,
  }
  const budget = takenBytes === null ? null : { takenBytes }
  return { tag: 'admitted', facts, row, budget, allowRange }
}
