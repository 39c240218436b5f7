/**
 * A limited resource that tenants share (calls in progress, bytes held, look-ups, connections),
 * divided so that no key can use it up. Keys are levels, the widest first: `[tenantId, agentId]`.
 * Each level has its own bound, and `total` bounds all of them. Where waiting is enabled, keys of
 * the first level take turns (fair-queue.ts).
 *
 * Keys of the first level may cost nothing, so many of them can fill the total together. Groups bound what such keys
 * hold together. A key takes units back from the key that holds most, where holders can give up, as long as that key
 * holds at least twice as much: a key with some calls under way is not refused for them while others hold hundreds, and
 * keys that hold about as much take nothing from each other. A key that holds nothing gets the next free place where it
 * waits.
 */
import { FairQueue, QueueItem } from './fair-queue.js'
import type { PlainFamily } from '../metrics/plain-metrics.js'

/** Returns the units. Further calls have no effect. */
export type Release = () => void

/** Keys of the first level that hold at most a part of the total together. Metrics show the first word of the name. */
export type ShareGroup = { readonly name: string; readonly part: number }

interface GroupOptions {
  /** The groups of the key of the first level. */
  readonly groups?: readonly ShareGroup[] | undefined
}

export interface HolderOptions extends GroupOptions {
  /** Ends the holder immediately, because a key with fewer units needs them. False: it cannot end any more. */
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
interface ShareRefused {
  readonly refused: string
}

interface FairShareOptions {
  /** Names the resource in `svc_share_refused_total{resource}` and in refusals. */
  readonly resource: string
  /** Units in use at the same time by all keys together. */
  readonly total: number
  /** Units in use at the same time by one key of each level, the widest level first. */
  readonly levels: readonly { readonly name: string; readonly max: number }[]
  /** How many may wait under one key of the first level. Default 0: `acquire` refuses without waiting. */
  readonly waitingPerKeyMax?: number | undefined
  /** How many may wait in all. Default: only the bound per key applies. */
  readonly waitingMax?: number | undefined
  readonly counts?: ShareCounts | undefined
}

class Waiter extends QueueItem {
  readonly keys: readonly string[]
  readonly units: number
  readonly groups: readonly ShareGroup[]
  readonly resolve: (answer: Release | ShareRefused) => void

  constructor(
    keys: readonly string[],
    units: number,
    groups: readonly ShareGroup[],
    resolve: (answer: Release | ShareRefused) => void,
  ) {
    super()
    this.share = keys[0] ?? ''
    this.keys = keys
    this.units = units
    this.groups = groups
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
  readonly #usedByGroup = new Map<string, { units: number; readonly most: number }>()
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

  /** Units in use by the keys of a group. */
  usedByGroup(name: string): number {
    return this.#usedByGroup.get(name)?.units ?? 0
  }

  /** The groups whose keys hold units, with the units that each has left. */
  groupsInUse(): { readonly name: string; readonly left: number }[] {
    return [...this.#usedByGroup].map(([name, { units, most }]) => ({ name, left: most - units }))
  }

  /** The units of a part of the total, at least 1. */
  partOf(part: number): number {
    return Math.max(1, Math.floor(this.#total * part))
  }

  /**
   * Takes units without waiting, or refuses. A key of the first level takes them back from keys that hold twice as
   * much.
   * @param keys one per level, the widest first. Only `total` bounds an empty key.
   */
  tryAcquire(
    keys: readonly string[],
    units = 1,
    { groups = NO_GROUPS, giveUp }: HolderOptions = {},
  ): Release | ShareRefused {
    let refused = this.#refusedBy(keys, units, groups)
    while (refused !== undefined && this.#takeBack(refused, keys, units, groups))
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
    { groups = NO_GROUPS }: GroupOptions = {},
  ): Promise<Release | ShareRefused> {
    if (signal?.aborted === true) return Promise.reject(signal.reason as Error)
    const refused = this.#refusedBy(keys, units, groups)
    const waiting = this.#waiting
    if (refused === undefined && (waiting === undefined || waiting.size === 0)) {
      return Promise.resolve(this.#take(keys, units, groups))
    }
    const canEver =
      units <= this.#total &&
      this.#levels.every(({ max }) => units <= max) &&
      groups.every((group) => units <= this.partOf(group.part))
    if (waiting === undefined || !canEver) {
      return Promise.resolve(
        refused === undefined ? this.#take(keys, units, groups) : this.#refuse(refused),
      )
    }
    return new Promise((resolve, reject) => {
      const waiter = new Waiter(keys, units, groups, (answer) => {
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
    for (const group of groups) {
      if (this.usedByGroup(group.name) + units > this.partOf(group.part)) return group.name
    }
    return this.#inUse + units > this.#total ? 'total' : undefined
  }

  #refuse(by: string): ShareRefused {
    this.#counts?.count(this.resource)
    return { refused: by }
  }

  /**
   * Ends the oldest holder that can end, of the key that holds most, which must hold twice what the asking key will.
   * @param refused the bound that is reached: only holders within it make room.
   */
  #takeBack(
    refused: string,
    keys: readonly string[],
    units: number,
    groups: readonly ShareGroup[],
  ): boolean {
    const key = keys[0] ?? ''
    const isOfGroup = groups.some(({ name }) => name === refused)
    if (key === '' || (!isOfGroup && refused !== 'total')) return false
    const willHold = this.usedBy(0, key) + units
    const largestFirst = [...this.#holders]
      .map(([of, holders]) => ({ used: this.usedBy(0, of), holders }))
      .filter(({ used }) => used >= 2 * willHold)
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
    this.#counts?.hold(this.resource, units, groups)
    for (const group of groups) {
      const used = this.#usedByGroup.get(group.name) ?? { units: 0, most: this.partOf(group.part) }
      used.units += units
      if (used.units === 0) this.#usedByGroup.delete(group.name)
      else this.#usedByGroup.set(group.name, used)
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
   * Serves waiters in turn, waiters of keys that hold nothing first. A key whose oldest waiter cannot be
   * served is passed over, so a key at its bound delays no other key. Within a key the order of arrival is kept.
   */
  #serve(): void {
    const isFree = () => this.#inUse < this.#total
    while (isFree() && (this.#serveOne(true) || this.#serveOne(false)));
  }

  #serveOne(isFirstUnit: boolean): boolean {
    const waiting = this.#waiting!
    for (let left = waiting.keys; left > 0; left -= 1) {
      const { keys, units, groups } = waiting.peek()!
      const isNext = !isFirstUnit || this.usedBy(0, keys[0] ?? '') === 0
      if (isNext && this.#refusedBy(keys, units, groups) === undefined) {
        waiting.shift()!.resolve(this.#take(keys, units, groups))
        return true
      }
      waiting.skip()
    }
    return false
  }
}

/**
 * Runs work that waits for others in a place.
 * @returns `busy` without waiting if no place is free, and when another key takes the place back. The work then ends in
 * its time, without a caller.
 */
export function inPlace<T>(
  share: FairShare,
  key: string,
  groups: readonly ShareGroup[],
  busy: T,
  run: () => Promise<T>,
): Promise<T> {
  return new Promise((resolve, reject) => {
    const giveUp = () => {
      resolve(busy)
      return true
    }
    const place = share.tryAcquire([key], 1, { groups, giveUp })
    if (isRefused(place)) return resolve(busy)
    run().finally(place).then(resolve, reject)
  })
}

/** True for a refusal: `const taken = share.tryAcquire(...); if (isRefused(taken)) ...`. */
export function isRefused(answer: Release | ShareRefused): answer is ShareRefused {
  return typeof answer !== 'function'
}

/** Counts refusals and units in use of all shares of a thread, by resource. */
export class ShareCounts {
  readonly #refused = new Map<string, number>()
  /** By resource, then by group. */
  readonly #held = new Map<string, Map<string, number>>()

  count(resource: string): void {
    this.#refused.set(resource, (this.#refused.get(resource) ?? 0) + 1)
  }

  /** @param units below 0: given back. */
  hold(resource: string, units: number, groups: readonly ShareGroup[]): void {
    let held = this.#held.get(resource)
    if (held === undefined) this.#held.set(resource, (held = new Map([['all', 0]])))
    held.set('all', held.get('all')! + units)
    for (const { name } of groups) {
      const [kind = name] = name.split(' ', 1)
      held.set(kind, (held.get(kind) ?? 0) + units)
    }
  }

  refusedOf(resource: string): number {
    return this.#refused.get(resource) ?? 0
  }

  readonly families: readonly PlainFamily[] = [
    {
      name: 'svc_share_refused_total',
      help: 'Refusals because a tenant, a group of tenants, an agent or all together hold their share of a resource.',
      type: 'counter',
      read: () => [...this.#refused].map(([resource, value]) => ({ labels: { resource }, value })),
    },
    {
      name: 'svc_share_in_use',
      help: 'Units of a resource in use: by all, by sandboxes, by tenants whose registering network is known.',
      type: 'gauge',
      read: () =>
        [...this.#held].flatMap(([resource, held]) =>
          [...held].map(([group, value]) => ({ labels: { resource, group }, value })),
        ),
    },
  ]
}
