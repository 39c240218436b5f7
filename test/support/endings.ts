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

/** A service beside another one ends before it. */
export async function endAll(): Promise<void> {
  await Promise.all([...clients].map((end) => end()))
  for (const ends of [services, helpers]) {
    for (const end of [...ends].toReversed()) await end()
  }
}
