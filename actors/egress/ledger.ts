/**
 * The books of egress: who may use what, what is left, that it was used, and how it ended. A call is
 * admitted by one transaction that reads what entitles it, takes from its limits and appends the
 * event; nothing about entitlement is remembered, so what was revoked is refused by the next call.
 *
 * Calls of a tenant that come while a transaction of it runs share the next one, and so do the
 * endings: under load a commit serves many calls.
 */
import type { Clock } from '../../runtime/kernel/clock.js'
import type { Logger } from '../../runtime/kernel/log.js'
import type { Random } from '../../runtime/kernel/random.js'
import {
  type AuthorityRow,
  findEgressAuthorities,
  returnToAuthority,
  takeFromAuthority,
} from '../../storage/egress-authorities.js'
import { appendEvents, type NewEvent } from '../../storage/outbox.js'
import type { Database, Transaction } from '../../storage/sql.js'
import {
  type Grantee,
  holdVaultCredentials,
  type SecretCredentialRow,
  touchVaultCredentials,
} from '../../storage/vault-credentials.js'
import type { Caller } from '../domain/audit.js'
import { type CallFacts, credentialAccessed, streamClosed } from './events.js'
import { granteeOf } from '../domain/grantee.js'
import type { RelayReport } from './protocol.js'
import { PORTION_BYTES, PORTION_BYTES_MIN } from './purse.js'
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
  readonly row: SecretCredentialRow
  /** Null: bytes are not limited. */
  readonly budget: { readonly takenBytes: number } | null
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

type Waiting = Admission & {
  readonly resolve: (outcome: Admitted | Refusal) => void
  readonly reject: (error: unknown) => void
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
  #endings: Ending[] = []
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
      this.#admissions.push({ ...admission, resolve, reject })
      this.#run()
    })
  }

  close(ending: Ending): void {
    this.#endings.push(ending)
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
    const admissions = this.#admissions.splice(0, BATCH_MAX)
    const endings = this.#endings.splice(0, BATCH_MAX)
    try {
      const outcomes = await database.tenant(this.#tenantId, (tx) =>
        this.#write(tx, admissions, endings),
      )
      this.#failed = false
      for (const [index, { resolve }] of admissions.entries()) resolve(outcomes[index]!)
    } catch (error) {
      this.#failed = true
      this.#endings.unshift(...endings)
      if (endings.length > 0) log.warn({ err: error, calls: endings.length }, 'ends are not booked')
      for (const { reject } of admissions) reject(error)
    }
  }

  async #write(
    tx: Transaction,
    admissions: readonly Waiting[],
    endings: readonly Ending[],
  ): Promise<(Admitted | Refusal)[]> {
    const { clock, random } = this.#needs
    const tenantId = this.#tenantId
    const now = clock.now()
    const events: NewEvent[] = []
    // Locked before their grants are, as a revocation does it: neither waits for the other in turn.
    const touched = [
      ...admissions.map(({ credentialId }) => credentialId),
      ...endings.flatMap(({ facts, leftBytes }) => (leftBytes > 0 ? facts.credentialId : [])),
    ]
    const held =
      touched.length === 0 ? [] : await holdVaultCredentials(tx, tenantId, [...new Set(touched)])
    for (const { facts, report, leftBytes } of endings) {
      if (leftBytes > 0) await returnToAuthority(tx, tenantId, facts.authority, leftBytes)
      events.push(streamClosed(facts, report, random, now))
    }
    const read = reader(tx, tenantId, held)
    const used = new Set<string>()
    const outcomes: (Admitted | Refusal)[] = []
    for (const admission of admissions) {
      const outcome = await this.#judge(tx, admission, read, now)
      if (outcome.tag === 'admitted') {
        used.add(admission.credentialId)
        events.push(credentialAccessed(outcome.facts, random, now))
      }
      outcomes.push(outcome)
    }
    if (used.size > 0) await touchVaultCredentials(tx, tenantId, [...used].sort(), now)
    await appendEvents(tx, events)
    return outcomes
  }

  async #judge(
    tx: Transaction,
    { caller, credentialId, call, requestId }: Admission,
    read: Reader,
    now: Date,
  ): Promise<Admitted | Refusal> {
    const { row, authorities } = await read(credentialId, granteeOf(caller.principal))
    const verdict = judgeCall(call, row, authorities, now)
    if (verdict.tag !== 'allowed') return verdict
    const { method, url, bodyBytes } = call
    for (const authority of verdict.authorities) {
      const facts: CallFacts = {
        caller,
        credentialId,
        authority: { kind: authority.kind, id: authority.id },
        host: url.hostname,
        method,
        requestId,
      }
      const { maxRequests, maxBytes } = authority
      if (maxRequests === null && maxBytes === null) {
        return { tag: 'admitted', facts, row: row!, budget: null }
      }
      const takenBytes = await this.#take(tx, authority, bodyBytes, now)
      if (takenBytes === undefined) continue
      const budget = maxBytes === null ? null : { takenBytes }
      return { tag: 'admitted', facts, row: row!, budget }
    }
    return SPENT
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

type Found = { row: SecretCredentialRow | undefined; authorities: readonly AuthorityRow[] }
type Reader = (credentialId: string, grantee: Grantee) => Promise<Found>

/** What a batch has read, so that calls of one caller with one credential read it once. */
function reader(tx: Transaction, tenantId: string, held: readonly SecretCredentialRow[]): Reader {
  const rows = new Map(held.map((row) => [row.id, row]))
  const known = new Map<string, Promise<Found>>()
  return (credentialId, grantee) => {
    const row = rows.get(credentialId)
    if (row === undefined) return Promise.resolve({ row, authorities: [] })
    const key = `${credentialId} ${grantee.agentId} ${grantee.delegationId}`
    let found = known.get(key)
    if (found === undefined) {
      found = findEgressAuthorities(tx, tenantId, credentialId, grantee).then((authorities) => ({
        row,
        authorities,
      }))
      known.set(key, found)
    }
    return found
  }
}
