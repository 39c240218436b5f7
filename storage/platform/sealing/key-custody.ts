/** Whether this kms may serve this database. Asked once, at start. interface.md, Deployment 6. */
import { countDataKeysByMaster } from './data-keys.js'
import { type Kms, KmsUnavailable } from '../kms/kms.js'
import type { Database } from '../sql.js'

/** The keys at hand do not fit the data. Says what to do. */
export class KeyCustodyRefused extends Error {
  override readonly name = 'KeyCustodyRefused'
}

/**
 * Refuses a kms that cannot open what the database holds: a data key was wrapped under a master key that
 * this kms does not hold.
 * @throws {KeyCustodyRefused}
 * @throws {KmsUnavailable} when the kms does not answer: then it cannot be known.
 */
export async function requireFittingKms(database: Database, kms: Kms): Promise<void> {
  const health = await kms.health()
  if (health.state === 'down') throw new KmsUnavailable(health.reason)
  const held = new Set(health.masterKeyIds)
  // Crosses tenants: the question is about all data keys.
  const wrappers = await database.system(countDataKeysByMaster)
  const foreign = wrappers.filter(({ masterKeyId }) => !held.has(masterKeyId))
  if (foreign.length === 0) return
  const list = foreign.map((each) => `${each.dataKeys} under ${each.masterKeyId}`).join(', ')
  throw new KeyCustodyRefused(
    `the database holds data keys that this kms cannot open (${list}): ` +
      'give the kms the directory with those master keys, or use another database',
  )
}
