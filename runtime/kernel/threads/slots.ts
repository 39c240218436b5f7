/**
 * A collection of short-lived items, each under a small number. `Map` and `Set` do not work for
 * this: an outgrown hash table refers to its successors, so once one of them is in the old
 * generation, all later tables and their items stay until the next full collection.
 */
export class Slots<T extends object> {
  readonly #items: (T | undefined)[] = []
  /** Free numbers, reused in last-in first-out order. */
  readonly #free: number[] = []
  #size = 0

  get size(): number {
    return this.#size
  }

  /** Adds the item. The number identifies it until it is removed, and is then reused. */
  add(item: T): number {
    const slot = this.#free.pop() ?? this.#items.length
    this.#items[slot] = item
    this.#size += 1
    return slot
  }

  get(slot: number): T | undefined {
    return this.#items[slot]
  }

  /** Removes the item with this number, if there is one. */
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
