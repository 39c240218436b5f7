/**
 * Bytes that must not leak by accident. A `Secret` prints, serialises and inspects as `[secret]`,
 * clones to an empty object, is rejected in messages, and can be wiped.
 *
 *  JavaScript cannot promise that no copy remains: a string made from the bytes lives until it is
 * collected. Pass the bytes on as bytes.
 */
import { inspect } from 'node:util'

const SHOWN = '[secret]'

/** Thrown when a secret is opened after it was wiped. */
export class SecretWiped extends Error {
  override readonly name = 'SecretWiped'
}

export class Secret {
  #bytes: Uint8Array | undefined

  private constructor(bytes: Uint8Array) {
    this.#bytes = bytes
  }

  /** Takes ownership of the bytes: the caller's copy is wiped. */
  static take(bytes: Uint8Array): Secret {
    const own = new Uint8Array(bytes)
    bytes.fill(0)
    return new Secret(own)
  }

  /** From a text, such as a settings value. The string itself cannot be wiped. */
  static ofText(text: string): Secret {
    return new Secret(new TextEncoder().encode(text))
  }

  get wiped(): boolean {
    return this.#bytes === undefined
  }

  /**
   * Calls `use` with the bytes and wipes them afterwards, also when it throws. Do not keep the
   * bytes.
   * @throws {SecretWiped}
   */
  open<T>(use: (bytes: Uint8Array) => T): T {
    return this.#lend(use, () => this.wipe())
  }

  /**
   * Calls `use` with the bytes and keeps them, for keys that serve many messages.
   * @throws {SecretWiped}
   */
  borrow<T>(use: (bytes: Uint8Array) => T): T {
    return this.#lend(use, () => {})
  }

  wipe(): void {
    this.#bytes?.fill(0)
    this.#bytes = undefined
  }

  #lend<T>(use: (bytes: Uint8Array) => T, after: () => void): T {
    if (this.#bytes === undefined) throw new SecretWiped('the secret has been wiped')
    let result: T
    try {
      result = use(this.#bytes)
    } catch (error) {
      after()
      throw error
    }
    if (result instanceof Promise) return result.finally(after) as T
    after()
    return result
  }

  toString(): string {
    return SHOWN
  }

  toJSON(): string {
    return SHOWN
  }

  [Symbol.toPrimitive](): string {
    return SHOWN
  }

  [inspect.custom](): string {
    return SHOWN
  }
}
