/**
 * Admission of egress calls: authorization, limits, and the audit trail.
 *
 * One transaction decides the first calls of a caller: it reads the grants and leases, takes from their limits and
 * appends the event. A caller that goes on calling gets a block (egress-blocks.ts): its calls are then admitted in
 * memory and recorded a few milliseconds later. The block of a grant or lease with limits holds a part of them, which is
 * taken in the database before a call uses it. A call that finds a limit used up waits until the blocks of all
 * processes have given back what they hold.
 *
 * Group commit per tenant: calls, and beginnings and ends to record, that arrive during a transaction share the next one.
 */
import { setImmediate as turnEnds, setTimeout as sleep } from 'node:timers/promises'
import type { Logger } from '../../../../runtime/kernel/log.js'
import {
  closingEgressBlocks,
  type Holding,
  isHeldByBlocks,
  recallBlocks,
  refillBlock,
  settlingBlocks,
} from '../../../../storage/vault/egress-blocks.js'
import {
  type AuthorityQuery,
  stampingUses,
  takeFromAuthority,
} from '../../../../storage/vault/egress-authorities.js'
import { appendStatement, sequencerChannels } from '../../../../storage/platform/outbox.js'
import type { Statement } from '../../../../storage/platform/sql.js'
import { DatabaseUnavailable } from '../../../../storage/platform/unavailable.js'
import type { RelayReport } from '../protocol.js'
import {
  type AdmissionOutcome,
  type AdmissionRequest,
  type Admitted,
  admitted,
  keyOf,
  queryOf,
} from './decision.js'
import { beginEvent, type CallFacts, endEvent } from './events.js'
import type { Block } from './block.js'
import { KnownCallers } from './known-callers.js'
import { judgeCall } from './rules.js'
import {
  type Batch,
  type CallRecord,
  type Decided,
  eventsOf,
  NOTHING,
  type PendingRequest,
  RECALLS_MAX,
  refreshCallers,
  settlementsOf,
  writeBatch,
} from './batch.js'
import { moreOfBudget, settlementOf } from './grant-budgets.js'
import type { Budgeted } from '../../../domain/vault/budgets.js'
import type { ApprovalLimits } from '../../../platform/call-approvals.js'
import type { WriteNeeds } from '../../../platform/write-needs.js'

export type { AdmissionRequest, Admitted } from './decision.js'

const REQUESTS_MAX = 128
const RECORDS_MAX = 512
/** The beginning of a call waits this long for others, to share their statement. */
const BEGIN_DELAY_MS = 4
/** An end waits this long for a new call, to share its transaction. */
const END_DELAY_MS = 25
const RETRY_MS = 1_000
/** A call that waits for a recall is decided again after this. */
const RECALL_MS = 60
/** After a recall without success, for example of a killed process, calls are refused without waiting for this long. */
const RECALL_PAUSE_MS = 5_000
/** When little or nothing is left for a block, it is refilled again after this. */
const REFILL_PAUSE_MS = 250
const IDLE_CHECK_MS = 1_000
/** Call ends kept while the database is unavailable. Beyond it the oldest is dropped and logged. */
const CALL_ENDS_MAX = 20_000

type CallEnd = {
  readonly facts: CallFacts
  readonly report: RelayReport
  /** Bytes taken from the budget and not used. */
  readonly unusedBytes: number
  /** The call was cut because its budget ended, which spends what is left. */
  readonly isBudgetSpent: boolean
}

export interface Admission {
  /** @throws when the database is unavailable. */
  admit(request: AdmissionRequest): Promise<AdmissionOutcome> | Admitted
  /** Takes more bytes for a running call; 0 when the budget has too few or the call has ended. */
  more(facts: CallFacts, bytesMin: number, bytesMax: number): Promise<number>
  /** Queues the end of a call for the next transaction. */
  close(end: CallEnd): void
  /** A credential, grant or lease of the tenant has changed. Null: of any tenant. */
  forget(tenantId: string | null): void
  /** Resolves when every beginning and end is stored and all blocks are closed, or a transaction has failed. */
  flushed(): Promise<void>
}

type AdmissionNeeds = WriteNeeds & {
  readonly log: Logger
  readonly approvals: ApprovalLimits
  /** Calls of one block: those that may be sent before they are recorded. 0 records every call before it is sent. */
  readonly unrecordedMax: number
  readonly onAdmitted?: ((how: 'memory' | 'database') => void) | undefined
  readonly onBudgetExceeded?: ((budget: Budgeted) => void) | undefined
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
    more: (facts, bytesMin, bytesMax) =>
      admissionOf(facts.caller.principal.tenantId).more(facts, bytesMin, bytesMax),
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
  /** Work of blocks that no batch waits for. */
  readonly #aside = new Set<Promise<void>>()
  #waitingForRecall = 0
  #recallFromMs = 0
  #running: Promise<void> | null = null
  #timer: NodeJS.Timeout | undefined
  #dueMs = Number.POSITIVE_INFINITY
  #failed = false

  constructor(tenantId: string, needs: AdmissionNeeds, onIdle: () => void) {
    this.#tenantId = tenantId
    this.#needs = needs
    this.#onIdle = onIdle
  }

  admit(request: AdmissionRequest): Promise<AdmissionOutcome> | Admitted {
    const key = keyOf(request)
    const known = request.approvalId === null ? this.#admitFromMemory(request, key) : null
    if (known !== null) return known
    this.#needs.onAdmitted?.('database')
    return new Promise((resolve, reject) => {
      this.#requests.push({ request, key, resolve, reject, recalls: 0 })
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
    if (first.id !== block.authority.id || first.approval !== 'none') return null
    const taken = block.takeCall(request.call.bodyBytes)
    if (block.limits !== null) this.#refillIfDue(block, nowMs)
    if (taken === undefined) return null
    const { takenBytes } = taken
    const outcome = admitted(random, request, known.row, first, takenBytes)
    const { facts } = outcome
    if (block.limits !== null) facts.block = block
    if (facts.requestId !== undefined) facts.templates = this.#known.templatesOf(known, facts)
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
      spends: false,
      isRetry: false,
      block,
      used:
        block.limits === null
          ? NOTHING
          : { requests: block.limits.hasRequests ? 1 : 0, bytes: takenBytes ?? 0 },
      settles: null,
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
        this.#retired.push(...(await refreshCallers(this.#needs, this.#tenantId, this.#known, due)))
      } catch (error) {
        this.#needs.log.warn({ err: error }, 'egress: could not read grants again')
        for (const key of due.keys()) this.#known.refreshFailed(key)
      }
    }
    this.#isRefreshing = false
  }

  #refillIfDue(block: Block, nowMs: number): void {
    const most = block.refillDue(nowMs)
    if (most === null) return
    block.isRefilling = true
    const refill = this.#refill(block, most).finally(() => {
      block.isRefilling = false
      this.#aside.delete(refill)
      if (block.isRetired) this.#schedule(END_DELAY_MS)
    })
    this.#aside.add(refill)
  }

  async #refill(block: Block, most: Holding): Promise<void> {
    const { database, clock, log } = this.#needs
    const tenantId = this.#tenantId
    block.refillFromMs = clock.monotonicMs() + REFILL_PAUSE_MS
    try {
      const taken = await database.tenant(tenantId, (tx) =>
        refillBlock(tx, tenantId, block, most, clock.now()),
      )
      if (taken === undefined) return
      block.add(taken)
      const { requests, bytes } = taken
      if (requests * 2 > most.requests || bytes * 2 > most.bytes) block.refillFromMs = 0
    } catch (error) {
      // The row may hold more than this process knows, which the end of the block gives back.
      log.warn({ err: error }, 'egress: could not refill a block')
    }
  }

  /** Takes more bytes for a running call: from its block, or from the grant or lease. */
  async more(facts: CallFacts, bytesMin: number, bytesMax: number): Promise<number> {
    const { database, clock } = this.#needs
    const { block, authority, hold } = facts
    if (hold !== undefined)
      return moreOfBudget(this.#needs, this.#tenantId, hold, { bytesMin, bytesMax })
    const drawn = block?.takeBytes(bytesMin, bytesMax) ?? 0
    if (block !== undefined && drawn > 0) {
      block.unsettled += 1
      this.#records.push({
        kind: 'drawn',
        event: null,
        facts,
        unusedBytes: 0,
        spends: false,
        isRetry: false,
        block,
        used: { requests: 0, bytes: drawn },
        settles: null,
      })
      this.#refillIfDue(block, clock.monotonicMs())
      this.#schedule(BEGIN_DELAY_MS)
      return drawn
    }
    const tenantId = this.#tenantId
    for (let recalls = 0; ; recalls += 1) {
      const taken = await database.tenant(tenantId, async (tx) => {
        const taking = { requests: 0, bytesMin, bytesMax, now: clock.now() } as const
        const bytes = await takeFromAuthority(tx, tenantId, authority, taking)
        if (bytes !== undefined) return bytes
        if (recalls === RECALLS_MAX || !this.#mayRecall) return 0
        if (!(await isHeldByBlocks(tx, tenantId, [authority.id]))) return 0
        if (recalls === 0) recallBlocks(tx, tenantId)
        return null
      })
      if (taken !== null) return taken
      await sleep(RECALL_MS)
    }
  }

  get #mayRecall(): boolean {
    return this.#needs.clock.monotonicMs() >= this.#recallFromMs
  }

  close({ facts, report, unusedBytes, isBudgetSpent }: CallEnd): void {
    const event = endEvent(facts, report, this.#needs.clock.now())
    const { block } = facts
    // No block admits another call by a budget that is spent.
    if (isBudgetSpent) this.forget()
    const isOfBlock = block !== undefined && unusedBytes !== 0 && !block.isRetired
    if (isOfBlock) {
      block.unsettled += 1
      block.add({ requests: 0, bytes: unusedBytes })
    }
    this.#records.push({
      kind: 'end',
      event,
      facts,
      unusedBytes: isOfBlock ? 0 : unusedBytes,
      spends: isBudgetSpent,
      isRetry: false,
      block: isOfBlock ? block : null,
      used: isOfBlock ? { requests: 0, bytes: -unusedBytes } : NOTHING,
      settles: settlementOf(facts, report, unusedBytes),
    })
    this.#ends += 1
    if (this.#ends > CALL_ENDS_MAX) this.#dropEnd()
    // The next call, also of another process, is decided by what this one has used.
    if (isBudgetSpent || facts.hold !== undefined) this.#run()
    else this.#schedule(END_DELAY_MS)
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
    const blocks = this.#known.forget()
    if (blocks.length === 0) return
    this.#retired.push(...blocks)
    this.#schedule(BEGIN_DELAY_MS)
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
    await Promise.all(this.#aside)
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
      this.#waitingForRecall === 0 &&
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
      mayRecall: this.#mayRecall,
    }
    const { requests, records, closing } = batch
    this.#retired = this.#retired.filter((block) => !isClosable(block))
    this.#ends -= countEnds(records)
    try {
      if (isRecordOnly(batch)) await this.#record(batch)
      else this.#conclude(batch, await writeBatch(this.#needs, this.#tenantId, this.#known, batch))
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
    const settlements = settlementsOf(records)
    if (settlements.length > 0) changes.push(settlingBlocks(this.#tenantId, settlements))
    if (closing.length > 0) {
      const ids = closing.map(({ id }) => id)
      changes.push(closingEgressBlocks(this.#tenantId, ids))
    }
    const events = eventsOf(records)
    if (events.length > 0) {
      const statements = [...changes, appendStatement(events)]
      await database.together(this.#tenantId, statements, { wakes: sequencerChannels })
    } else if (changes.length > 0) await database.together(this.#tenantId, changes)
  }

  #recorded(records: readonly CallRecord[]): void {
    for (const { kind, block } of records) {
      if (block === null) continue
      if (kind === 'begin') block.unrecorded -= 1
      else block.unsettled -= 1
    }
  }

  #conclude({ requests }: Batch, { outcomes, retired }: Decided): void {
    this.#retired.push(...retired)
    for (const [index, pending] of requests.entries()) {
      const outcome = outcomes[index]!
      if (outcome !== null) {
        if (outcome.tag === 'budget_exceeded' && pending.recalls === RECALLS_MAX)
          this.#recallFromMs = this.#needs.clock.monotonicMs() + RECALL_PAUSE_MS
        if (outcome.tag === 'budget_exceeded' && outcome.budget !== undefined)
          this.#needs.onBudgetExceeded?.(outcome.budget.budget)
        pending.resolve(outcome)
      } else this.#decideLater(pending)
    }
  }

  /** Decides a call again when blocks may have given back what they hold. */
  #decideLater(pending: PendingRequest): void {
    pending.recalls += 1
    this.#waitingForRecall += 1
    setTimeout(() => {
      this.#waitingForRecall -= 1
      this.#requests.push(pending)
      this.#run()
    }, RECALL_MS)
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
        mayRecall: false,
      }
      try {
        await writeBatch(this.#needs, this.#tenantId, this.#known, batch)
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

/** True if a block has nothing left to record. */
function isClosable({ isSettled }: Block): boolean {
  return isSettled
}

function countEnds(records: readonly CallRecord[]): number {
  let count = 0
  for (const { kind } of records) if (kind === 'end') count += 1
  return count
}

/** True if nothing has to be read or decided. */
function isRecordOnly({ requests, records, closing }: Batch): boolean {
  if (requests.length > 0 || closing.some(({ limits }) => limits !== null)) return false
  return records.every(
    ({ isRetry, unusedBytes, spends, settles }) =>
      !isRetry && !spends && unusedBytes === 0 && settles === null,
  )
}
