/** Checks at start that the kms has the master keys of the database. */
import { countDataKeysByMaster } from './data-keys.js'
import { type Kms, KmsUnavailable } from '../kms/kms.js'
import type { Database } from '../sql.js'

/** The kms lacks master keys of the database. The message has the remedy. */
export class KeyCustodyRefused extends Error {
  override readonly name = 'KeyCustodyRefused'
}

/**
 * Requires a kms that has all master keys under which data keys of the database are wrapped.
 * @throws {KeyCustodyRefused}
 * @throws {KmsUnavailable}
 */
export async function requireFittingKms(database: Database, kms: Kms): Promise<void> {
  const health = await kms.health()
  if (health.state === 'down') throw new KmsUnavailable(health.reason)
  const available = new Set(health.masterKeyIds)
  // Crosses tenants: all data keys are checked.
  const wrappers = await database.system(countDataKeysByMaster)
  const foreign = wrappers.filter(({ masterKeyId }) => !available.has(masterKeyId))
  if (foreign.length === 0) return
  const list = foreign.map((each) => `${each.dataKeys} under ${each.masterKeyId}`).join(', ')
  throw new KeyCustodyRefused(
    `the database contains data keys that this kms cannot unwrap (${list}): ` +
      'give the kms the directory with those master keys, or use another database',
  )
}
