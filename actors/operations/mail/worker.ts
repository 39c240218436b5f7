/**
 * Sends queued mail. All state is in the database: when a process dies its leases expire, and
 * another process takes its messages over. A message may therefore arrive twice, with the same
 * Message-ID. It is never lost while its link or code is valid.
 */
import type { Lifecycle } from '../../../runtime/kernel/actor.js'
import {
  FairShare,
  isRefused,
  type ShareCounts,
} from '../../../runtime/kernel/fairness/fair-share.js'
import type { Logger } from '../../../runtime/kernel/log.js'
import type { Loop } from '../../../runtime/kernel/loops.js'
import type { Random } from '../../../runtime/kernel/random.js'
import { defineWorker } from '../../../runtime/kernel/worker.js'
import type { Listener } from '../../../storage/platform/listen.js'
import {
  type ClaimedMail,
  claimMail,
  finishMail,
  MAIL_CHANNEL,
  mailContext,
  nextMailMs,
  postponeMail,
  renewMail,
} from '../../../storage/operations/outgoing-mail.js'
import type { Sealer } from '../../../storage/platform/sealing/sealer.js'
import type { Database } from '../../../storage/platform/sql.js'
import { UNWOKEN_MS_MAX, WakeSignal } from '../../platform/batching/wake-signal.js'
import { claimable, groupsOf } from '../../platform/tenant-groups.js'
import type { Mailer, SendResult } from './client.js'
import type { MailMessage } from '../../platform/mail/render.js'
import type { MailOutcomes } from './metrics.js'

/** Messages sent concurrently, in total and per tenant. */
const SENDING_MAX = 16
const SENDING_PER_TENANT_MAX = 4
/** After this time the messages of a dead process are free. */
const LEASE_SECS = 15
const RENEW_MS = 5_000
const MISHAP_MS = 1_000

type MailRunnerNeeds = {
  readonly database: Pick<Database, 'system' | 'tenant'>
  readonly listener: Listener
  readonly sealer: Sealer
  readonly mailer: Mailer
  readonly random: Random
  readonly outcomes: MailOutcomes
  /** `email.retry_schedule_secs`: waits between attempts. */
  readonly schedule: readonly number[]
  readonly shares: ShareCounts
}

export const mailWorker = defineWorker<{ readonly runner: MailRunner }>({
  name: 'notify',
  asks: {},
  run: ({ runner }, lifecycle) => runner.run(lifecycle),
})

export interface MailRunner {
  /** Sends until the signal is aborted, and then finishes the messages that are being sent. */
  run(lifecycle: Pick<Lifecycle, 'signal' | 'log' | 'loop'>): Promise<void>
  /** Resolves when every run has ended. */
  settled(): Promise<void>
}

export function createMailRunner(needs: MailRunnerNeeds): MailRunner {
  let running: Promise<void> = Promise.resolve()
  return {
    run({ signal, log, loop }) {
      const run = running.then(() => new MailLoop(needs, signal, log, loop('queue')).work())
      running = run.catch(() => undefined)
      return run
    },
    settled: () => running,
  }
}

/** The loop of a worker, from start to stop. */
class MailLoop {
  readonly #needs: MailRunnerNeeds
  readonly #signal: AbortSignal
  readonly #log: Logger
  readonly #loop: Loop
  readonly #lease: string
  readonly #wakeSignal = new WakeSignal()
  readonly #inProgress = new Set<Promise<void>>()
  /** Number of messages in progress, by tenant. */
  readonly #tenants = new Map<string, number>()
  readonly #places: FairShare

  constructor(needs: MailRunnerNeeds, signal: AbortSignal, log: Logger, loop: Loop) {
    this.#needs = needs
    this.#places = new FairShare({
      resource: 'mail_sending',
      total: SENDING_MAX,
      levels: [{ name: 'tenant', max: SENDING_PER_TENANT_MAX }],
      counts: needs.shares,
    })
    this.#signal = signal
    this.#log = log
    this.#loop = loop
    this.#lease = needs.random.uuid()
  }

  async work(): Promise<void> {
    const ring = () => this.#wakeSignal.wake()
    this.#signal.addEventListener('abort', ring, { once: true })
    const renewal = setInterval(() => void this.#renew(), RENEW_MS)
    let leave = () => {}
    try {
      leave = await this.#needs.listener.listen(MAIL_CHANNEL, { notified: ring, caughtUp: ring })
    } catch (error) {
      this.#log.warn({ err: error }, 'mail: wake signals unavailable, polling every 5 seconds')
    }
    while (!this.#signal.aborted) {
      try {
        await this.#round()
        this.#loop.succeeded()
      } catch (error) {
        if (this.#signal.aborted) break
        this.#loop.failed()
        this.#log.warn({ err: error }, 'mail: round failed, retrying')
        await new Promise((resolve) => setTimeout(resolve, MISHAP_MS))
      }
    }
    await Promise.all(this.#inProgress)
    clearInterval(renewal)
    leave()
  }

  async #round(): Promise<void> {
    const { database } = this.#needs
    const free = SENDING_MAX - this.#places.inUse
    if (free === 0) return this.#wakeSignal.wait(UNWOKEN_MS_MAX)
    const { limit, full } = claimable(this.#places, free)
    // No message is taken back: it might be sent twice.
    const bounds = { perTenantMax: SENDING_PER_TENANT_MAX, firstMax: 0 }
    const room = { limit, full, held: this.#held(), ...bounds }
    // Crosses tenants: one worker sends for all of them.
    const { claimed, nextMs } = await database.system(async (tx) => {
      const claimed = await claimMail(tx, this.#lease, room, LEASE_SECS)
      // A tenant at its share is checked again when one of its messages ends, which wakes the loop.
      const without = this.#full(claimed)
      const isAll = claimed.length < limit
      const nextMs = isAll ? await nextMailMs(tx, UNWOKEN_MS_MAX, without, full) : 0
      return { claimed, nextMs }
    })
    for (const mail of claimed) this.#begin(mail)
    if (claimed.length < limit) await this.#wakeSignal.wait(nextMs)
  }

  #begin(mail: ClaimedMail): void {
    const { tenantId, id } = mail
    const place = this.#places.tryAcquire([tenantId], 1, { groups: groupsOf(mail) })
    // The claim respected the limits, and no other code acquires from this share.
    if (isRefused(place)) throw new Error('a message was claimed beyond the share of its tenant')
    const done = this.#send(mail)
      // The lease expires.
      .catch((error: unknown) => {
        this.#log.warn({ err: error, mailId: id }, 'mail: outcome not stored')
      })
      .finally(() => {
        place()
        this.#inProgress.delete(done)
        const remaining = this.#places.usedBy(0, tenantId)
        if (remaining === 0) this.#tenants.delete(tenantId)
        else this.#tenants.set(tenantId, remaining)
        this.#wakeSignal.wake()
      })
    this.#inProgress.add(done)
    this.#tenants.set(tenantId, this.#places.usedBy(0, tenantId))
  }

  /** Number of messages in progress, by tenant. */
  #held(): Map<string, number> {
    return new Map(this.#tenants)
  }

  /** Tenants whose share is full once these messages are in progress. */
  #full(more: readonly ClaimedMail[]): string[] {
    const counts = this.#held()
    for (const { tenantId } of more) counts.set(tenantId, (counts.get(tenantId) ?? 0) + 1)
    return [...counts]
      .filter(([, count]) => count >= SENDING_PER_TENANT_MAX)
      .map(([tenantId]) => tenantId)
  }

  async #renew(): Promise<void> {
    if (this.#inProgress.size === 0) return
    try {
      await this.#needs.database.system((tx) => renewMail(tx, this.#lease, LEASE_SECS))
    } catch (error) {
      this.#log.warn({ err: error }, 'mail: lease renewal failed')
    }
  }

  async #send(mail: ClaimedMail): Promise<void> {
    const { database, mailer, outcomes } = this.#needs
    const { tenantId, id, kind } = mail
    const about = { tenantId, mailId: id, kind, attempt: mail.attempts }
    const finish = (status: 'sent' | 'failed' | 'expired', error: string | null) =>
      database.tenant(tenantId, (tx) => finishMail(tx, mail, this.#lease, status, error))
    if (mail.expired) {
      await finish('expired', 'expired')
      outcomes.count(kind, 'expired')
      this.#log.warn(about, 'mail: message expired before it was sent')
      return
    }
    const posted = await this.#post(mail, mailer)
    if (posted.tag === 'sent') {
      await finish('sent', null)
      outcomes.count(kind, 'sent')
      this.#log.info(about, 'mail: message sent')
      return
    }
    const { error } = posted
    const waitSecs = posted.tag === 'later' ? this.#needs.schedule[mail.attempts - 1] : undefined
    if (waitSecs === undefined) {
      await finish('failed', error)
      outcomes.count(kind, 'failed')
      this.#log.warn({ ...about, error }, 'mail: message failed')
      return
    }
    await database.tenant(tenantId, (tx) => postponeMail(tx, mail, this.#lease, waitSecs, error))
    outcomes.count(kind, 'postponed')
    this.#log.warn({ ...about, error, waitSecs }, 'mail: attempt failed, retrying later')
  }

  async #post({ tenantId, id, letterSealed }: ClaimedMail, mailer: Mailer): Promise<SendResult> {
    let message: MailMessage
    try {
      const bytes = await this.#needs.sealer.open(tenantId, mailContext(id), letterSealed)
      message = JSON.parse(new TextDecoder().decode(bytes)) as MailMessage
    } catch (error) {
      this.#log.error({ err: error, mailId: id }, 'mail: message cannot be decrypted')
      return { tag: 'later', error: 'sealed' }
    }
    return mailer.post(id, message)
  }
}
