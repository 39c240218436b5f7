/** The interface of the key management service (kms). */
import { DependencyUnavailable } from '../../../runtime/kernel/dependency.js'

/** Wraps data keys under master keys, which never leave the kms. */
export interface Kms {
  /**
   * Encrypts a data key under the current master key.
   * @param context is associated data, which `unwrap` must repeat. At most 512 bytes.
   * @param plaintext at most 4,096 bytes.
   * @throws {KmsUnavailable} if the kms is unavailable.
   */
  wrap(context: string, plaintext: Uint8Array): Promise<Uint8Array>
  /**
   * @throws {KmsUnavailable} if the kms is unavailable.
   * @throws {KmsRefused} if the bytes were changed, the context differs, or this kms lacks the master key.
   */
  unwrap(context: string, wrapped: Uint8Array): Promise<Uint8Array>
  /** Checks the kms within its time limit. Never throws. */
  health(): Promise<KmsHealth>
  close(): Promise<void>
}

export type KmsHealth = KmsUp | KmsDown

type KmsUp = {
  readonly state: 'up'
  /** All master keys of the kms, oldest first. The last one wraps. */
  readonly masterKeyIds: readonly string[]
}

type KmsDown = { readonly state: 'down'; readonly reason: string }

/** The kms is not running, not reachable, or overloaded. */
export class KmsUnavailable extends DependencyUnavailable {
  override readonly name = 'KmsUnavailable'
}

/** The kms refused the request. */
export class KmsRefused extends Error {
  override readonly name = 'KmsRefused'
  readonly reason: KmsRefusal

  constructor(reason: KmsRefusal) {
    super(`the kms refused: ${reason}`)
    this.reason = reason
  }
}

type KmsRefusal = 'does_not_open' | 'unknown_master_key' | 'malformed'
