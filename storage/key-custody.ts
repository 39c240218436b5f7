/** Whether this kms may serve this database. Asked once, at start. interface.md, Deployment 6. */
import { countDataKeysByMaster, hasTenants } from './data-keys.js'
import { type Kms, KmsUnavailable } from './kms/kms.js'
import type { Database } from './sql.js'

/** The keys at hand do not fit the data. Says what to do. */
export class KeyCustodyRefused extends Error {
  override readonly name = 'KeyCustodyRefused'
}

/**
 * Refuses a kms that cannot open what the database holds.
 *
 * Ephemeral keys: refused once application data exists, that is, as soon as there is a data key
 * (something has been sealed, with keys that died with their process) or a tenant besides the
 * control plane. A kms of one's own: refused when a data key was wrapped under a master key that
 * it does not hold.
 * @throws {KeyCustodyRefused}
 * @throws {KmsUnavailable} when the kms does not answer: then nobody can tell.
 */
export async function requireFittingKms(database: Database, kms: Kms): Promise<void> {
  const health = await kms.health()
  if (health.state === 'down') throw new KmsUnavailable(health.reason)
  if (health.ephemeral) return refuseEphemeralKeys(database)
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

/** @throws {KeyCustodyRefused} once there is application data. */
export async function refuseEphemeralKeys(database: Database): Promise<void> {
  // Crosses tenants: one row of anybody is enough.
  const [wrappers, tenants] = await database.system(async (tx) => [
    await countDataKeysByMaster(tx),
    await hasTenants(tx),
  ])
  if (wrappers.length === 0 && !tenants) return
  throw new KeyCustodyRefused(
    'the database holds application data, and ephemeral keys would be lost with this process: ' +
      'configure [kms] (svc kms keygen --dir D), or use a freshly migrated database',
  )
}
