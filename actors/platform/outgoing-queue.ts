/**
 * Delivers what is due in a table to addresses of tenants: logout tokens and security events. What is due goes after the answer
 * of the receiver: a killed process leads to a repetition, never to a loss. Any number of processes can run a queue.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Lifecycle } from '../../runtime/kernel/actor.js'
import type { Clock } from '../../runtime/kernel/clock.js'
import { FairShare, isRefused, type ShareCounts } from '../../runtime/kernel/fairness/fair-share.js'
import type { OpenDatabase } from '../../storage/platform/database.js'
import type { ClaimRoom, TenantKind } from '../../storage/platform/in-force.js'
import type { Transaction } from '../../storage/platform/sql.js'
import { WakeSignal } from './batching/wake-signal.js'
import { claimable, groupsOf } from './tenant-groups.js'

/** Deliveries of one process at the same time, and of one tenant. */
const SENDING_MAX = 128
const PER_TENANT_MAX = 16
/** Deliveries of tenants without one that take the place of another tenant's. */
const FIRST_MAX = 8
const EXCHANGE_MS_MAX = 10_000
/** An attempt that gave its place up is due again after this time. */
export const POSTPONED_SECS = 1
/** Longer than an attempt may take: afterwards another process sends again. */
export const LEASE_SECS = 20
const MISHAP_MS = 1_000

type DueOfTenant = TenantKind & { readonly tenantId: string }

/** What a queue delivers, and how. */
export type OutgoingWork<Due extends DueOfTenant, Answer> = {
  /** In logs, and the name of the loop: `logouts`. */
  readonly name: string
  /** Value of the label `resource` of `svc_share_refused_total`. */
  readonly resource: string
  /** Notifies of what is due. */
  readonly channel: string
  /** What shares the part of its tenant. */
  readonly level: { readonly name: string; readonly max: number }
  readonly levelKeyOf: (due: Due) => string
  /** What is done during the deliveries, once in `pollMs`. @returns whether there is more to do. */
  readonly prepare: () => Promise<boolean>
  /** Notifies of what is prepared: it is done then too, at most once in `spacingMs`, and in half of the time. */
  readonly preparesAt?: { readonly channel: string; readonly spacingMs: number }
  /** Wake signals can be lost, so the table is also read at this interval. */
  readonly pollMs: number
  /** Crosses tenants. @param held what this process delivers now. */
  readonly claim: (
    tx: Transaction,
    room: ClaimRoom,
    held: readonly Due[],
  ) => Promise<readonly Due[]>
  /** Milliseconds until something is due, at most `withinMs`. Crosses tenants. */
  readonly nextMs: (tx: Transaction, withinMs: number) => Promise<number>
  /** @returns undefined when there is nothing to record. */
  readonly deliver: (due: Due, signal: AbortSignal) => Promise<Answer | undefined>
  readonly record: (due: Due, answer: Answer) => Promise<void>
  /** The attempt gave its place to another tenant. It counts as none. */
  readonly postpone: (due: Due) => Promise<unknown>
  readonly close: () => Promise<void>
}

export type OutgoingNeeds = {
  readonly database: Pick<OpenDatabase, 'system' | 'tenant' | 'listener'>
  readonly clock: Clock
  readonly shares?: ShareCounts | undefined
  /** Receives a promise of the run, which a stop waits for. */
  readonly settled: (run: Promise<void>) => void
}

/** Delivers until the signal is aborted. */
export function deliverOutgoing<Due extends DueOfTenant, Answer>(
  work: OutgoingWork<Due, Answer>,
  needs: OutgoingNeeds,
  lifecycle: Lifecycle,
): Promise<void> {
  const run = new OutgoingQueue(work, needs, lifecycle).run()
  needs.settled(run.catch(() => undefined))
  return run
}

class OutgoingQueue<Due extends DueOfTenant, Answer> {
  readonly #work: OutgoingWork<Due, Answer>
  readonly #needs: OutgoingNeeds
  readonly #lifecycle: Lifecycle
  readonly #wake = new WakeSignal()
  readonly #sending = new Map<Due, Promise<void>>()
  readonly #places: FairShare

  constructor(work: OutgoingWork<Due, Answer>, needs: OutgoingNeeds, lifecycle: Lifecycle) {
    this.#work = work
    this.#needs = needs
    this.#lifecycle = lifecycle
    this.#places = new FairShare({
      resource: work.resource,
      total: SENDING_MAX,
      levels: [{ name: 'tenant', max: PER_TENANT_MAX }, work.level],
      counts: needs.shares,
    })
  }

  async run(): Promise<void> {
    const { name, channel, preparesAt, close } = this.#work
    const prepared = new WakeSignal()
    const leave = [await this.#listen(channel, this.#wake)]
    if (preparesAt !== undefined) leave.push(await this.#listen(preparesAt.channel, prepared))
    // A delivery does not wait for what is prepared.
    await Promise.all([
      this.#repeat(name, () => this.#round()),
      this.#repeat(`${name}_prepared`, () => this.#prepare(prepared)),
    ])
    for (const end of leave) end()
    await close()
    await Promise.all(this.#sending.values())
  }

  #listen(channel: string, signal: WakeSignal): Promise<() => void> {
    const wake = () => signal.wake()
    this.#lifecycle.signal.addEventListener('abort', wake, { once: true })
    return this.#needs.database.listener
      .listen(channel, { notified: wake, caughtUp: wake })
      .catch(() => () => undefined)
  }

  async #repeat(name: string, round: () => Promise<void>): Promise<void> {
    const { signal, log, loop } = this.#lifecycle
    const rounds = loop(name)
    while (!signal.aborted) {
      try {
        await round()
        rounds.succeeded()
      } catch (error) {
        if (signal.aborted) break
        rounds.failed()
        log.warn({ err: error }, `${name}: round failed, retrying`)
        await sleep(MISHAP_MS, undefined, { signal }).catch(() => undefined)
      }
    }
  }

  async #prepare(prepared: WakeSignal): Promise<void> {
    const { prepare, pollMs, preparesAt: { spacingMs } = { spacingMs: pollMs } } = this.#work
    const beganMs = this.#needs.clock.monotonicMs()
    const isMore = await prepare()
    const tookMs = this.#needs.clock.monotonicMs() - beganMs
    const { signal } = this.#lifecycle
    await sleep(Math.max(spacingMs, tookMs), undefined, { signal }).catch(() => undefined)
    if (!isMore) await prepared.wait(pollMs - spacingMs)
  }

  async #round(): Promise<void> {
    const { database } = this.#needs
    const { pollMs, claim, nextMs: nextMsOf } = this.#work
    const held = [...this.#sending.keys()]
    const room = this.#room(held)
    const { due, nextMs } = await database.system(async (tx) => {
      const due = await claim(tx, room, held)
      return { due, nextMs: due.length > 0 ? 0 : await nextMsOf(tx, pollMs) }
    })
    for (const one of due) this.#begin(one)
    // What waits for a place is looked for again when an attempt ends.
    if (due.length === 0) await this.#wake.wait(nextMs)
  }

  #room(held: readonly Due[]): ClaimRoom {
    const counts = new Map<string, number>()
    for (const { tenantId } of held) counts.set(tenantId, (counts.get(tenantId) ?? 0) + 1)
    return {
      ...claimable(this.#places, SENDING_MAX - this.#places.inUse),
      perTenantMax: PER_TENANT_MAX,
      firstMax: FIRST_MAX,
      held: counts,
    }
  }

  #begin(due: Due): void {
    const { log, signal } = this.#lifecycle
    const { name, levelKeyOf, deliver, record, postpone } = this.#work
    const attempt = new AbortController()
    let isGivenUp = false
    const giveUp = () => {
      isGivenUp = true
      attempt.abort()
      return true
    }
    const keys = [due.tenantId, levelKeyOf(due)]
    const place = this.#places.tryAcquire(keys, 1, { groups: groupsOf(due), giveUp })
    const timer = setTimeout(() => attempt.abort(), EXCHANGE_MS_MAX)
    const run = (isRefused(place) ? postpone(due) : delivered())
      .catch((error: unknown) => {
        // It is due again after its lease.
        if (!signal.aborted) log.warn({ err: error }, `${name}: an attempt was not recorded`)
      })
      .finally(() => {
        clearTimeout(timer)
        if (!isRefused(place)) place()
        this.#sending.delete(due)
        this.#wake.wake()
      })
      .then(() => undefined)
    this.#sending.set(due, run)

    async function delivered(): Promise<unknown> {
      const answer = await deliver(due, attempt.signal)
      if (answer === undefined) return undefined
      return isGivenUp ? postpone(due) : record(due, answer)
    }
  }
}
