/**
 * Tells applications that a session of theirs has ended (docs/guides/identity/sign-out.md). The end of a session made the
 * logouts due in its transaction, and a logout goes after the answer of the application: a killed process leads to a
 * repetition, never to a loss. Any number of processes can run the worker.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Registry } from 'prom-client'
import type { ActorRef, Lifecycle } from '../../../runtime/kernel/actor.js'
import type { Clock } from '../../../runtime/kernel/clock.js'
import type { Random } from '../../../runtime/kernel/random.js'
import {
  FairShare,
  isRefused,
  type ShareCounts,
} from '../../../runtime/kernel/fairness/fair-share.js'
import { defineWorker } from '../../../runtime/kernel/worker.js'
import {
  claimLogouts,
  type DueLogout,
  endTimedOut,
  type LogoutRoom,
  nextLogoutMs,
  postponeLogout,
  retryLogout,
  settleLogout,
} from '../../../storage/oauth/logouts.js'
import type { OpenDatabase } from '../../../storage/platform/database.js'
import { LOGOUTS_CHANNEL } from '../../../storage/platform/ends/table.js'
import { appendEvents } from '../../../storage/platform/outbox.js'
import { catalogued } from '../../domain/events.js'
import { LOGOUT_TOKEN_TYPE } from '../../domain/oauth/logout-tokens.js'
import { WakeSignal } from '../../platform/batching/wake-signal.js'
import { counter, histogram } from '../../platform/metrics.js'
import { claimable, groupsOf } from '../../platform/tenant-groups.js'
import { type SigningKeysProtocol, signingKeys } from '../signing-keys/protocol.js'
import { logoutClaims } from './logout-token.js'
import type { LogoutAnswer, LogoutSender } from './sender.js'
import type { LogoutSettings } from './settings.js'

/** Logouts that one process delivers at the same time. */
const SENDING_MAX = 128
const PER_TENANT_MAX = 16
const PER_APPLICATION_MAX = 8
/** Logouts of tenants without one that take the place of another tenant's. */
const FIRST_MAX = 8
const EXCHANGE_MS_MAX = 10_000
/** An attempt that gave its place up is due again after this time. */
const POSTPONED_SECS = 1
/** Longer than an attempt may take: afterwards another process sends again. */
const LEASE_SECS = 20
const POLL_MS_MAX = 5_000
const MISHAP_MS = 1_000
/** Sessions that may have timed out, looked at in one transaction. */
const LOOKED_AT_MAX = 200

type LogoutNeeds = {
  readonly database: Pick<OpenDatabase, 'system' | 'tenant' | 'listener'>
  readonly keys: ActorRef<SigningKeysProtocol>
  readonly clock: Clock
  readonly random: Random
  readonly registry: Registry
  readonly sender: LogoutSender
  readonly issuer: string
  readonly settings: LogoutSettings
  readonly shares?: ShareCounts | undefined
  /** Receives a promise of the run, which a stop waits for. */
  readonly settled: (run: Promise<void>) => void
}

export const logoutWorker = defineWorker<LogoutNeeds>({
  name: 'logouts',
  asks: { keys: signingKeys },
  run(needs, lifecycle) {
    const run = new Deliveries(needs, lifecycle).run()
    needs.settled(run.catch(() => undefined))
    return run
  },
})

class Deliveries {
  readonly #needs: LogoutNeeds
  readonly #lifecycle: Lifecycle
  readonly #metrics: ReturnType<typeof logoutMetrics>
  readonly #wake = new WakeSignal()
  readonly #sending = new Map<DueLogout, Promise<void>>()
  readonly #places: FairShare
  #lookedMs = Number.NEGATIVE_INFINITY

  constructor(needs: LogoutNeeds, lifecycle: Lifecycle) {
    this.#needs = needs
    this.#lifecycle = lifecycle
    this.#metrics = logoutMetrics(needs.registry)
    this.#places = new FairShare({
      resource: 'logout_tokens',
      total: SENDING_MAX,
      levels: [
        { name: 'tenant', max: PER_TENANT_MAX },
        { name: 'application', max: PER_APPLICATION_MAX },
      ],
      counts: needs.shares,
    })
  }

  async run(): Promise<void> {
    const { signal, log, loop } = this.#lifecycle
    const rounds = loop('logouts')
    const wake = () => this.#wake.wake()
    signal.addEventListener('abort', wake, { once: true })
    const leave = await this.#needs.database.listener
      .listen(LOGOUTS_CHANNEL, { notified: wake, caughtUp: wake })
      .catch(() => () => undefined)
    while (!signal.aborted) {
      try {
        await this.#round()
        rounds.succeeded()
      } catch (error) {
        if (signal.aborted) break
        rounds.failed()
        log.warn({ err: error }, 'logout: round failed, retrying')
        await sleep(MISHAP_MS, undefined, { signal }).catch(() => undefined)
      }
    }
    leave()
    await this.#needs.sender.close()
    await Promise.all(this.#sending.values())
  }

  async #round(): Promise<void> {
    const { database, clock } = this.#needs
    if (clock.monotonicMs() - this.#lookedMs >= POLL_MS_MAX) {
      let looked: number
      do looked = await this.#lookForTimedOut()
      while (looked === LOOKED_AT_MAX)
      this.#lookedMs = clock.monotonicMs()
    }
    const room = this.#room()
    const { due, nextMs } = await database.system(async (tx) => {
      const due = await claimLogouts(tx, room, LEASE_SECS)
      return { due, nextMs: due.length > 0 ? 0 : await nextLogoutMs(tx, POLL_MS_MAX) }
    })
    for (const one of due) this.#begin(one)
    // What waits for a place is looked for again when an attempt ends.
    if (due.length === 0) await this.#wake.wait(nextMs)
  }

  #lookForTimedOut(): Promise<number> {
    const { database, clock } = this.#needs
    return database.system((tx) => endTimedOut(tx, clock.now(), LOOKED_AT_MAX))
  }

  #room(): LogoutRoom {
    const held = [...this.#sending.keys()]
    return {
      ...claimable(this.#places, SENDING_MAX - this.#places.inUse),
      perTenantMax: PER_TENANT_MAX,
      perApplicationMax: PER_APPLICATION_MAX,
      firstMax: FIRST_MAX,
      held: countedBy(held, 'tenantId'),
      heldOfApplications: countedBy(held, 'applicationId'),
    }
  }

  #begin(due: DueLogout): void {
    const { log, signal } = this.#lifecycle
    const attempt = new AbortController()
    let isGivenUp = false
    const giveUp = () => {
      isGivenUp = true
      attempt.abort()
      return true
    }
    const keys = [due.tenantId, due.applicationId]
    const place = this.#places.tryAcquire(keys, 1, { groups: groupsOf(due), giveUp })
    const timer = setTimeout(() => attempt.abort(), EXCHANGE_MS_MAX)
    const run = (isRefused(place) ? this.#postpone(due) : this.#deliver(due, attempt.signal))
      .then((answer) => answer && (isGivenUp ? this.#postpone(due) : this.#record(due, answer)))
      .catch((error: unknown) => {
        // It is due again after its lease.
        if (!signal.aborted) log.warn({ err: error }, 'logout: an attempt was not recorded')
      })
      .finally(() => {
        clearTimeout(timer)
        if (!isRefused(place)) place()
        this.#sending.delete(due)
        this.#wake.wake()
      })
    this.#sending.set(due, run)
  }

  async #postpone(due: DueLogout): Promise<undefined> {
    await this.#needs.database.tenant(due.tenantId, (tx) => postponeLogout(tx, due, POSTPONED_SECS))
    return undefined
  }

  /** @returns what the application answered. Undefined: there is nothing to record. */
  async #deliver(due: DueLogout, signal: AbortSignal): Promise<LogoutAnswer | undefined> {
    const { database, clock, keys, random, sender, issuer } = this.#needs
    const { tenantId, clientId, uri, subject, sessionId, algorithm } = due
    if (clientId === null || uri === null) {
      await database.tenant(tenantId, (tx) => settleLogout(tx, due))
      return undefined
    }
    const now = clock.now()
    const facts = { issuer, clientId, subject, sessionId, tokenId: random.uuid(), now }
    const claims = JSON.stringify(logoutClaims(facts))
    const signed = await keys.sign({ typ: LOGOUT_TOKEN_TYPE, claims, algorithm })
    if (signed.tag !== 'signed') throw new Error('no signing key is available')
    const answer = await sender.send(tenantId, uri, signed.token, signal)
    return this.#lifecycle.signal.aborted && answer.status === null ? undefined : answer
  }

  async #record(due: DueLogout, { status, error }: LogoutAnswer): Promise<void> {
    const { database, clock, settings } = this.#needs
    const { delivered, attempts } = this.#metrics
    const done = due.attempts + 1
    const waitSecs = settings.retry_schedule_secs[done]
    if (error !== null && !isFinal(error) && waitSecs !== undefined) {
      await database.tenant(due.tenantId, (tx) => retryLogout(tx, due, waitSecs))
      attempts.inc({ outcome: 'retrying' })
      return
    }
    await database.tenant(due.tenantId, async (tx) => {
      if (!(await settleLogout(tx, due)) || error === null) return
      appendEvents(tx, [this.#undelivered(due, done, status, error)])
    })
    attempts.inc({ outcome: error === null ? 'delivered' : 'undelivered' })
    if (error === null)
      delivered.observe(Math.max(0, clock.now().getTime() - due.endedAt.getTime()) / 1000)
  }

  #undelivered(
    { tenantId, sessionId, subject, clientId }: DueLogout,
    attempts: number,
    status: number | null,
    error: string,
  ) {
    const { random, clock } = this.#needs
    const about = {
      actor: { type: 'service', id: 'logout' },
      resource: { type: 'session', id: sessionId },
      requestId: undefined,
    }
    return {
      id: random.uuid(),
      tenantId,
      occurredAt: clock.now(),
      ...catalogued('session.logout.undelivered', about, {
        client_id: clientId!,
        sub: subject,
        attempts,
        ...(status === null ? {} : { status }),
        error,
      }),
    }
  }
}

/** The application refuses, or its URI cannot be called. */
const isFinal = (error: string): boolean => error === 'refused' || error.startsWith('url_')

function countedBy(
  held: readonly DueLogout[],
  by: 'tenantId' | 'applicationId',
): ReadonlyMap<string, number> {
  const counts = new Map<string, number>()
  for (const one of held) counts.set(one[by], (counts.get(one[by]) ?? 0) + 1)
  return counts
}

function logoutMetrics(registry: Registry) {
  return {
    attempts: counter(
      registry,
      'svc_logout_attempts_total',
      'Attempts to tell applications of the end of a session, by outcome.',
      ['outcome'],
    ),
    delivered: histogram(
      registry,
      'svc_logout_delivery_seconds',
      'Time from the end of a session until the application has answered.',
      [0.05, 0.1, 0.25, 0.5, 1, 2.5, 10, 60, 1_000],
    ),
  }
}
