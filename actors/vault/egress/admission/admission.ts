/**
 * Admission of egress calls: authorization, limits, and the audit trail. One transaction admits a call:
 * it reads the caller's grants and leases, takes from their limits and appends the event. Nothing about
 * an authorization is cached, so a revocation applies to the next call.
 *
 * Group commit per tenant: calls and call ends that arrive during a transaction share the next one.
 */
import { setImmediate as turnEnds } from 'node:timers/promises'
import type { Clock } from '../../../../runtime/kernel/clock.js'
import type { Logger } from '../../../../runtime/kernel/log.js'
import type { Random } from '../../../../runtime/kernel/random.js'
import {
  type AuthorityQuery,
  type AuthorityRef,
  type AuthorityRow,
  recordUses,
  findEgressAuthorities,
  returnToAuthority,
  takeFromAuthority,
} from '../../../../storage/vault/egress-authorities.js'
import { appendEvents, type NewEvent, toldEvents } from '../../../../storage/platform/outbox.js'
import type { Database, Transaction } from '../../../../storage/platform/sql.js'
import { DatabaseUnavailable } from '../../../../storage/platform/unavailable.js'
import {
  type HeldCredentialRow,
  holdVaultCredentials,
} from '../../../../storage/vault/vault-credentials.js'
import type { Caller } from '../../../domain/audit.js'
import { type CallFacts, credentialAccessed, streamClosed } from './events.js'
import { granteeOf } from '../../../domain/grantee.js'
import type { RelayReport } from '../protocol.js'
import { PORTION_BYTES, PORTION_BYTES_MIN } from './byte-budget.js'
import { type ProxiedCall, judgeCall, type Refusal, SPENT } from './rules.js'

const BATCH_MAX = 128
/** A call end waits this long for a new call, to share its transaction. */
const END_DELAY_MS = 25
const RETRY_MS = 1_000
/** Call ends kept while the database is unavailable. Beyond it the oldest is dropped and logged. */
const CALL_ENDS_MAX = 20_000

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
export type CallEnd = {
  readonly facts: CallFacts
  readonly report: RelayReport
  /** Bytes taken from the budget and not used. */
  readonly unusedBytes: number
}

export interface Admission {
  /** @throws when the database is unavailable. */
  admit(request: AdmissionRequest): Promise<Admitted | Refusal>
  /** Takes more bytes for a running call; 0 when the budget has too few or the call has ended. */
  more(facts: CallFacts, bytesMin: number, bytesMax: number): Promise<number>
  /** Queues the end of a call for the next transaction. */
  close(end: CallEnd): void
  /** Resolves when every queued end is stored, or a transaction has failed. */
  flushed(): Promise<void>
}

export type AdmissionNeeds = {
  readonly database: Database
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
}

type PendingRequest = {
  readonly request: AdmissionRequest
  /** Requests with the same key share one look-up of grants and leases. */
  readonly key: string
  readonly resolve: (outcome: Admitted | Refusal) => void
  readonly reject: (error: unknown) => void
}

/** A call end to store. Its event has a fixed id, so that it is appended once. */
type PendingEnd = CallEnd & {
  readonly event: NewEvent
  /** It may be stored already: by a commit with a lost response, or by another process. */
  readonly isRetry: boolean
}

export function createAdmission(needs: AdmissionNeeds): Admission {
  const tenants = new Map<string, TenantAdmission>()
  function admissionOf(tenantId: string): TenantAdmission {
    let tenant = tenants.get(tenantId)
    if (tenant === undefined) {
      tenant = new TenantAdmission(tenantId, needs, () => void tenants.delete(tenantId))
      tenants.set(tenantId, tenant)
    }
    return tenant
  }
  return {
    admit: (request) => admissionOf(request.caller.principal.tenantId).admit(request),
    more({ caller, authority }, bytesMin, bytesMax) {
      const { tenantId } = caller.principal
      const taking = { requests: 0, bytesMin, bytesMax, now: needs.clock.now() } as const
      return needs.database.tenant(
        tenantId,
        async (tx) => (await takeFromAuthority(tx, tenantId, authority, taking)) ?? 0,
      )
    },
    close: (end) => admissionOf(end.facts.caller.principal.tenantId).close(end),
    async flushed() {
      await Promise.all([...tenants.values()].map((tenant) => tenant.flushed()))
    },
  }
}

/** The queues of one tenant. */
class TenantAdmission {
  readonly #tenantId: string
  readonly #needs: AdmissionNeeds
  readonly #onIdle: () => void
  #requests: PendingRequest[] = []
  #ends: PendingEnd[] = []
  #running: Promise<void> | null = null
  #timer: NodeJS.Timeout | undefined
  #failed = false

  constructor(tenantId: string, needs: AdmissionNeeds, onIdle: () => void) {
    this.#tenantId = tenantId
    this.#needs = needs
    this.#onIdle = onIdle
  }

  admit(request: AdmissionRequest): Promise<Admitted | Refusal> {
    return new Promise((resolve, reject) => {
      this.#requests.push({ request, key: keyOf(request), resolve, reject })
      this.#run()
    })
  }

  close({ facts, report, unusedBytes }: CallEnd): void {
    const event = streamClosed(facts, report, this.#needs.clock.now())
    this.#ends.push({ facts, report, unusedBytes, event, isRetry: false })
    if (this.#ends.length > CALL_ENDS_MAX) {
      const [dropped] = this.#ends.splice(0, 1)
      const requestId = dropped!.facts.requestId
      this.#needs.log.error({ request_id: requestId }, 'egress: dropped the end of a call')
    }
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined
      this.#run()
    }, END_DELAY_MS)
  }

  async flushed(): Promise<void> {
    clearTimeout(this.#timer)
    this.#timer = undefined
    this.#failed = false
    while (this.#pending && !this.#failed) {
      this.#run()
      await this.#running
    }
  }

  get #pending(): boolean {
    return this.#requests.length > 0 || this.#ends.length > 0
  }

  #run(): void {
    if (this.#running !== null || !this.#pending) return
    this.#running = this.#batch().finally(() => {
      this.#running = null
      if (this.#requests.length > 0 || this.#ends.length >= BATCH_MAX) this.#run()
      else if (this.#ends.length > 0) {
        this.#timer ??= setTimeout(
          () => {
            this.#timer = undefined
            this.#run()
          },
          this.#failed ? RETRY_MS : END_DELAY_MS,
        )
      } else this.#onIdle()
    })
  }

  async #batch(): Promise<void> {
    const { database, log } = this.#needs
    // The batch includes everything that arrives in this turn of the event loop.
    await turnEnds()
    const requests = this.#requests.splice(0, BATCH_MAX)
    const ends = this.#ends.splice(0, BATCH_MAX)
    try {
      const outcomes = await database.tenant(this.#tenantId, (tx) =>
        this.#write(tx, requests, ends),
      )
      this.#failed = false
      for (const [index, { resolve }] of requests.entries()) resolve(outcomes[index]!)
    } catch (error) {
      if (ends.length > 0 && !(error instanceof DatabaseUnavailable)) {
        await this.#writeEndsSingly(ends)
        // The requests join the next batch: one of the ends may have caused the failure.
        this.#requests.unshift(...requests)
        return
      }
      for (const { reject } of requests) reject(error)
      if (ends.length === 0) return
      this.#failed = true
      this.#ends.unshift(...ends.map((end) => ({ ...end, isRetry: true })))
      log.warn({ err: error, calls: ends.length }, 'egress: call ends are not stored yet')
    }
  }

  /**
   * Stores call ends one by one, so that one invalid end does not block the others and new calls. An
   * end conflicts if another process has closed the call as lost, because this process was suspended
   * for longer than a call may run.
   */
  async #writeEndsSingly(ends: readonly PendingEnd[]): Promise<void> {
    const { database, log } = this.#needs
    for (const end of ends) {
      const { requestId } = end.facts
      await database
        .tenant(this.#tenantId, (tx) => this.#write(tx, [], [{ ...end, isRetry: true }]))
        .catch((error: unknown) => {
          log.error({ err: error, request_id: requestId }, 'egress: dropped the end of a call')
        })
    }
  }

  async #write(
    tx: Transaction,
    requests: readonly PendingRequest[],
    pendingEnds: readonly PendingEnd[],
  ): Promise<(Admitted | Refusal)[]> {
    const tenantId = this.#tenantId
    const now = this.#needs.clock.now()
    const ends = await this.#withoutStored(tx, pendingEnds)
    const events: NewEvent[] = ends.map(({ event }) => event)
    // Locked before their grants, in the same order as a revocation, to avoid deadlocks.
    const credentialIds = [
      ...requests.map(({ request }) => request.credentialId),
      ...ends.flatMap(({ facts, unusedBytes }) => (unusedBytes > 0 ? facts.credentialId : [])),
    ]
    // Pipelined, so that it takes one round trip. Returned bytes are available to the requests of this
    // batch.
    const [held, , authoritiesByKey] = await Promise.all([
      credentialIds.length === 0
        ? []
        : holdVaultCredentials(tx, tenantId, [...new Set(credentialIds)]),
      this.#returnUnused(tx, ends),
      authoritiesOf(tx, tenantId, requests, now),
    ])
    const rows = new Map(held.map((row) => [row.id, row]))
    const used = new Set<string>()
    const outcomes: (Admitted | Refusal)[] = []
    for (const { request, key } of requests) {
      const authorities = authoritiesByKey.get(key) ?? []
      const judged = this.#judge(tx, request, rows.get(request.credentialId), authorities, now)
      // Synchronous without limits, which saves a microtask per call.
      const outcome = judged instanceof Promise ? await judged : judged
      if (outcome.tag === 'admitted') {
        used.add(request.credentialId)
        events.push(credentialAccessed(outcome.facts, now))
      }
      outcomes.push(outcome)
    }
    if (used.size > 0) recordUses(tx, tenantId, [...used], now, events)
    else appendEvents(tx, events)
    return outcomes
  }

  async #withoutStored(
    tx: Transaction,
    ends: readonly PendingEnd[],
  ): Promise<readonly PendingEnd[]> {
    const retried = ends.filter(({ isRetry }) => isRetry).map(({ event }) => event.id)
    if (retried.length === 0) return ends
    const stored = await toldEvents(tx, this.#tenantId, retried)
    return ends.filter(({ event }) => !stored.has(event.id))
  }

  /** Returns unused bytes, with one statement per budget. */
  async #returnUnused(tx: Transaction, ends: readonly CallEnd[]): Promise<void> {
    const unused = new Map<string, { authority: AuthorityRef; bytes: number }>()
    for (const { facts, unusedBytes } of ends) {
      if (unusedBytes === 0) continue
      const { authority } = facts
      const sum = unused.get(authority.id) ?? { authority, bytes: 0 }
      sum.bytes += unusedBytes
      unused.set(authority.id, sum)
    }
    await Promise.all(
      [...unused.values()].map(({ authority, bytes }) =>
        returnToAuthority(tx, this.#tenantId, authority, bytes),
      ),
    )
  }

  #judge(
    tx: Transaction,
    request: AdmissionRequest,
    row: HeldCredentialRow | undefined,
    authorities: readonly AuthorityRow[],
    now: Date,
  ): Admitted | Refusal | Promise<Admitted | Refusal> {
    const verdict = judgeCall(request.call, row, authorities, now)
    if (verdict.tag !== 'allowed') return verdict
    const [first] = verdict.authorities
    if (first!.maxRequests === null && first!.maxBytes === null) {
      const facts = this.#factsOf(request, first!)
      const { allowRange } = first!
      return { tag: 'admitted', facts, row: row!, budget: null, allowRange }
    }
    return this.#judgeLimited(tx, request, row!, verdict.authorities, now)
  }

  async #judgeLimited(
    tx: Transaction,
    request: AdmissionRequest,
    row: HeldCredentialRow,
    authorities: readonly AuthorityRow[],
    now: Date,
  ): Promise<Admitted | Refusal> {
    for (const authority of authorities) {
      const facts = this.#factsOf(request, authority)
      const { maxRequests, maxBytes, allowRange } = authority
      if (maxRequests === null && maxBytes === null) {
        return { tag: 'admitted', facts, row, budget: null, allowRange }
      }
      const takenBytes = await this.#take(tx, authority, request.call.bodyBytes, now)
      if (takenBytes === undefined) continue
      // The next request of this batch sees the reduced budget.
      authority.bytesUsed += takenBytes
      const budget = maxBytes === null ? null : { takenBytes }
      return { tag: 'admitted', facts, row, budget, allowRange }
    }
    return SPENT
  }

  #factsOf(
    { caller, credentialId, call, requestId }: AdmissionRequest,
    { kind, id }: AuthorityRow,
  ): CallFacts {
    const { method, url } = call
    const endId = this.#needs.random.uuid()
    const authority = { kind, id }
    return { endId, caller, credentialId, authority, host: url.hostname, method, requestId }
  }

  #take(tx: Transaction, authority: AuthorityRow, bodyBytes: number, now: Date) {
    const { maxBytes, bytesUsed } = authority
    const share = Math.ceil(((maxBytes ?? 0) - bytesUsed) / 8)
    const portion = Math.min(PORTION_BYTES, Math.max(PORTION_BYTES_MIN, share))
    return takeFromAuthority(tx, this.#tenantId, authority, {
      requests: 1,
      bytesMin: bodyBytes,
      bytesMax: bodyBytes + portion,
      now,
    })
  }
}

function keyOf({ credentialId, caller }: AdmissionRequest): string {
  const { agentId, delegationId } = granteeOf(caller.principal)
  return `${credentialId} ${agentId} ${delegationId}`
}

/** The grants and leases for a batch, with one query and one look-up per caller and credential. */
async function authoritiesOf(
  tx: Transaction,
  tenantId: string,
  requests: readonly PendingRequest[],
  now: Date,
): Promise<ReadonlyMap<string, readonly AuthorityRow[]>> {
  const queries = new Map<string, AuthorityQuery>()
  for (const { request, key } of requests) {
    if (queries.has(key)) continue
    const { credentialId, caller } = request
    queries.set(key, { credentialId, ...granteeOf(caller.principal) })
  }
  if (queries.size === 0) return new Map()
  const found = await findEgressAuthorities(tx, tenantId, [...queries.values()], now)
  return new Map([...queries.keys()].map((key, index) => [key, found[index]!] as const))
}
