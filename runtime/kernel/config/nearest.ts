/** Spelling suggestions: the known name that an unknown one was probably meant to be. */
import { distance } from 'fastest-levenshtein'

/** At most a third of a name may be wrong, and two characters of a short one (two swapped letters). */
const WRONG_FRACTION = 3
const WRONG_MIN = 2

export function nearest(name: string, known: Iterable<string>): string | undefined {
  let best: string | undefined
  let least = Math.max(WRONG_MIN, Math.floor(name.length / WRONG_FRACTION)) + 1
  for (const candidate of known) {
    if (Math.abs(candidate.length - name.length) >= least) continue
    const edits = distance(name, candidate)
    if (edits < least) [best, least] = [candidate, edits]
  }
  return best
}
