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

export type AdmissionRequest = {
  readonly caller: Caller
  readonly credentialId: string
  readonly call: ProxiedCall
  readonly requestId: string | undefined
}
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
    const { agentId, delegationId } = granteeOf(caller.principal)
    known = { grantee: `${agentId} ${delegationId}`, keys: new Map() }
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

export class Decision {
  readonly #tx: Transaction
  readonly #tenantId: string
  readonly #random: Random
  readonly #now: Date
  /** Events of refusals. */
  readonly told: OutboxEvent[] = []

  constructor(tx: Transaction, tenantId: string, random: Random, now: Date) {
    this.#tx = tx
    this.#tenantId = tenantId
    this.#random = random
    this.#now = now
  }

  /** Synchronous without limits, which saves a microtask per call. */
  of(
    request: AdmissionRequest,
    row: HeldCredentialRow | undefined,
    authorities: readonly AuthorityRow[],
  ): Admitted | Refusal | Promise<Admitted | Refusal> {
    const verdict = judgeCall(request.call, row, authorities, this.#now)
    if (verdict.tag !== 'allowed') return verdict
    const first = verdict.authorities[0]!
    if (hasLimits(first)) return this.#withinLimits(request, row!, verdict.authorities)
    return admitted(this.#random, request, row!, first)
  }

  async #withinLimits(
    request: AdmissionRequest,
    row: HeldCredentialRow,
    authorities: readonly AuthorityRow[],
  ): Promise<Admitted | Refusal> {
    for (const authority of authorities) {
      if (!hasLimits(authority)) return admitted(this.#random, request, row, authority)
      const taken = await this.#take(authority, request.call.bodyBytes)
      if (taken === undefined) continue
      const { bytes, hold } = taken
      // The next request of this batch sees the reduced budget.
      authority.bytesUsed += bytes
      const isLimited = authority.maxBytes !== null || typeof authority.budget?.bytes === 'number'
      const outcome = admitted(this.#random, request, row, authority, isLimited ? bytes : null)
      outcome.facts.hold = hold
      return outcome
    }
    const lack = await refusalOf(this.#tx, this.#tenantId, request, authorities, this.#now)
    if (lack === undefined) return SPENT
    if (lack.isFirst) this.told.push(budgetExceeded(request, lack.budget, this.#random, this.#now))
    return lacking(lack.budget, this.#now)
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
  { caller, credentialId, call, requestId }: AdmissionRequest,
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
  }
  const budget = takenBytes === null ? null : { takenBytes }
  return { tag: 'admitted', facts, row, budget, allowRange }
}
