/** An application that is deleted while something of it is written down. */

const FOREIGN_KEY_VIOLATION = '23503'

/** Whether a row was refused because its application is gone; what failed was rolled back. */
export function isClientGone(error: unknown): boolean {
  const { code, constraint } = (error ?? {}) as { code?: unknown; constraint?: unknown }
  return code === FOREIGN_KEY_VIOLATION && String(constraint).endsWith('_client_id_fkey')
}
