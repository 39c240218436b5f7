/**
 * The books of egress: who may use what, what is left, that it was used, and how it ended. A call is
 * admitted by one transaction that reads what entitles it, takes from its limits and appends the
 * event; nothing about entitlement is remembered, so what was revoked is refused by the next call.
 *
 * Calls of a tenant that come while a transaction of it runs share the next one, and so do the
 * endings: under load a commit serves many calls.
 */
import { setImmediate as turnEnds } from 'node:timers/promises'
import type { Clock } from '../../../../runtime/kernel/clock.js'
import type { Logger } from '../../../../runtime/kernel/log.js'
import type { Random } from '../../../../runtime/kernel/random.js'
import {
  type Asker,
  type AuthorityRef,
  type AuthorityRow,
  bookUses,
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
import { type AskedCall, judgeCall, type Refusal, SPENT } from './rules.js'

const BATCH_MAX = 128
/** An ending waits this long for a call to share its transaction with. */
const ENDING_DELAY_MS = 25
const RETRY_MS = 1_000
/** Endings that wait for a database that is away; the oldest are given up beyond it, and logged. */
const ENDINGS_MAX = 20_000

export type Admission = {
  readonly caller: Caller
  readonly credentialId: string
  readonly call: AskedCall
  readonly requestId: string | undefined
}
export type Admitted = {
  readonly tag: 'admitted'
  readonly facts: CallFacts
  readonly row: HeldCredentialRow
  /** Null: bytes are not limited. */
  readonly budget: { readonly takenBytes: number } | null
  /** Whether the caller's Range is sent on. */
  readonly allowRange: boolean
}
export type Ending = {
  readonly facts: CallFacts
  readonly report: RelayReport
  /** Taken from the budget and not used. */
  readonly leftBytes: number
}

export interface Ledger {
  /** @throws when the database gives no answer. */
  admit(admission: Admission): Promise<Admitted | Refusal>
  /** Takes more bytes for a running call; 0 when there are not as many, or it has ended. */
  more(facts: CallFacts, bytesMin: number, bytesMax: number): Promise<number>
  /** Books the end of a call, soon. */
  close(ending: Ending): void
  /** When everything has been written, or cannot be. */
  settled(): Promise<void>
}

export type LedgerNeeds = {
  readonly database: Database
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
}

type Waiting = {
  readonly admission: Admission
  /** Calls of one caller with one credential are entitled by the same. */
  readonly key: string
  readonly resolve: (outcome: Admitted | Refusal) => void
  readonly reject: (error: unknown) => void
}

/** An end that waits to be booked: known by its event, which is told once. */
type Due = Ending & {
  readonly event: NewEvent
  /** It may be booked already, by a commit that was not answered, or by another process. */
  readonly isRepeated: boolean
}

export function createLedger(needs: LedgerNeeds): Ledger {
  const books = new Map<string, TenantBook>()
  function bookOf(tenantId: string): TenantBook {
    let book = books.get(tenantId)
    if (book === undefined) {
      book = new TenantBook(tenantId, needs, () => void books.delete(tenantId))
      books.set(tenantId, book)
    }
    return book
  }
  return {
    admit: (admission) => bookOf(admission.caller.principal.tenantId).admit(admission),
    more({ caller, authority }, bytesMin, bytesMax) {
      const { tenantId } = caller.principal
      const taking = { requests: 0, bytesMin, bytesMax, now: needs.clock.now() } as const
      return needs.database.tenant(
        tenantId,
        async (tx) => (await takeFromAuthority(tx, tenantId, authority, taking)) ?? 0,
      )
    },
    close: (ending) => bookOf(ending.facts.caller.principal.tenantId).close(ending),
    async settled() {
      await Promise.all([...books.values()].map((book) => book.settled()))
    },
  }
}

class TenantBook {
  readonly #tenantId: string
  readonly #needs: LedgerNeeds
  readonly #emptied: () => void
  #admissions: Waiting[] = []
  #endings: Due[] = []
  #running: Promise<void> | null = null
  #timer: NodeJS.Timeout | undefined
  #failed = false

  constructor(tenantId: string, needs: LedgerNeeds, emptied: () => void) {
    this.#tenantId = tenantId
    this.#needs = needs
    this.#emptied = emptied
  }

  admit(admission: Admission): Promise<Admitted | Refusal> {
    return new Promise((resolve, reject) => {
      this.#admissions.push({ admission, key: keyOf(admission), resolve, reject })
      this.#run()
    })
  }

  close({ facts, report, leftBytes }: Ending): void {
    const event = streamClosed(facts, report, this.#needs.clock.now())
    this.#endings.push({ facts, report, leftBytes, event, isRepeated: false })
    if (this.#endings.length > ENDINGS_MAX) {
      const [lost] = this.#endings.splice(0, 1)
      this.#needs.log.error({ request_id: lost!.facts.requestId }, 'the end of a call is lost')
    }
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined
      this.#run()
    }, ENDING_DELAY_MS)
  }

  async settled(): Promise<void> {
    clearTimeout(this.#timer)
    this.#timer = undefined
    this.#failed = false
    while (this.#pending && !this.#failed) {
      this.#run()
      await this.#running
    }
  }

  get #pending(): boolean {
    return this.#admissions.length > 0 || this.#endings.length > 0
  }

  #run(): void {
    if (this.#running !== null || !this.#pending) return
    this.#running = this.#batch().finally(() => {
      this.#running = null
      if (this.#admissions.length > 0 || this.#endings.length >= BATCH_MAX) this.#run()
      else if (this.#endings.length > 0) {
        this.#timer ??= setTimeout(
          () => {
            this.#timer = undefined
            this.#run()
          },
          this.#failed ? RETRY_MS : ENDING_DELAY_MS,
        )
      } else this.#emptied()
    })
  }

  async #batch(): Promise<void> {
    const { database, log } = this.#needs
    // What comes in this turn of the event loop goes along.
    await turnEnds()
    const admissions = this.#admissions.splice(0, BATCH_MAX)
    const endings = this.#endings.splice(0, BATCH_MAX)
    try {
      const outcomes = await database.tenant(this.#tenantId, (tx) =>
        this.#write(tx, admissions, endings),
      )
      this.#failed = false
      for (const [index, { resolve }] of admissions.entries()) resolve(outcomes[index]!)
    } catch (error) {
      if (endings.length > 0 && !(error instanceof DatabaseUnavailable)) {
        await this.#bookAlone(endings)
        // They go along with others, or fail for a reason of their own.
        this.#admissions.unshift(...admissions)
        return
      }
      for (const { reject } of admissions) reject(error)
      if (endings.length === 0) return
      this.#failed = true
      this.#endings.unshift(...endings.map((ending) => ({ ...ending, isRepeated: true })))
      log.warn({ err: error, calls: endings.length }, 'ends are not booked')
    }
  }

  /**
   * One that cannot be booked must not keep the others, and all calls to come, from it. It may be told
   * already: as that of a lost call, where this process stood still for longer than any call may run.
   */
  async #bookAlone(endings: readonly Due[]): Promise<void> {
    const { database, log } = this.#needs
    for (const ending of endings) {
      const { requestId } = ending.facts
      await database
        .tenant(this.#tenantId, (tx) => this.#write(tx, [], [{ ...ending, isRepeated: true }]))
        .catch((error: unknown) => {
          log.error({ err: error, request_id: requestId }, 'the end of a call is lost')
        })
    }
  }

  async #write(
    tx: Transaction,
    admissions: readonly Waiting[],
    due: readonly Due[],
  ): Promise<(Admitted | Refusal)[]> {
    const tenantId = this.#tenantId
    const now = this.#needs.clock.now()
    const endings = await this.#notBooked(tx, due)
    const events: NewEvent[] = endings.map(({ event }) => event)
    // Locked before their grants are, as a revocation does it: neither waits for the other in turn.
    const touched = [
      ...admissions.map(({ admission }) => admission.credentialId),
      ...endings.flatMap(({ facts, leftBytes }) => (leftBytes > 0 ? facts.credentialId : [])),
    ]
    // Asked for side by side, so that it takes one round trip; what is given back is there for those
    // who are admitted with it.
    const [held, , known] = await Promise.all([
      touched.length === 0 ? [] : holdVaultCredentials(tx, tenantId, [...new Set(touched)]),
      this.#giveBack(tx, endings),
      whatEntitles(tx, tenantId, admissions, now),
    ])
    const rows = new Map(held.map((row) => [row.id, row]))
    const used = new Set<string>()
    const outcomes: (Admitted | Refusal)[] = []
    for (const { admission, key } of admissions) {
      const authorities = known.get(key) ?? []
      const judged = this.#judge(tx, admission, rows.get(admission.credentialId), authorities, now)
      // Nothing is waited for where nothing is limited.
      const outcome = judged instanceof Promise ? await judged : judged
      if (outcome.tag === 'admitted') {
        used.add(admission.credentialId)
        events.push(credentialAccessed(outcome.facts, now))
      }
      outcomes.push(outcome)
    }
    if (used.size > 0) bookUses(tx, tenantId, [...used], now, events)
    else appendEvents(tx, events)
    return outcomes
  }

  async #notBooked(tx: Transaction, due: readonly Due[]): Promise<readonly Due[]> {
    const repeated = due.filter(({ isRepeated }) => isRepeated).map(({ event }) => event.id)
    if (repeated.length === 0) return due
    const told = await toldEvents(tx, this.#tenantId, repeated)
    return due.filter(({ event }) => !told.has(event.id))
  }

  /** What calls left over, in one go for each budget. */
  async #giveBack(tx: Transaction, endings: readonly Ending[]): Promise<void> {
    const left = new Map<string, { authority: AuthorityRef; bytes: number }>()
    for (const { facts, leftBytes } of endings) {
      if (leftBytes === 0) continue
      const { authority } = facts
      const of = left.get(authority.id) ?? { authority, bytes: 0 }
      of.bytes += leftBytes
      left.set(authority.id, of)
    }
    await Promise.all(
      [...left.values()].map(({ authority, bytes }) =>
        returnToAuthority(tx, this.#tenantId, authority, bytes),
      ),
    )
  }

  #judge(
    tx: Transaction,
    admission: Admission,
    row: HeldCredentialRow | undefined,
    authorities: readonly AuthorityRow[],
    now: Date,
  ): Admitted | Refusal | Promise<Admitted | Refusal> {
    const verdict = judgeCall(admission.call, row, authorities, now)
    if (verdict.tag !== 'allowed') return verdict
    const [first] = verdict.authorities
    if (first!.maxRequests === null && first!.maxBytes === null) {
      const facts = this.#factsOf(admission, first!)
      const { allowRange } = first!
      return { tag: 'admitted', facts, row: row!, budget: null, allowRange }
    }
    return this.#judgeLimited(tx, admission, row!, verdict.authorities, now)
  }

  async #judgeLimited(
    tx: Transaction,
    admission: Admission,
    row: HeldCredentialRow,
    authorities: readonly AuthorityRow[],
    now: Date,
  ): Promise<Admitted | Refusal> {
    for (const authority of authorities) {
      const facts = this.#factsOf(admission, authority)
      const { maxRequests, maxBytes, allowRange } = authority
      if (maxRequests === null && maxBytes === null) {
        return { tag: 'admitted', facts, row, budget: null, allowRange }
      }
      const takenBytes = await this.#take(tx, authority, admission.call.bodyBytes, now)
      if (takenBytes === undefined) continue
      // Those admitted with it take their share of what it leaves.
      authority.bytesUsed += takenBytes
      const budget = maxBytes === null ? null : { takenBytes }
      return { tag: 'admitted', facts, row, budget, allowRange }
    }
    return SPENT
  }

  #factsOf(
    { caller, credentialId, call, requestId }: Admission,
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

function keyOf({ credentialId, caller }: Admission): string {
  const { agentId, delegationId } = granteeOf(caller.principal)
  return `${credentialId} ${agentId} ${delegationId}`
}

/** Reads what a batch needs, once for each caller and credential and for all of them at once. */
async function whatEntitles(
  tx: Transaction,
  tenantId: string,
  admissions: readonly Waiting[],
  now: Date,
): Promise<ReadonlyMap<string, readonly AuthorityRow[]>> {
  const askers = new Map<string, Asker>()
  for (const { admission, key } of admissions) {
    if (askers.has(key)) continue
    const { credentialId, caller } = admission
    askers.set(key, { credentialId, ...granteeOf(caller.principal) })
  }
  if (askers.size === 0) return new Map()
  const found = await findEgressAuthorities(tx, tenantId, [...askers.values()], now)
  return new Map([...askers.keys()].map((key, at) => [key, found[at]!] as const))
}
