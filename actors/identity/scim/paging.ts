/** The page of a list (RFC 7644 section 3.4.2.4). */
import { invalid } from './faults.js'

const PAGE_DEFAULT = 100
const INDEX_MAX = 2_000_000_000

/** Values below the least are raised to it, and a count above the most is lowered. @throws {ScimFault} `invalidValue`. */
export function pageOf(
  { startIndex, count }: { readonly startIndex: string | null; readonly count: string | null },
  maxResults: number,
): { readonly offset: number; readonly limit: number } {
  const from = Math.max(1, whole('startIndex', startIndex) ?? 1)
  const asked = whole('count', count) ?? PAGE_DEFAULT
  return { offset: from - 1, limit: Math.min(Math.max(0, asked), maxResults) }
}

function whole(name: string, text: string | null): number | null {
  if (text === null) return null
  if (!/^-?\d{1,15}$/.test(text)) throw invalid('invalidValue', `${name} must be a whole number.`)
  return Math.min(Number(text), INDEX_MAX)
}
