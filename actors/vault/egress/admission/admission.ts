/**
 * Admission of egress calls: authorization, limits, and the audit trail.
 *
 * One transaction decides the first calls of a caller: it reads the grants and leases, takes from their limits and
 * appends the event. A caller that goes on calling gets a block (egress-blocks.ts), if the grant or lease has no limits:
 * its calls are then admitted in memory and recorded a few milliseconds later. Limits are always taken in the database
 * before a call is sent.
 *
 * Group commit per tenant: calls, and beginnings and ends to record, that arrive during a transaction share the next one.
 */
import { setImmediate as turnEnds } from 'node:timers/promises'
import type { Clock } from '../../../../runtime/kernel/clock.js'
import type { Logger } from '../../../../runtime/kernel/log.js'
import type { Random } from '../../../../runtime/kernel/random.js'
import { closingEgressBlocks } from '../../../../storage/vault/egress-blocks.js'
import {
  type AuthorityQuery,
  stampingUses,
  takeFromAuthority,
} from '../../../../storage/vault/egress-authorities.js'
import { appending, type OutboxEvent, RECORDED } from '../../../../storage/platform/outbox.js'
import type { Database, Statement } from '../../../../storage/platform/sql.js'
import { DatabaseUnavailable } from '../../../../storage/platform/unavailable.js'
import type { RelayReport } from '../protocol.js'
import {
  type AdmissionRequest,
  type Admitted,
  admitted,
  hasLimits,
  keyOf,
  queryOf,
} from './decision.js'
import { beginEvent, type CallFacts, endEvent } from './events.js'
import { type Block, KnownCallers } from './known-callers.js'
import { judgeCall, type Refusal } from './rules.js'
import {
  type Batch,
  type CallRecord,
  type Decided,
  type PendingRequest,
  refreshCallers,
  writeBatch,
} from './batch.js'

export type { AdmissionRequest, Admitted } from './decision.js'

const REQUESTS_MAX = 128
const RECORDS_MAX = 512
/** The beginning of a call waits this long for others, to share their statement. */
const BEGIN_DELAY_MS = 4
/** An end waits this long for a new call, to share its transaction. */
const END_DELAY_MS = 25
const RETRY_MS = 1_000
const IDLE_CHECK_MS = 1_000
/** Call ends kept while the database is unavailable. Beyond it the oldest is dropped and logged. */
const CALL_ENDS_MAX = 20_000

export type CallEnd = {
  readonly facts: CallFacts
  readonly report: RelayReport
  /** Bytes taken from the budget and not used. */
  readonly unusedBytes: number
}

export interface Admission {
  /** @throws when the database is unavailable. */
  admit(request: AdmissionRequest): Promise<Admitted | Refusal> | Admitted
  /** Takes more bytes for a running call; 0 when the budget has too few or the call has ended. */
  more(facts: CallFacts, bytesMin: number, bytesMax: number): Promise<number>
  /** Queues the end of a call for the next transaction. */
  close(end: CallEnd): void
  /** A credential, grant or lease of the tenant has changed. Null: of any tenant. */
  forget(tenantId: string | null): void
  /** Resolves when every beginning and end is stored and all blocks are closed, or a transaction has failed. */
  flushed(): Promise<void>
}

export type AdmissionNeeds = {
  readonly database: Database
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
  /** Calls of one block: those that may be sent before they are recorded. 0 records every call before it is sent. */
  readonly unrecordedMax: number
  readonly onAdmitted?: ((how: 'memory' | 'database') => void) | undefined
}

export function createAdmission(needs: AdmissionNeeds): Admission {
  const tenants = new Map<string, TenantAdmission>()
  let idleTimer: NodeJS.Timeout | undefined
  function closeIdle(): void {
    for (const tenant of tenants.values()) tenant.closeIdle()
    if (tenants.size === 0) {
      clearInterval(idleTimer)
      idleTimer = undefined
    }
  }
  function admissionOf(tenantId: string): TenantAdmission {
    let tenant = tenants.get(tenantId)
    if (tenant === undefined) {
      tenant = new TenantAdmission(tenantId, needs, () => void tenants.delete(tenantId))
      tenants.set(tenantId, tenant)
      idleTimer ??= setInterval(closeIdle, IDLE_CHECK_MS).unref()
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
    forget(tenantId) {
      if (tenantId !== null) tenants.get(tenantId)?.forget()
      else for (const tenant of tenants.values()) tenant.forget()
    },
    async flushed() {
      clearInterval(idleTimer)
      idleTimer = undefined
      await Promise.all([...tenants.values()].map((tenant) => tenant.flushed()))
    },
  }
}

/** The queues of one tenant. */
class TenantAdmission {
  readonly #tenantId: string
  readonly #needs: AdmissionNeeds
  readonly #onIdle: () => void
  readonly #known = new KnownCallers()
  #requests: PendingRequest[] = []
  /** Callers to read again, by key. */
  #refreshes = new Map<string, AuthorityQuery>()
  #isRefreshing = false
  /** Beginnings and ends, each call's beginning before its end. */
  #records: CallRecord[] = []
  #ends = 0
  /** Blocks to close, once their calls are recorded. */
  #retired: Block[] = []
  #running: Promise<void> | null = null
  #timer: NodeJS.Timeout | undefined
  #dueMs = Number.POSITIVE_INFINITY
  #failed = false

  constructor(tenantId: string, needs: AdmissionNeeds, onIdle: () => void) {
    this.#tenantId = tenantId
    this.#needs = needs
    this.#onIdle = onIdle
  }

  admit(request: AdmissionRequest): Promise<Admitted | Refusal> | Admitted {
    const key = keyOf(request)
    const known = this.#admitFromMemory(request, key)
    if (known !== null) return known
    this.#needs.onAdmitted?.('database')
    return new Promise((resolve, reject) => {
      this.#requests.push({ request, key, resolve, reject })
      this.#run()
    })
  }

  /** Null: the database decides. Refusals come from the database only. */
  #admitFromMemory(request: AdmissionRequest, key: string): Admitted | null {
    const known = this.#known.find(key)
    const block = known?.block
    if (known === undefined || block === null || block === undefined) return null
    const { clock, random, onAdmitted } = this.#needs
    const nowMs = clock.monotonicMs()
    if (this.#failed || !block.hasRoom || !this.#known.isFresh(known, nowMs)) return null
    const now = clock.now()
    const verdict = judgeCall(request.call, known.row, known.authorities, now)
    if (verdict.tag !== 'allowed') return null
    const first = verdict.authorities[0]!
    if (first.id !== block.authorityId || hasLimits(first)) return null
    const outcome = admitted(random, request, known.row, first)
    const { facts } = outcome
    if (facts.requestId !== undefined) facts.templates = this.#known.templatesOf(facts)
    known.usedMs = nowMs
    block.usedMs = nowMs
    block.unrecorded += 1
    if (this.#known.takeRefresh(known, nowMs)) {
      this.#refreshes.set(key, queryOf(request))
      if (!this.#isRefreshing) void this.#refresh()
    }
    this.#records.push({
      kind: 'begin',
      event: beginEvent(facts, now),
      facts,
      unusedBytes: 0,
      isRetry: false,
      block,
    })
    onAdmitted?.('memory')
    if (block.unrecorded * 2 > block.callsMax) this.#run()
    else this.#schedule(BEGIN_DELAY_MS)
    return outcome
  }

  /** Reads callers again until none is due. A caller that cannot be read expires. */
  async #refresh(): Promise<void> {
    this.#isRefreshing = true
    while (this.#refreshes.size > 0) {
      const due = this.#refreshes
      this.#refreshes = new Map()
      try {
        this.#retired.push(...(await refreshCallers(this.#tenantId, this.#needs, this.#known, due)))
      } catch (error) {
        this.#needs.log.warn({ err: error }, 'egress: could not read grants again')
        for (const key of due.keys()) this.#known.refreshFailed(key)
      }
    }
    this.#isRefreshing = false
  }

  close({ facts, report, unusedBytes }: CallEnd): void {
    const event = endEvent(facts, report, this.#needs.clock.now())
    this.#records.push({ kind: 'end', event, facts, unusedBytes, isRetry: false, block: null })
    this.#ends += 1
    if (this.#ends > CALL_ENDS_MAX) this.#dropEnd()
    this.#schedule(END_DELAY_MS)
  }

  /** The start event of the call is recorded, so another process ends the call later as lost. */
  #dropEnd(): void {
    const [dropped] = this.#records.splice(
      this.#records.findIndex(({ kind }) => kind === 'end'),
      1,
    )
    this.#ends -= 1
    const requestId = dropped!.facts.requestId
    this.#needs.log.error({ request_id: requestId }, 'egress: dropped the end of a call')
  }

  forget(): void {
    this.#known.forget()
  }

  closeIdle(idleMs?: number): void {
    this.#retired.push(...this.#known.takeIdle(this.#needs.clock.monotonicMs(), idleMs))
    if (this.#retired.some(isClosable)) this.#schedule(END_DELAY_MS)
    else if (this.#isIdle) this.#onIdle()
  }

  async flushed(): Promise<void> {
    clearTimeout(this.#timer)
    this.#timer = undefined
    this.#failed = false
    while (this.#isPending && !this.#failed) {
      this.#run()
      await this.#running
    }
    // Without another call a block stays open only if its calls could not be recorded.
    this.closeIdle(0)
    clearTimeout(this.#timer)
    if (!this.#failed && this.#isPending) {
      this.#run()
      await this.#running
    }
  }

  get #isPending(): boolean {
    return this.#requests.length > 0 || this.#records.length > 0 || this.#retired.some(isClosable)
  }

  get #isIdle(): boolean {
    return (
      this.#running === null &&
      !this.#isRefreshing &&
      !this.#isPending &&
      this.#known.size === 0 &&
      this.#retired.length === 0
    )
  }

  /** Runs a transaction after the delay, or earlier. */
  #schedule(delayMs: number): void {
    // After the running transaction it is scheduled again.
    if (this.#running !== null) return
    const dueMs = this.#needs.clock.monotonicMs() + delayMs
    if (this.#timer !== undefined) {
      if (this.#dueMs <= dueMs) return
      clearTimeout(this.#timer)
    }
    this.#dueMs = dueMs
    this.#timer = setTimeout(() => {
      this.#timer = undefined
      this.#run()
    }, delayMs)
  }

  #run(): void {
    if (this.#running !== null || !this.#isPending) return
    clearTimeout(this.#timer)
    this.#timer = undefined
    this.#running = this.#batch().finally(() => {
      this.#running = null
      if (this.#requests.length > 0 || this.#records.length >= RECORDS_MAX) this.#run()
      else if (this.#isPending) {
        const isBegun = this.#records.length > this.#ends
        this.#schedule(this.#failed ? RETRY_MS : isBegun ? BEGIN_DELAY_MS : END_DELAY_MS)
      } else if (this.#isIdle) this.#onIdle()
    })
  }

  async #batch(): Promise<void> {
    // The batch includes everything that arrives in this turn of the event loop.
    await turnEnds()
    const batch: Batch = {
      requests: this.#requests.splice(0, REQUESTS_MAX),
      records: this.#records.splice(0, RECORDS_MAX),
      closing: this.#retired.filter(isClosable),
      generation: this.#known.generation,
      nowMs: this.#needs.clock.monotonicMs(),
    }
    const { requests, records, closing } = batch
    this.#retired = this.#retired.filter((block) => !isClosable(block))
    this.#ends -= countEnds(records)
    try {
      if (isRecordOnly(batch)) await this.#record(batch)
      else this.#conclude(batch, await writeBatch(this.#tenantId, this.#needs, this.#known, batch))
      this.#failed = false
      this.#recorded(records)
    } catch (error) {
      this.#retired.push(...closing)
      this.#failed = true
      if (records.length > 0 && !(error instanceof DatabaseUnavailable)) {
        await this.#recordSingly(records)
        this.#failed = closing.length > 0
        // The requests join the next batch: one of the records may have caused the failure.
        this.#requests.unshift(...requests)
        return
      }
      for (const { reject } of requests) reject(error)
      if (records.length === 0) return
      this.#records.unshift(...records.map((record) => ({ ...record, isRetry: true })))
      this.#ends += countEnds(records)
      this.#needs.log.warn(
        { err: error, records: records.length },
        'egress: calls are not recorded yet',
      )
    }
  }

  /** Records beginnings and ends that need no decision, in one round trip. */
  async #record({ records, closing, nowMs }: Batch): Promise<void> {
    const { database, clock } = this.#needs
    const stamped = new Set<string>()
    for (const { kind, block, facts } of records) {
      if (kind === 'begin' && block?.takeStamp(nowMs) === true) stamped.add(facts.credentialId)
    }
    for (const { isStampDue, credentialId } of closing) if (isStampDue) stamped.add(credentialId)
    const changes: Statement[] = []
    if (stamped.size > 0) {
      changes.push(stampingUses(this.#tenantId, [...stamped].sort(), clock.now()))
    }
    if (closing.length > 0) {
      const ids = closing.map(({ id }) => id)
      changes.push(closingEgressBlocks(this.#tenantId, ids))
    }
    const events: OutboxEvent[] = records.map(({ event }) => event)
    if (events.length > 0) {
      const statements = [...changes, appending(events)]
      await database.together(this.#tenantId, statements, { wakes: RECORDED })
    } else if (changes.length > 0) await database.together(this.#tenantId, changes)
  }

  #recorded(records: readonly CallRecord[]): void {
    for (const { block } of records) if (block !== null) block.unrecorded -= 1
  }

  #conclude({ requests }: Batch, { outcomes, retired }: Decided): void {
    this.#retired.push(...retired)
    for (const [index, { resolve }] of requests.entries()) resolve(outcomes[index]!)
  }

  /**
   * Stores records one by one, so that one invalid record does not block the others and new calls. An
   * end conflicts if another process has closed the call as lost, because this process was suspended
   * for longer than a call may run.
   */
  async #recordSingly(records: readonly CallRecord[]): Promise<void> {
    for (const record of records) {
      const batch: Batch = {
        requests: [],
        records: [{ ...record, isRetry: true }],
        closing: [],
        generation: this.#known.generation,
        nowMs: this.#needs.clock.monotonicMs(),
      }
      try {
        await writeBatch(this.#tenantId, this.#needs, this.#known, batch)
        this.#recorded([record])
      } catch (error) {
        // The block of a beginning keeps counting it, so it is never closed as fully recorded.
        const request_id = record.facts.requestId
        this.#needs.log.error(
          { err: error, request_id },
          `egress: dropped the ${record.kind} of a call`,
        )
      }
    }
  }
}

/** True if a block has no calls left to record. */
function isClosable({ unrecorded }: Block): boolean {
  return unrecorded === 0
}

function countEnds(records: readonly CallRecord[]): number {
  let count = 0
  for (const { kind } of records) if (kind === 'end') count += 1
  return count
}

/** True if nothing has to be read or decided. */
function isRecordOnly({ requests, records }: Batch): boolean {
  if (requests.length > 0) return false
  return records.every(({ isRetry, unusedBytes }) => !isRetry && unusedBytes === 0)
}
