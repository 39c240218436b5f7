/**
 * Things that come and go all the time, each under a small number. A `Map` or `Set` does not do for
 * them: the tables that one has outgrown refer to those that follow, so that from the first that
 * grows old all of them stay, with what was in them, until the whole heap is collected.
 */
export class Slots<T extends object> {
  readonly #items: (T | undefined)[] = []
  /** Numbers that are to be given out again, the last one first. */
  readonly #free: number[] = []
  #size = 0

  get size(): number {
    return this.#size
  }

  /** Takes it in; the number names it until it is taken out, and then something else. */
  add(item: T): number {
    const slot = this.#free.pop() ?? this.#items.length
    this.#items[slot] = item
    this.#size += 1
    return slot
  }

  get(slot: number): T | undefined {
    return this.#items[slot]
  }

  /** Takes out what is under the number, if anything is. */
  take(slot: number): T | undefined {
    const item = this.#items[slot]
    if (item === undefined) return undefined
    this.#items[slot] = undefined
    this.#free.push(slot)
    this.#size -= 1
    return item
  }

  /** All of them, in no order. */
  all(): T[] {
    return this.#items.filter((item) => item !== undefined)
  }

  clear(): void {
    this.#items.length = 0
    this.#free.length = 0
    this.#size = 0
  }
}
