/**
 * A text that many messages carry, such as the verified token of a caller. Between two threads it travels once, and
 * then as a number. The other side gets the same object each time, so what it derives from the text can be kept in a
 * `WeakMap`.
 */
export class SharedText {
  readonly text: string

  constructor(text: string) {
    this.text = text
  }
}

/** Texts that both ends of a direction remember. One more replaces the oldest. */
const REMEMBERED_MAX = 1_024
/** A reference has exactly this size. A definition is longer: number, marker, text. */
const REFERENCE_BYTES = 4
const DEFINITION_BYTES_MIN = REFERENCE_BYTES + 1

type Remembered = { readonly shared: SharedText; readonly reference: Buffer }

/** The sending end of a direction. */
export class SharedTextWriter {
  readonly #byText = new WeakMap<SharedText, Remembered>()
  readonly #slots: (Remembered | undefined)[] = []
  #next = 0
  /** Texts that the current record defines. */
  #defined: SharedText[] = []

  /** Called before a record is written. */
  begin(): void {
    if (this.#defined.length > 0) this.#defined = []
  }

  write(shared: SharedText): Buffer {
    return this.#byText.get(shared)?.reference ?? this.#define(shared)
  }

  /** The record is not sent: the other end does not learn its definitions. */
  retract(): void {
    for (const shared of this.#defined) this.#byText.delete(shared)
    this.begin()
  }

  #define(shared: SharedText): Buffer {
    const slot = this.#next
    this.#next = (slot + 1) % REMEMBERED_MAX
    const replaced = this.#slots[slot]
    if (replaced !== undefined && this.#byText.get(replaced.shared) === replaced)
      this.#byText.delete(replaced.shared)
    const reference = Buffer.alloc(REFERENCE_BYTES)
    reference.writeUInt32BE(slot)
    const remembered: Remembered = { shared, reference }
    this.#slots[slot] = remembered
    this.#byText.set(shared, remembered)
    this.#defined.push(shared)
    return Buffer.concat([reference, Buffer.alloc(1), Buffer.from(shared.text, 'utf8')])
  }
}

/** The receiving end of a direction. It reads what a `SharedTextWriter` wrote, in the same order. */
export class SharedTextReader {
  readonly #slots: SharedText[] = []

  read(bytes: Uint8Array): SharedText {
    const view = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    const slot = view.readUInt32BE(0)
    if (view.byteLength === REFERENCE_BYTES) return this.#slots[slot]!
    const shared = new SharedText(view.toString('utf8', DEFINITION_BYTES_MIN))
    this.#slots[slot] = shared
    return shared
  }
}
