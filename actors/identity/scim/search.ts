/** Searches the users of a tenant with a filter that no index answers, within a limit of time. */
import type { Clock } from '../../../runtime/kernel/clock.js'
import type { ScimUserRow } from '../../../storage/identity/scim-users.js'
import { invalid } from './faults.js'
import type { JsonObject } from './protocol.js'
import type { Predicate } from './resource-filter.js'

type Page = { readonly offset: number; readonly limit: number }

/** Users of one read. The first read has no limit of time. */
const BATCH = 1_000
const SEARCH_MS_MAX = 200

/**
 * The page of what is found, and how much is found in all.
 * @param read reads users, oldest first.
 * @throws {ScimFault} `tooMany` when the search takes too long.
 */
export async function searched(
  { offset, limit }: Page,
  clock: Pick<Clock, 'monotonicMs'>,
  predicate: Predicate,
  shownOf: (row: ScimUserRow) => JsonObject,
  read: (batch: Page) => Promise<readonly ScimUserRow[]>,
): Promise<{ readonly found: readonly JsonObject[]; readonly total: number }> {
  const endMs = clock.monotonicMs() + SEARCH_MS_MAX
  const found: JsonObject[] = []
  let total = 0
  for (let from = 0; ; from += BATCH) {
    const rows = await read({ offset: from, limit: BATCH })
    for (const row of rows) {
      const resource = shownOf(row)
      if (!predicate(resource)) continue
      if (total >= offset && found.length < limit) found.push(resource)
      total += 1
    }
    if (rows.length < BATCH) return { found, total }
    if (clock.monotonicMs() > endMs)
      throw invalid(
        'tooMany',
        'Too many users for this filter. Add a condition on userName, externalId, id or emails.',
      )
  }
}
