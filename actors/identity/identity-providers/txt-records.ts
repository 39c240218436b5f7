/** DNS TXT queries, by the resolvers of the system or of [verified_domains]. */
import { Resolver } from 'node:dns/promises'

const TIMEOUT_MS = 2_000
const TRIES = 2
const RECORDS_MAX = 100

/** The TXT strings at a name, with their parts joined. Null when no resolver answers. */
export type TxtLookup = (name: string) => Promise<readonly string[] | null>

const NOTHING_THERE = new Set(['ENOTFOUND', 'ENODATA'])

export function txtLookup(servers: readonly string[]): TxtLookup {
  return async (name) => {
    const resolver = new Resolver({ timeout: TIMEOUT_MS, tries: TRIES })
    if (servers.length > 0) resolver.setServers(servers)
    try {
      const records = await resolver.resolveTxt(name)
      return records.slice(0, RECORDS_MAX).map((parts) => parts.join(''))
    } catch (error) {
      return NOTHING_THERE.has(String((error as { code?: unknown }).code)) ? [] : null
    }
  }
}
