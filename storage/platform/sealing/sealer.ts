/** The port behind which columns are sealed. The rows hold ciphertext; keys live in the kms. */

/** Seals and opens column values under a tenant's data key (architecture.md, keys and secrets). */
export interface Sealer {
  /**
   * AES-256-GCM under the tenant's data key.
   * @param context names the row and column, e.g. `signing_key:<id>:private`; it is bound as
   * associated data, so that a ciphertext moved to another row does not open.
   */
  seal(tenantId: string, context: string, plaintext: Uint8Array): Promise<Uint8Array>
  /** @throws when the ciphertext was moved, changed or sealed under an unknown key. */
  open(tenantId: string, context: string, sealed: Uint8Array): Promise<Uint8Array>
}
