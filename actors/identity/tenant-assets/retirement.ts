/** Removes images whose retirement window has passed, and images of unfinished uploads. */
import type { Clock } from '../../../runtime/kernel/clock.js'
import {
  alignAssetUrls,
  deleteEndedAsset,
  findEndedAssets,
} from '../../../storage/identity/branding/tenant-assets.js'
import type { Database } from '../../../storage/platform/sql.js'
import { keyOf, type ObjectStore } from './store.js'

const DAY_MS = 86_400_000
/** An upload takes less than a minute. */
const UPLOAD_MS_MAX = 3_600_000
/** Images of a round. Those left wait for the next one. */
const PER_ROUND = 100

type AssetRetirementNeeds = {
  readonly database: Database
  readonly clock: Clock
  readonly store: ObjectStore
  /** As `publicBase`. */
  readonly base: string
  /** `tenant_assets.retirement_days`. */
  readonly retirementDays: number
}

/** One round. @returns how many images were removed. */
export function assetRetirement(needs: AssetRetirementNeeds) {
  const { database, clock, store, base, retirementDays } = needs
  let isAligned = false

  return async (signal: AbortSignal): Promise<number> => {
    const inBackground = { pool: 'background', signal } as const
    if (!isAligned) {
      // URLs of all tenants, after a change of the settings.
      await database.system((tx) => alignAssetUrls(tx, base), inBackground)
      isAligned = true
    }
    const nowMs = clock.now().getTime()
    const before = {
      retiredBefore: new Date(nowMs - retirementDays * DAY_MS),
      begunBefore: new Date(nowMs - UPLOAD_MS_MAX),
    }
    // Images of all tenants, as in the other sweeps.
    const ended = await database.system(
      (tx) => findEndedAssets(tx, before, PER_ROUND),
      inBackground,
    )
    let removed = 0
    for (const asset of ended) {
      if (signal.aborted) break
      const { tenantId, sha256, mediaType } = asset
      const isRemoved = await database.tenant(
        tenantId,
        async (tx) => {
          if (!(await deleteEndedAsset(tx, asset, before))) return false
          await store.remove(keyOf(tenantId, sha256, mediaType))
          return true
        },
        inBackground,
      )
      if (isRemoved) removed += 1
    }
    return removed
  }
}
