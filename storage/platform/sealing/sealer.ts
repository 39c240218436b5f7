/** The interface for sealed columns. Rows contain ciphertext, and the kms holds the master keys. */
import type { RewrittenContext } from './stamps.js'

/** Names row and column, such as `signing_key:<id>:private`. */
export type SealContext = string | RewrittenContext

/** Seals and opens column values under a tenant's data key. */
export interface Sealer {
  /**
   * AES-256-GCM under the tenant's data key.
   * @param context is associated data, so that a ciphertext in another row cannot be opened. Where the column is rewritten,
   * the value has a stamp (stamps.ts).
   */
  seal(tenantId: string, context: SealContext, plaintext: Uint8Array): Promise<Uint8Array>
  /** @throws if the ciphertext was moved or changed, or its key is unknown. */
  open(tenantId: string, context: SealContext, sealed: Uint8Array): Promise<Uint8Array>
}
