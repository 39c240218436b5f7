/**
 * Sends what the outbox tells of. Two loops: one turns events into deliveries, the other leases
 * lanes that have something due and runs them. Everything that matters is in the database: a worker
 * that dies loses its leases after a few seconds, and whoever takes them goes on.
 */
import { setMaxListeners } from 'node:events'
import type { Lifecycle } from '../../../runtime/kernel/actor.js'
import type { Clock } from '../../../runtime/kernel/clock.js'
import {
  FairShare,
  isRefused,
  type ShareCounts,
} from '../../../runtime/kernel/fairness/fair-share.js'
import type { Logger } from '../../../runtime/kernel/log.js'
import type { Random } from '../../../runtime/kernel/random.js'
import {
  type AttemptRecord,
  cancelDeliveries,
  type DueDelivery,
  dueDeliveries,
  recordAttempts,
} from '../../../storage/webhooks/deliveries.js'
import type { Listener } from '../../../storage/platform/listen.js'
import { EVENTS_CHANNEL } from '../../../storage/platform/outbox.js'
import type { Sealer } from '../../../storage/platform/sealing/sealer.js'
import type { Database, Transaction } from '../../../storage/platform/sql.js'
import {
  claimLanes,
  type ClaimedLane,
  DELIVERIES_CHANNEL,
  type LaneKey,
  type LaneRelease,
  type LaneRoom,
  nextLaneMs,
  releaseLanes,
  renewLanes,
  wakeAndClaimLanes,
} from '../../../storage/webhooks/webhook-lanes.js'
import {
  deactivateWebhook,
  type WebhookTarget,
  webhookSecretContext,
  webhookTargets,
} from '../../../storage/webhooks/webhooks.js'
import { inBatches } from './batches.js'
import { Bell } from '../../platform/batching/wake-signal.js'
import { FAN_OUT_BATCH, fanOut } from './fan-out.js'
import { INACTIVE, Lane, type LaneKeeper, PAUSED, type Target } from './lane.js'
import type { DeliveryOutcomes } from './metrics.js'
import type { Sender } from './sender.js'

/** Receivers served side by side. One holds its place for a turn (lane.ts), and rests where it is slow. */
const LANES_MAX = 512
const CLAIM_MAX = 64
/** In `svc_share_refused_total`. */
const RESOURCE = 'webhook_lanes'
const DUE_EACH = 32
const LEASE_SECS = 6
const RENEW_MS = 2_000
/** Wake-ups may be lost: look without one. */
const LOOK_MS_MAX = 1_000
const MISHAP_MS = 1_000
/** Attempts that still run when the worker stops are given up after this. */
const GRACE_MS = 5_000

export type WorkerNeeds = {
  readonly database: Pick<Database, 'system' | 'tenant'>
  readonly listener: Listener
  readonly sealer: Sealer
  readonly sender: Sender
  readonly clock: Clock
  readonly random: Random
  readonly outcomes: DeliveryOutcomes
  /** `webhooks.retry_schedule_secs`. */
  readonly schedule: readonly number[]
  /** `webhooks.lanes_per_tenant_max`. */
  readonly lanesPerTenantMax: number
  readonly shares: ShareCounts
}

export interface DeliveryRunner {
  /** Delivers until the signal is aborted, and then finishes or gives up the running attempts. */
  run(lifecycle: Pick<Lifecycle, 'signal' | 'log' | 'loop'>): Promise<void>
  /** Resolves when every run has ended. */
  settled(): Promise<void>
}

export function createDeliveryRunner(needs: WorkerNeeds): DeliveryRunner {
  let running: Promise<void> = Promise.resolve()
  return {
    run(lifecycle) {
      const run = running.then(() => new Shift(needs, lifecycle).work())
      running = run.catch(() => undefined)
      return run
    },
    settled: () => running,
  }
}

/** A worker from start to stop. */
class Shift {
  readonly #needs: WorkerNeeds
  readonly #signal: AbortSignal
  readonly #log: Logger
  readonly #loopOf: Lifecycle['loop']
  readonly #lease: string
  readonly #lanes = new Map<string, { tenantId: string; lane: Lane; done: Promise<void> }>()
  readonly #events = new Bell()
  readonly #due = new Bell()
  readonly #release: (lane: LaneRelease) => Promise<void>
  readonly #keeper: LaneKeeper
  /** Places for lanes, divided between tenants. */
  readonly #places: FairShare

  constructor(
    needs: WorkerNeeds,
    { signal, log, loop }: Pick<Lifecycle, 'signal' | 'log' | 'loop'>,
  ) {
    this.#needs = needs
    this.#signal = signal
    this.#log = log
    this.#loopOf = loop
    this.#lease = needs.random.uuid()
    const { database, sender, schedule, outcomes, clock, random, lanesPerTenantMax } = needs
    this.#places = new FairShare({
      resource: RESOURCE,
      total: LANES_MAX,
      levels: [{ name: 'tenant', max: lanesPerTenantMax }],
      counts: needs.shares,
    })
    const giveUp = new AbortController()
    // Each running attempt listens.
    setMaxListeners(0, giveUp.signal)
    signal.addEventListener('abort', () => setTimeout(() => giveUp.abort(), GRACE_MS).unref(), {
      once: true,
    })
    this.#release = inBatches((lanes) =>
      database.system((tx) => releaseLanes(tx, this.#lease, lanes)),
    )
    this.#keeper = {
      sender,
      schedule,
      outcomes,
      log,
      giveUp: giveUp.signal,
      stopping: () => signal.aborted,
      nowMs: () => clock.monotonicMs(),
      chance: () => Buffer.from(random.bytes(4)).readUInt32BE() / 2 ** 32,
      record: inBatches<AttemptRecord>((attempts) =>
        database.system((tx) => recordAttempts(tx, attempts)),
      ),
      refill: (lane, inHand) => this.#refill(lane, inHand),
      deactivate: (lane) => this.#deactivate(lane),
      cancel: (lane) => this.#cancel(lane),
    }
  }

  async work(): Promise<void> {
    this.#signal.addEventListener('abort', () => this.#ringAll(), { once: true })
    const renewal = setInterval(() => void this.#renew(), RENEW_MS)
    const leave = await this.#listen()
    await Promise.all([this.#fanOutLoop(), this.#claimLoop()])
    await Promise.all([...this.#lanes.values()].map(({ done }) => done))
    clearInterval(renewal)
    for (const end of leave) end()
  }

  #ringAll(): void {
    this.#events.ring()
    this.#due.ring()
    for (const { lane } of this.#lanes.values()) lane.wake()
  }

  /** Without a listening connection the worker still looks by itself. */
  async #listen(): Promise<(() => void)[]> {
    const events = () => this.#events.ring()
    const due = () => this.#due.ring()
    const { listener } = this.#needs
    try {
      return [
        await listener.listen(EVENTS_CHANNEL, { notified: events, caughtUp: events }),
        await listener.listen(DELIVERIES_CHANNEL, { notified: due, caughtUp: due }),
      ]
    } catch (error) {
      this.#log.warn({ err: error }, 'webhooks: no wake-ups, looking once a second')
      return []
    }
  }

  async #fanOutLoop(): Promise<void> {
    const { database, clock, random, schedule } = this.#needs
    const source = {
      database,
      clock,
      random,
      maxAttempts: schedule.length,
      wake: async (tx: Transaction, lanes: readonly LaneKey[]) => {
        const woken = await wakeAndClaimLanes(tx, lanes, this.#lease, this.#room(), LEASE_SECS)
        for (let left = woken.refused; left > 0; left -= 1) this.#needs.shares.count(RESOURCE)
        return load(tx, woken.claimed)
      },
    }
    await this.#loop('fan-out', async () => {
      const { events, lanes, taken } = await fanOut(source)
      for (const claim of taken ?? []) this.#run(claim)
      const ours = new Set(taken?.map(({ lane: { webhookId } }) => webhookId))
      const others = lanes.filter(({ webhookId }) => !ours.has(webhookId))
      for (const { webhookId } of others) this.#lanes.get(webhookId)?.lane.wake()
      if (others.some(({ webhookId }) => !this.#lanes.has(webhookId))) this.#due.ring()
      if (events < FAN_OUT_BATCH) await this.#events.rest(LOOK_MS_MAX)
    })
  }

  /** How many lanes may be claimed at once, and of whom. */
  #room(): LaneRoom {
    const limit = Math.max(0, Math.min(CLAIM_MAX, LANES_MAX - this.#places.inUse))
    const held = new Map<string, number>()
    for (const { tenantId } of this.#lanes.values()) {
      held.set(tenantId, this.#places.usedBy(0, tenantId))
    }
    return { limit, perTenantMax: this.#needs.lanesPerTenantMax, held }
  }

  async #claimLoop(): Promise<void> {
    await this.#loop('deliveries', async () => {
      const room = this.#room()
      if (room.limit === 0) return this.#due.rest(LOOK_MS_MAX)
      const { claimed, nextMs } = await this.#claim(room)
      for (const claim of claimed) this.#run(claim)
      if (claimed.length < room.limit) await this.#due.rest(nextMs)
    })
  }

  async #loop(name: string, context: () => Promise<void>): Promise<void> {
    const loop = this.#loopOf(name)
    while (!this.#signal.aborted) {
      try {
        await context()
        loop.succeeded()
      } catch (error) {
        if (this.#signal.aborted) return
        loop.failed()
        this.#log.warn({ err: error }, 'webhooks: cannot work, trying again')
        await new Promise((resolve) => setTimeout(resolve, MISHAP_MS))
      }
    }
  }

  /** Crosses tenants, like everything here: one worker sends for all of them. */
  async #claim(room: LaneRoom) {
    return this.#needs.database.system(async (tx) => {
      const lanes = await claimLanes(tx, this.#lease, room, LEASE_SECS)
      // A tenant that has its share is looked at again when one of its lanes ends, which rings.
      const full = tenantsAtMost(room, lanes)
      const nextMs = lanes.length < room.limit ? await nextLaneMs(tx, LOOK_MS_MAX, full) : 0
      return { claimed: await load(tx, lanes), nextMs }
    })
  }

  #run({ lane: claimed, target, due }: Claim): void {
    const { tenantId, webhookId } = claimed
    const place = this.#places.tryAcquire([tenantId])
    if (isRefused(place)) {
      // Both loops claimed at once. Due as it was; who has a place for it takes it.
      const { failures, failingSince } = claimed
      void this.#giveBack({ tenantId, webhookId, failures, failingSince, heldSecs: 0 })
      return
    }
    const lane = new Lane(this.#keeper, claimed, () => this.#open(target), due)
    const done = lane
      .run()
      .then((release) => this.#giveBack(release))
      .finally(() => {
        place()
        // It may have been claimed again by now.
        if (this.#lanes.get(webhookId)?.lane === lane) this.#lanes.delete(webhookId)
        this.#due.ring()
      })
    this.#lanes.set(webhookId, { tenantId, lane, done })
  }

  async #giveBack(release: LaneRelease): Promise<void> {
    try {
      await this.#release(release)
    } catch (error) {
      // The lease runs out.
      const { webhookId } = release
      this.#log.warn({ err: error, webhookId }, 'a webhook lane was not given back')
    }
  }

  async #refill(lane: ClaimedLane, inHand: readonly string[]) {
    const [[target], due] = await this.#needs.database.system((tx) =>
      loaded(tx, [lane.webhookId], inHand),
    )
    return { target: await this.#open(target), due }
  }

  async #open(target: WebhookTarget | undefined): Promise<Target> {
    if (target?.secret == null || !target.active) return undefined
    if (target.paused) return PAUSED
    const { tenantId, id, url, previousSecret } = target
    const context = webhookSecretContext(id)
    const read = async (sealed: Uint8Array) =>
      Buffer.from(await this.#needs.sealer.open(tenantId, context, sealed)).toString('utf8')
    return {
      url,
      secret: await read(target.secret),
      previousSecret: previousSecret === null ? null : await read(previousSecret),
    }
  }

  async #deactivate({ tenantId, webhookId }: ClaimedLane): Promise<void> {
    const { database, clock, outcomes } = this.#needs
    const cancelled = await database.tenant(tenantId, async (tx) => {
      await deactivateWebhook(tx, tenantId, webhookId, clock.now())
      return cancelDeliveries(tx, tenantId, webhookId, INACTIVE)
    })
    outcomes.count('cancelled', cancelled)
    this.#log.warn({ tenantId, webhookId, cancelled }, 'a webhook subscription was switched off')
  }

  async #cancel({ tenantId, webhookId }: ClaimedLane): Promise<void> {
    const cancelled = await this.#needs.database.tenant(tenantId, (tx) =>
      cancelDeliveries(tx, tenantId, webhookId, INACTIVE),
    )
    this.#needs.outcomes.count('cancelled', cancelled)
  }

  async #renew(): Promise<void> {
    if (this.#lanes.size === 0) return
    try {
      await this.#needs.database.system((tx) => renewLanes(tx, this.#lease, LEASE_SECS))
    } catch (error) {
      this.#log.warn({ err: error }, 'webhooks: leases were not renewed')
    }
  }
}

type Claim = {
  readonly lane: ClaimedLane
  readonly target: WebhookTarget | undefined
  readonly due: readonly DueDelivery[]
}

/** Tenants of which a worker takes no more lanes once it has these. */
function tenantsAtMost({ held, perTenantMax }: LaneRoom, more: readonly ClaimedLane[]): string[] {
  const counts = new Map(held)
  for (const { tenantId } of more) counts.set(tenantId, (counts.get(tenantId) ?? 0) + 1)
  return [...counts].filter(([, count]) => count >= perTenantMax).map(([tenantId]) => tenantId)
}

/** Lanes that were claimed, with what is needed to run them. */
async function load(tx: Transaction, lanes: readonly ClaimedLane[]): Promise<Claim[]> {
  const ids = lanes.map(({ webhookId }) => webhookId)
  const [targets, due] = await loaded(tx, ids, [])
  const byId = new Map(targets.map((target) => [target.id, target]))
  const dueOf = new Map<string, DueDelivery[]>(ids.map((id) => [id, []]))
  for (const delivery of due) dueOf.get(delivery.webhookId)?.push(delivery)
  return lanes.map((lane) => {
    const { webhookId } = lane
    return { lane, target: byId.get(webhookId), due: dueOf.get(webhookId) ?? [] }
  })
}

/** Where these lanes send to, and what they have due. */
async function loaded(
  tx: Transaction,
  webhookIds: readonly string[],
  inHand: readonly string[],
): Promise<[WebhookTarget[], DueDelivery[]]> {
  if (webhookIds.length === 0) return [[], []]
  return [
    await webhookTargets(tx, webhookIds),
    await dueDeliveries(tx, webhookIds, DUE_EACH, inHand),
  ]
}
