/** What a test file opens ends with it: its clients, then its services, then what these need. */
type End = () => Promise<void>

const clients = new Set<End>()
const services = new Set<End>()
const helpers = new Set<End>()

/** @returns ends it, once. The end of the file does too. */
function endingIn(ends: Set<End>, end: End): End {
  let ending: Promise<void> | undefined
  const once = () => {
    ends.delete(once)
    ending ??= end()
    return ending
  }
  ends.add(once)
  return once
}

export const clientEnds = (end: End): End => endingIn(clients, end)
export const serviceEnds = (end: End): End => endingIn(services, end)
export const helperEnds = (end: End): End => endingIn(helpers, end)

/**
 * A second process of a deployment ends before the first. What fails to end, such as a client that met a fault of the
 * contract, leaves nothing else open: an open service keeps the process, and the run waits for it.
 * @throws AggregateError with all faults
 */
export async function endAll(): Promise<void> {
  const faults: unknown[] = []
  const ended = (end: End) => end().catch((fault: unknown) => void faults.push(fault))
  await Promise.all([...clients].map(ended))
  for (const ends of [services, helpers]) {
    for (const end of [...ends].toReversed()) await ended(end)
  }
  if (faults.length === 1) throw faults[0]
  if (faults.length > 1) throw new AggregateError(faults, faults.map(String).join('\n'))
}
