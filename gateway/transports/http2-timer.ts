/**
 * Works around a leak of node:http2 (Node 20.20). A session that ends is marked as destroyed first, and clears its timer
 * only while it is not destroyed. So the timer of `setTimeout` keeps each ended session in memory until it fires.
 */
/** The member of a session that this needs. */
interface EndingSession {
  once(event: 'close', listener: () => void): unknown
}

/** Call it for a new session whose `setTimeout` is used. */
export function endTimerWithSession(session: EndingSession): void {
  session.once('close', () => clearTimeout(timerOf(session)))
}

/** Undefined in a Node version that uses another name. */
function timerOf(session: EndingSession): NodeJS.Timeout | undefined {
  const key = Object.getOwnPropertySymbols(session).find(
    ({ description }) => description === 'timeout',
  )
  return key && (session as unknown as Readonly<Record<symbol, NodeJS.Timeout>>)[key]
}
