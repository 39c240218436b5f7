/**
 * Seals values under replaced data keys again. Each batch is read, opened and sealed outside of a transaction. A
 * value is replaced only if it still has the bytes that were read, so a concurrent change is kept. The worker holds
 * a lease that expires, so a crash at any point loses nothing.
 *
 * Other processes seal under the old key until they notice the new one. A rotation ends with a pass that starts
 * after that and finds no value under an old key.
 */
import type { Clock } from '../../../runtime/kernel/clock.js'
import type { Logger } from '../../../runtime/kernel/log.js'
import type { Random } from '../../../runtime/kernel/random.js'
import {
  claimRotation,
  continueRotation,
  endRotationPass,
  type RotationRow,
} from './data-key-rotations.js'
import { NEWEST_LIFETIME_MS, SealBroken, type TenantSealer } from './seal.js'
import {
  listSealedBefore,
  replaceSealed,
  type SealedColumn,
  sealedColumnsOf,
  type SealedValue,
} from './sealed-columns.js'
import type { Database } from '../sql.js'

const BATCH_VALUES = 50
const LEASE_MS = 60_000
/** Time after which all processes seal under the newest key, with a margin for clock differences. */
const SETTLED_MS = 2 * NEWEST_LIFETIME_MS

type ResealNeeds = {
  readonly database: Pick<Database, 'tenant' | 'system'>
  readonly sealer: TenantSealer
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
}

/**
 * Works on all open rotations without a worker.
 * @returns the number of values that were sealed again.
 */
export async function resealAll(needs: ResealNeeds, signal?: AbortSignal): Promise<number> {
  const { database, clock, random } = needs
  const worker = random.uuid()
  let total = 0
  for (;;) {
    if (signal?.aborted === true) break
    const now = clock.now()
    const until = new Date(now.getTime() + LEASE_MS)
    // Crosses tenants: rotations of all tenants.
    const rotation = await database.system((tx) => claimRotation(tx, { worker, now, until }), {
      pool: 'background',
    })
    if (rotation === undefined) break
    total += await runPass(needs, rotation, worker, signal)
  }
  return total
}

async function runPass(
  { database, sealer, clock, log }: ResealNeeds,
  rotation: RotationRow,
  worker: string,
  signal: AbortSignal | undefined,
): Promise<number> {
  const { tenantId, version, startedAt } = rotation
  const settled = clock.now().getTime() - startedAt.getTime() >= SETTLED_MS
  sealer.forgetNewest(tenantId)
  let total = 0
  let unopened = 0
  for (const column of sealedColumnsOf(tenantId)) {
    let after = ''
    for (;;) {
      if (signal?.aborted === true) return total
      const values = await database.system(
        (tx) => listSealedBefore(tx, column, tenantId, { version, after, limit: BATCH_VALUES }),
        { pool: 'background' },
      )
      if (values.length === 0) break
      after = values.at(-1)!.id
      const renewed = await renew(sealer, column, tenantId, values)
      unopened += values.length - renewed.length
      const resealed = await database.system(
        async (tx) => {
          let count = 0
          for (const [value, bytes] of renewed) {
            count += await replaceSealed(tx, column, tenantId, value, bytes)
          }
          const until = new Date(clock.now().getTime() + LEASE_MS)
          const lease = { worker, until, resealed: count }
          return (await continueRotation(tx, rotation, lease)) ? count : null
        },
        { pool: 'background' },
      )
      // The lease has expired, and another worker continues.
      if (resealed === null) return total
      total += resealed
    }
  }
  if (unopened > 0) {
    log.error({ tenant_id: tenantId, values: unopened }, 'sealed values do not open')
  }
  const nextAt = settled ? null : new Date(startedAt.getTime() + SETTLED_MS)
  const end = { worker, now: clock.now(), nextAt, unopened }
  await database.system((tx) => endRotationPass(tx, rotation, end), { pool: 'background' })
  return total
}

/** Seals values under the newest key. Values that cannot be opened are left unchanged for an operator. */
async function renew(
  sealer: TenantSealer,
  { context }: SealedColumn,
  tenantId: string,
  values: readonly SealedValue[],
): Promise<[SealedValue, Uint8Array][]> {
  const renewed: [SealedValue, Uint8Array][] = []
  for (const value of values) {
    try {
      const plaintext = await sealer.open(tenantId, context(value.id), value.sealed)
      renewed.push([value, await sealer.seal(tenantId, context(value.id), plaintext)])
      plaintext.fill(0)
    } catch (error) {
      if (!(error instanceof SealBroken)) throw error
    }
  }
  return renewed
}
