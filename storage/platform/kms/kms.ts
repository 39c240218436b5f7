/** What the service asks of a key management process: wrap, unwrap, how are you. */
import { DependencyUnavailable } from '../../../runtime/kernel/dependency.js'

/** Wraps data keys under master keys that never leave the kms. */
export interface Kms {
  /**
   * Encrypts a data key under the current master key.
   * @param context is bound to the result: unwrapping asks for the same words. At most 512 bytes.
   * @param plaintext at most 4,096 bytes.
   * @throws {KmsUnavailable} when the kms gives no answer.
   */
  wrap(context: string, plaintext: Uint8Array): Promise<Uint8Array>
  /**
   * @throws {KmsUnavailable} when the kms gives no answer.
   * @throws {KmsRefused} when the bytes were changed, belong to another context or were wrapped
   * under a master key this kms does not hold.
   */
  unwrap(context: string, wrapped: Uint8Array): Promise<Uint8Array>
  /** Asks the kms, within its time limit. Never throws. */
  health(): Promise<KmsHealth>
  close(): Promise<void>
}

export type KmsHealth = KmsUp | KmsDown

export type KmsUp = {
  readonly state: 'up'
  /** Every master key it can unwrap with, oldest first. The last one wraps. */
  readonly masterKeyIds: readonly string[]
}

export type KmsDown = { readonly state: 'down'; readonly reason: string }

/** The kms gave no answer: not running, cut off, too slow, or too much asked at once. */
export class KmsUnavailable extends DependencyUnavailable {
  override readonly name = 'KmsUnavailable'
}

/** The kms answered no. */
export class KmsRefused extends Error {
  override readonly name = 'KmsRefused'
  readonly reason: KmsRefusal

  constructor(reason: KmsRefusal) {
    super(`the kms refused: ${reason}`)
    this.reason = reason
  }
}

export type KmsRefusal = 'does_not_open' | 'unknown_master_key' | 'malformed'
