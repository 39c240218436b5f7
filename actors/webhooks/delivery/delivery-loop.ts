/**
 * Sends the events of the outbox. One loop creates deliveries from events. The other leases
 * delivery lanes with due deliveries and runs them. All state is in the database: when a worker
 * dies its leases expire after a few seconds, and another worker takes them over.
 */
import type { ActorRef, Lifecycle } from '../../../runtime/kernel/actor.js'
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
  recordingAttempts,
  DUE_FEW,
  DUE_MANY,
  selectingDueOf,
} from '../../../storage/webhooks/deliveries.js'
import type { Listener } from '../../../storage/platform/listen.js'
import { EVENTS_CHANNEL } from '../../../storage/platform/outbox.js'
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
} from '../../../storage/webhooks/delivery-lanes.js'
import {
  deactivateWebhook,
  selectingTarget,
  type WebhookTarget,
  webhookTargets,
} from '../../../storage/webhooks/webhooks.js'
import { inBatches } from './batches.js'
import { claimable, groupsOf } from '../../platform/tenant-groups.js'
import { UNWOKEN_MS_MAX, WakeSignal } from '../../platform/batching/wake-signal.js'
import { EventOrder } from './due-queue.js'
import { FAN_OUT_BATCH, fanOut } from './fan-out.js'
import { DeliveryLane, type LaneHost, PAUSED, type Target } from './delivery-lane.js'
import type { DeliveryOutcomes } from './metrics.js'
import type { WebhookSignerProtocol } from '../signer/protocol.js'
import type { Sender } from './protocol.js'

/**
 * Delivery lanes served concurrently. A lane holds its place for one turn (delivery-lane.ts), and rests when
 * its receiver is slow.
 */
const LANES_MAX = 512
const CLAIM_MAX = 64
/** Lanes of tenants without one that are claimed in one round where there is no place. */
const FIRST_MAX = 16
/** Value of the label `resource` of `svc_share_refused_total`. */
const RESOURCE = 'webhook_lanes'
const LEASE_SECS = 6
const RENEW_MS = 2_000
const MISHAP_MS = 1_000
/** Running attempts are aborted this long after a stop begins. */
const GRACE_MS = 5_000

export type DeliveryNeeds = {
  readonly database: Pick<Database, 'system' | 'tenant' | 'together'>
  readonly listener: Listener
  readonly sender: Sender
  readonly signer: ActorRef<WebhookSignerProtocol>
  readonly clock: Clock
  readonly random: Random
  readonly outcomes: DeliveryOutcomes
  /** `webhooks.retry_schedule_secs`. */
  readonly schedule: readonly number[]
  /** `webhooks.lanes_per_tenant_max`. */
  readonly lanesPerTenantMax: number
  readonly shares: ShareCounts
  /** Receives a promise of the run, which a stop waits for. */
  readonly settled: (run: Promise<void>) => void
}

/** Delivers until the signal is aborted, and then finishes or gives up the running attempts. */
export function deliver(
  needs: DeliveryNeeds,
  lifecycle: Pick<Lifecycle, 'signal' | 'log' | 'loop'>,
): Promise<void> {
  const run = new DeliveryLoops(needs, lifecycle).work()
  needs.settled(run.catch(() => undefined))
  return run
}

/** The loops of a worker, from start to stop. */
class DeliveryLoops {
  readonly #needs: DeliveryNeeds
  readonly #signal: AbortSignal
  readonly #log: Logger
  readonly #loopOf: Lifecycle['loop']
  readonly #lease: string
  readonly #lanes = new Map<string, { tenantId: string; lane: DeliveryLane; done: Promise<void> }>()
  readonly #eventSignal = new WakeSignal()
  readonly #dueSignal = new WakeSignal()
  readonly #order = new EventOrder()
  readonly #release: (lane: LaneRelease) => Promise<void>
  readonly #host: LaneHost
  /** Places for delivery lanes, shared between tenants. */
  readonly #places: FairShare

  constructor(
    needs: DeliveryNeeds,
    { signal, log, loop }: Pick<Lifecycle, 'signal' | 'log' | 'loop'>,
  ) {
    this.#needs = needs
    this.#signal = signal
    this.#log = log
    this.#loopOf = loop
    this.#lease = needs.random.uuid()
    const { database, sender, signer, schedule, outcomes, clock, random } = needs
    this.#places = new FairShare({
      resource: RESOURCE,
      total: LANES_MAX,
      levels: [{ name: 'tenant', max: needs.lanesPerTenantMax }],
      counts: needs.shares,
    })
    const giveUpAll = () => {
      for (const { lane } of this.#lanes.values()) lane.giveUp()
    }
    signal.addEventListener('abort', () => setTimeout(giveUpAll, GRACE_MS).unref(), { once: true })
    this.#release = inBatches((lanes) =>
      database.system((tx) => releaseLanes(tx, this.#lease, lanes)),
    )
    this.#host = {
      send: (outgoing, given) => sender.send(outgoing, signer, given),
      schedule,
      outcomes,
      log,
      stopping: () => signal.aborted,
      nowMs: () => clock.monotonicMs(),
      chance: () => Buffer.from(random.bytes(4)).readUInt32BE() / 2 ** 32,
      // One round trip. Crosses tenants, as the claim does.
      record: inBatches<AttemptRecord>(async (attempts) => {
        await database.together(null, [recordingAttempts(attempts)])
      }),
      order: this.#order,
      refill: (lane, isMany) => this.#refill(lane, isMany),
      retarget: async ({ webhookId }) => {
        const [found] = await database.together(null, [selectingTarget(webhookId)])
        return targetOf(found?.rows[0] as WebhookTarget | undefined)
      },
      deactivate: (lane) => this.#deactivate(lane),
      cancel: (lane) => this.#cancel(lane),
    }
  }

  async work(): Promise<void> {
    this.#signal.addEventListener('abort', () => this.#wakeAll(), { once: true })
    const renewal = setInterval(() => void this.#renew(), RENEW_MS)
    const leave = await this.#listen()
    await Promise.all([this.#fanOutLoop(), this.#claimLoop()])
    await Promise.all([...this.#lanes.values()].map(({ done }) => done))
    clearInterval(renewal)
    for (const end of leave) end()
  }

  #wakeAll(): void {
    this.#eventSignal.wake()
    this.#dueSignal.wake()
    for (const { lane } of this.#lanes.values()) lane.wake()
  }

  /** Listens for wake signals. Without the connection the loops still poll. */
  async #listen(): Promise<(() => void)[]> {
    const events = () => this.#eventSignal.wake()
    const due = () => this.#dueSignal.wake()
    const { listener } = this.#needs
    try {
      return [
        await listener.listen(EVENTS_CHANNEL, { notified: events, caughtUp: events }),
        await listener.listen(DELIVERIES_CHANNEL, { notified: due, caughtUp: due }),
      ]
    } catch (error) {
      this.#log.warn({ err: error }, 'webhooks: wake signals unavailable, polling every 5 seconds')
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
      const begunAt = this.#order.next()
      const { events, lanes, taken, created } = await fanOut(source)
      for (const claim of taken ?? []) this.#run(claim)
      for (const [webhookId, deliveries] of created) {
        this.#lanes.get(webhookId)?.lane.add(deliveries, begunAt)
      }
      const ours = new Set(taken?.map(({ lane: { webhookId } }) => webhookId))
      const others = lanes.filter(({ webhookId }) => !ours.has(webhookId))
      for (const { webhookId } of others) this.#lanes.get(webhookId)?.lane.wake()
      if (others.some(({ webhookId }) => !this.#lanes.has(webhookId))) this.#dueSignal.wake()
      if (events < FAN_OUT_BATCH) await this.#eventSignal.wait(UNWOKEN_MS_MAX)
    })
  }

  /** The number of delivery lanes that may be claimed, in total and per tenant. */
  #room(): LaneRoom {
    const free = Math.max(0, Math.min(CLAIM_MAX, LANES_MAX - this.#places.inUse))
    const held = new Map<string, number>()
    for (const { tenantId } of this.#lanes.values()) {
      held.set(tenantId, this.#places.usedBy(0, tenantId))
    }
    const { lanesPerTenantMax: perTenantMax } = this.#needs
    return { ...claimable(this.#places, free), perTenantMax, held, firstMax: FIRST_MAX }
  }

  async #claimLoop(): Promise<void> {
    await this.#loop('deliveries', async () => {
      const room = this.#room()
      const { claimed, nextMs } = await this.#claim(room)
      const run = claimed.filter((claim) => this.#run(claim))
      // A lane that ends wakes the loop.
      const isFull = run.length === 0 && (claimed.length > 0 || room.limit === 0)
      if (isFull) await this.#dueSignal.wait(UNWOKEN_MS_MAX)
      else if (run.length < room.limit) await this.#dueSignal.wait(nextMs)
    })
  }

  async #loop(name: string, round: () => Promise<void>): Promise<void> {
    const loop = this.#loopOf(name)
    while (!this.#signal.aborted) {
      try {
        await round()
        loop.succeeded()
      } catch (error) {
        if (this.#signal.aborted) return
        loop.failed()
        this.#log.warn({ err: error }, 'webhooks: round failed, retrying')
        await new Promise((resolve) => setTimeout(resolve, MISHAP_MS))
      }
    }
  }

  /** Crosses tenants: one worker sends for all of them. */
  async #claim(room: LaneRoom) {
    return this.#needs.database.system(async (tx) => {
      const lanes = await claimLanes(tx, this.#lease, room, LEASE_SECS)
      // A tenant at its share is checked again when one of its lanes ends, which wakes the loop.
      const without = tenantsAtMost(room, lanes)
      const isAll = lanes.length < room.limit
      const nextMs = isAll ? await nextLaneMs(tx, UNWOKEN_MS_MAX, without, room.full) : 0
      return { claimed: await load(tx, lanes), nextMs }
    })
  }

  /** @returns false when there is no place for the lane. */
  #run({ lane: claimed, target, due }: Claim): boolean {
    const { tenantId, webhookId } = claimed
    const lane = new DeliveryLane(this.#host, claimed, targetOf(target), due)
    const place = this.#places.tryAcquire([tenantId], 1, {
      groups: groupsOf(claimed),
      giveUp: () => lane.giveUp(),
    })
    if (isRefused(place)) {
      // Both loops claimed concurrently, or no tenant gives a place up. The lane stays due, for any worker.
      const { failures, failingSince } = claimed
      void this.#giveBack({ tenantId, webhookId, failures, failingSince, heldSecs: 0 })
      return false
    }
    const done = lane
      .run()
      .then((release) => this.#giveBack(release))
      .finally(() => {
        place()
        // Another worker may have claimed it since.
        if (this.#lanes.get(webhookId)?.lane === lane) this.#lanes.delete(webhookId)
        this.#dueSignal.wake()
      })
    this.#lanes.set(webhookId, { tenantId, lane, done })
    return true
  }

  async #giveBack(release: LaneRelease): Promise<void> {
    try {
      await this.#release(release)
    } catch (error) {
      // The lease expires.
      const { webhookId } = release
      this.#log.warn({ err: error, webhookId }, 'webhooks: lane not released')
    }
  }

  async #refill({ webhookId }: ClaimedLane, isMany: boolean) {
    const [targets, due] = await this.#needs.database.together(null, [
      selectingTarget(webhookId),
      selectingDueOf(webhookId, isMany),
    ])
    const rows = (due?.rows ?? []) as unknown as DueDelivery[]
    return {
      target: targetOf(targets?.rows[0] as WebhookTarget | undefined),
      due: rows,
      isFull: rows.length === (isMany ? DUE_MANY : DUE_FEW),
    }
  }

  async #deactivate({ tenantId, webhookId }: ClaimedLane): Promise<void> {
    const { database, clock, outcomes } = this.#needs
    const cancelled = await database.tenant(tenantId, async (tx) => {
      await deactivateWebhook(tx, tenantId, webhookId, clock.now())
      return cancelDeliveries(tx, tenantId, webhookId)
    })
    outcomes.count('cancelled', cancelled)
    this.#log.warn({ tenantId, webhookId, cancelled }, 'webhooks: subscription deactivated')
  }

  async #cancel({ tenantId, webhookId }: ClaimedLane): Promise<void> {
    const cancelled = await this.#needs.database.tenant(tenantId, (tx) =>
      cancelDeliveries(tx, tenantId, webhookId),
    )
    this.#needs.outcomes.count('cancelled', cancelled)
  }

  async #renew(): Promise<void> {
    if (this.#lanes.size === 0) return
    try {
      await this.#needs.database.system((tx) => renewLanes(tx, this.#lease, LEASE_SECS))
    } catch (error) {
      this.#log.warn({ err: error }, 'webhooks: lease renewal failed')
    }
  }
}

type Claim = {
  readonly lane: ClaimedLane
  readonly target: WebhookTarget | undefined
  readonly due: readonly DueDelivery[]
}

function targetOf(target: WebhookTarget | undefined): Target {
  if (target?.secret == null || !target.active) return undefined
  if (target.paused) return PAUSED
  const { url, secret, previousSecret } = target
  return { url, secret, previousSecret }
}

/** Tenants whose share is full once these lanes are claimed. */
function tenantsAtMost({ held, perTenantMax }: LaneRoom, more: readonly ClaimedLane[]): string[] {
  const counts = new Map(held)
  for (const { tenantId } of more) counts.set(tenantId, (counts.get(tenantId) ?? 0) + 1)
  return [...counts].filter(([, count]) => count >= perTenantMax).map(([tenantId]) => tenantId)
}

/** Loads targets and due deliveries of claimed lanes. */
async function load(tx: Transaction, lanes: readonly ClaimedLane[]): Promise<Claim[]> {
  const ids = lanes.map(({ webhookId }) => webhookId)
  if (ids.length === 0) return []
  const [targets, due] = await Promise.all([
    webhookTargets(tx, ids),
    dueDeliveries(tx, ids, DUE_FEW),
  ])
  const byId = new Map(targets.map((target) => [target.id, target]))
  const dueOf = new Map<string, DueDelivery[]>(ids.map((id) => [id, []]))
  for (const delivery of due) dueOf.get(delivery.webhookId)?.push(delivery)
  return lanes.map((lane) => {
    const { webhookId } = lane
    return { lane, target: byId.get(webhookId), due: dueOf.get(webhookId) ?? [] }
  })
}
