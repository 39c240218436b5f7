/**
 * A limited resource that tenants share (calls in progress, bytes held, look-ups, connections),
 * divided so that no key can use it up. Keys are levels, the widest first: `[tenantId, agentId]`.
 * Each level has its own bound, and `total` bounds all of them. Where waiting is enabled, keys of
 * the first level take turns (fair-queue.ts).
 *
 * Keys of the first level may cost nothing, so many of them can fill the total together. Groups bound what such keys
 * hold together. A key that holds nothing takes a place back from the key that holds most, where holders can give up.
 */
import { FairQueue, QueueItem } from './fair-queue.js'
import type { PlainFamily } from '../metrics/plain-metrics.js'

/** Returns the units. Further calls have no effect. */
export type Release = () => void

/** Keys of the first level that hold at most a part of the total together. */
export type ShareGroup = { readonly name: string; readonly part: number }

export interface HolderOptions {
  /** The groups of the key of the first level. */
  readonly groups?: readonly ShareGroup[] | undefined
  /** Ends the holder at once, because a key without units needs them. False: it cannot end any more. */
  readonly giveUp?: (() => boolean) | undefined
}

/** Units in use that may be taken back. */
type Holder = {
  readonly groups: readonly ShareGroup[]
  readonly giveUp: () => boolean
  readonly release: Release
}

const NO_GROUPS: readonly ShareGroup[] = []

/** Why units were refused: the name of the level or group whose bound is reached, or `total`. */
export interface ShareRefused {
  readonly refused: string
}

export interface FairShareOptions {
  /** Names the resource in `svc_share_refused_total{resource}` and in refusals. */
  readonly resource: string
  /** Units in use at the same time by all keys together. */
  readonly total: number
  /** Units in use at the same time by one key of each level, the widest level first. */
  readonly levels: readonly { readonly name: string; readonly max: number }[]
  /** How many may wait under one key of the first level. Default 0: `acquire` refuses at once. */
  readonly waitingPerKeyMax?: number | undefined
  /** How many may wait in all. Default: only the bound per key applies. */
  readonly waitingMax?: number | undefined
  readonly counts?: ShareCounts | undefined
}

class Waiter extends QueueItem {
  readonly keys: readonly string[]
  readonly units: number
  readonly resolve: (answer: Release | ShareRefused) => void

  constructor(
    keys: readonly string[],
    units: number,
    resolve: (answer: Release | ShareRefused) => void,
  ) {
    super()
    this.share = keys[0] ?? ''
    this.keys = keys
    this.units = units
    this.resolve = resolve
  }
}

export class FairShare {
  readonly resource: string
  readonly #total: number
  readonly #levels: FairShareOptions['levels']
  readonly #counts: ShareCounts | undefined
  /** Units in use by key, one map per level. */
  readonly #used: readonly Map<string, number>[]
  /** Units in use by group. */
  readonly #usedByGroup = new Map<string, number>()
  /** What may be taken back, by key of the first level, the oldest first. */
  readonly #holders = new Map<string, Set<Holder>>()
  readonly #waiting: FairQueue<Waiter> | undefined
  #inUse = 0

  constructor(options: FairShareOptions) {
    const { resource, total, levels, waitingPerKeyMax = 0, counts } = options
    this.resource = resource
    this.#total = total
    this.#levels = levels
    this.#counts = counts
    this.#used = levels.map(() => new Map<string, number>())
    if (waitingPerKeyMax > 0) {
      const { waitingMax: capacity = Number.MAX_SAFE_INTEGER } = options
      this.#waiting = new FairQueue({ capacity, perKeyMax: waitingPerKeyMax })
    }
  }

  /** Units in use by all keys. */
  get inUse(): number {
    return this.#inUse
  }

  get waiting(): number {
    return this.#waiting?.size ?? 0
  }

  /** Units in use by one key of a level. */
  usedBy(level: number, key: string): number {
    return this.#used[level]?.get(key) ?? 0
  }

  /**
   * Takes units at once or refuses. A key of the first level that holds nothing takes them back from others.
   * @param keys one per level, the widest first. Only `total` bounds an empty key.
   */
  tryAcquire(
    keys: readonly string[],
    units = 1,
    { groups = NO_GROUPS, giveUp }: HolderOptions = {},
  ): Release | ShareRefused {
    let refused = this.#refusedBy(keys, units, groups)
    while (refused !== undefined && this.#takeBack(refused, keys, groups))
      refused = this.#refusedBy(keys, units, groups)
    if (refused !== undefined) return this.#refuse(refused)
    if (giveUp === undefined) return this.#take(keys, units, groups)
    return this.#takeReturnable(keys, units, groups, giveUp)
  }

  /**
   * Takes units, and waits in turn where the options allow it.
   * @throws the reason of `signal` when it is aborted first.
   */
  acquire(
    keys: readonly string[],
    units = 1,
    signal?: AbortSignal,
  ): Promise<Release | ShareRefused> {
    if (signal?.aborted === true) return Promise.reject(signal.reason as Error)
    const refused = this.#refusedBy(keys, units)
    const waiting = this.#waiting
    if (refused === undefined && (waiting === undefined || waiting.size === 0)) {
      return Promise.resolve(this.#take(keys, units))
    }
    const canEver = units <= this.#total && this.#levels.every(({ max }) => units <= max)
    if (waiting === undefined || !canEver) {
      return Promise.resolve(
        refused === undefined ? this.#take(keys, units) : this.#refuse(refused),
      )
    }
    return new Promise((resolve, reject) => {
      const waiter = new Waiter(keys, units, (answer) => {
        signal?.removeEventListener('abort', leave)
        resolve(answer)
      })
      const leave = () => {
        if (waiting.remove(waiter)) reject(signal?.reason as Error)
      }
      const pushed = waiting.push(waiter)
      if (pushed === 'key_full') return resolve(this.#refuse(this.#levels[0]?.name ?? 'total'))
      if (pushed === 'full') return resolve(this.#refuse('total'))
      if (pushed !== 'queued') pushed.item.resolve(this.#refuse('total'))
      signal?.addEventListener('abort', leave, { once: true })
      this.#serve()
    })
  }

  #refusedBy(
    keys: readonly string[],
    units: number,
    groups: readonly ShareGroup[] = NO_GROUPS,
  ): string | undefined {
    const levels = this.#levels
    for (let index = levels.length - 1; index >= 0; index -= 1) {
      const key = keys[index] ?? ''
      const { name, max } = levels[index]!
      if (key !== '' && (this.#used[index]!.get(key) ?? 0) + units > max) return name
    }
    for (const { name, part } of groups) {
      if ((this.#usedByGroup.get(name) ?? 0) + units > this.#total * part) return name
    }
    return this.#inUse + units > this.#total ? 'total' : undefined
  }

  #refuse(by: string): ShareRefused {
    this.#counts?.count(this.resource)
    return { refused: by }
  }

  /**
   * Ends the oldest holder that can end, of the key that holds most, for a key that holds nothing.
   * @param refused the bound that is reached: only holders within it make room.
   */
  #takeBack(refused: string, keys: readonly string[], groups: readonly ShareGroup[]): boolean {
    const key = keys[0] ?? ''
    const isOfGroup = groups.some(({ name }) => name === refused)
    if (key === '' || this.usedBy(0, key) > 0 || (!isOfGroup && refused !== 'total')) return false
    const largestFirst = [...this.#holders]
      .map(([of, holders]) => ({ used: this.usedBy(0, of), holders }))
      .filter(({ used }) => used > 1)
      .sort((one, other) => other.used - one.used)
    for (const { holders } of largestFirst) {
      for (const holder of holders) {
        if (isOfGroup && !holder.groups.some(({ name }) => name === refused)) break
        if (!holder.giveUp()) continue
        holder.release()
        return true
      }
    }
    return false
  }

  #takeReturnable(
    keys: readonly string[],
    units: number,
    groups: readonly ShareGroup[],
    giveUp: () => boolean,
  ): Release {
    const key = keys[0] ?? ''
    const released = this.#take(keys, units, groups)
    const release = () => {
      released()
      const holders = this.#holders.get(key)
      if (holders?.delete(holder) === true && holders.size === 0) this.#holders.delete(key)
    }
    const holder: Holder = { groups, giveUp, release }
    const holders = this.#holders.get(key)
    if (holders === undefined) this.#holders.set(key, new Set([holder]))
    else holders.add(holder)
    return release
  }

  #take(
    keys: readonly string[],
    units: number,
    groups: readonly ShareGroup[] = NO_GROUPS,
  ): Release {
    this.#add(keys, units, groups)
    let held = true
    return () => {
      if (!held) return
      held = false
      this.#add(keys, -units, groups)
      if (this.waiting > 0) this.#serve()
    }
  }

  #add(keys: readonly string[], units: number, groups: readonly ShareGroup[]): void {
    this.#inUse += units
    for (const { name } of groups) {
      const now = (this.#usedByGroup.get(name) ?? 0) + units
      if (now === 0) this.#usedByGroup.delete(name)
      else this.#usedByGroup.set(name, now)
    }
    const used = this.#used
    for (let index = 0; index < used.length; index += 1) {
      const key = keys[index] ?? ''
      if (key === '') continue
      const now = (used[index]!.get(key) ?? 0) + units
      if (now === 0) used[index]!.delete(key)
      else used[index]!.set(key, now)
    }
  }

  /**
   * Serves waiters in turn. A key whose oldest waiter cannot be served is passed over, so a key at
   * its bound delays no other key. Within a key the order of arrival is kept.
   */
  #serve(): void {
    const waiting = this.#waiting!
    let passedOver = 0
    while (passedOver < waiting.keys && this.#inUse < this.#total) {
      const { keys, units } = waiting.peek()!
      if (this.#refusedBy(keys, units) === undefined) {
        const waiter = waiting.shift()!
        waiter.resolve(this.#take(keys, units))
        passedOver = 0
      } else {
        waiting.skip()
        passedOver += 1
      }
    }
  }
}

/** True for a refusal: `const taken = share.tryAcquire(...); if (isRefused(taken)) ...`. */
export function isRefused(answer: Release | ShareRefused): answer is ShareRefused {
  return typeof answer !== 'function'
}

/** Counts refusals of all shares of a thread: `svc_share_refused_total{resource}`. */
export class ShareCounts {
  readonly #refused = new Map<string, number>()

  count(resource: string): void {
    this.#refused.set(resource, (this.#refused.get(resource) ?? 0) + 1)
  }

  refusedOf(resource: string): number {
    return this.#refused.get(resource) ?? 0
  }

  readonly family: PlainFamily = {
    name: 'svc_share_refused_total',
    help: 'Refusals because a tenant, an agent or all together hold their share of a resource.',
    type: 'counter',
    read: () => [...this.#refused].map(([resource, value]) => ({ labels: { resource }, value })),
  }
}
