/** The interface for sealed columns. Rows contain ciphertext, and the kms holds the master keys. */

/** Seals and opens column values under a tenant's data key. */
export interface Sealer {
  /**
   * AES-256-GCM under the tenant's data key.
   * @param context names row and column, such as `signing_key:<id>:private`. It is associated data, so that a
   * ciphertext in another row cannot be opened.
   */
  seal(tenantId: string, context: string, plaintext: Uint8Array): Promise<Uint8Array>
  /** @throws if the ciphertext was moved or changed, or its key is unknown. */
  open(tenantId: string, context: string, sealed: Uint8Array): Promise<Uint8Array>
}
