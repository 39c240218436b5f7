/** The known name that an unknown one was probably meant to be. */

/** More than a third of a name wrong is no longer a slip of the finger. */
const SLIP_FRACTION = 3

export function nearest(name: string, known: Iterable<string>): string | undefined {
  let best: string | undefined
  let least = Math.max(2, Math.floor(name.length / SLIP_FRACTION)) + 1
  for (const candidate of known) {
    if (Math.abs(candidate.length - name.length) >= least) continue
    const distance = slips(name, candidate)
    if (distance < least) [best, least] = [candidate, distance]
  }
  return best
}

/** Insertions, deletions, substitutions and swaps of neighbours that turn `a` into `b`. */
export function slips(a: string, b: string): number {
  let older: number[] = []
  let previous = Array.from({ length: b.length + 1 }, (_, index) => index)
  for (let i = 1; i <= a.length; i += 1) {
    const row = [i]
    for (let j = 1; j <= b.length; j += 1) {
      const replaced = previous[j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1)
      let least = Math.min(row[j - 1]! + 1, previous[j]! + 1, replaced)
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]) {
        least = Math.min(least, older[j - 2]! + 1)
      }
      row.push(least)
    }
    older = previous
    previous = row
  }
  return previous[b.length]!
}
