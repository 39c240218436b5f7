/**
 * When signing keys change. Pure: rows and a time in, what to do out.
 *
 *     (made) --> next --> current --> retired --> (removed)
 *
 * A key is published from the moment it is made. It becomes current when the one before it is old
 * enough and verifiers have had time to fetch it. It is published until the last token it may have
 * signed has died, and removed when nobody has reason to bring one back.
 */
import { SIGNING_ALGORITHMS, type SigningAlgorithm } from './protocol.js'

/** Cached key sets live 300 s; other processes hear of a new key within as much again. */
export const PUBLISH_AHEAD_SECS = 600
/** How long a process that cannot hear of a rotation may go on signing with the old key. */
export const STALE_MAX_SECS = 300
/**
 * The longest that [jwt] allows for any token we sign, not what is set: it may have been set
 * higher when a token was signed. Clocks may differ by the rest.
 */
export const VERIFIABLE_AFTER_SECS = 86_400 + STALE_MAX_SECS + 300
/**
 * An ID token comes back as a hint long after its end (OpenID Connect RP-Initiated Logout section 2):
 * its key is remembered, unpublished, for as long as [jwt] lets anything of a sign-in live.
 */
export const REMEMBERED_SECS = 7_776_000
const DAY_SECS = 86_400

export type KeyRow = {
  readonly kid: string
  readonly algorithm: SigningAlgorithm
  readonly state: 'next' | 'current' | 'retired'
  readonly createdAt: Date
  readonly currentSince: Date | null
  readonly verifiableUntil: Date | null
}

export type Demand = {
  readonly algorithm?: SigningAlgorithm | undefined
  readonly compromised: boolean
}

/** One step; the steps of a plan are taken in order. */
export type Step =
  | { readonly do: 'retire'; readonly kid: string; readonly verifiableUntil: Date }
  | { readonly do: 'promote'; readonly kid: string }
  | {
      readonly do: 'create'
      readonly algorithm: SigningAlgorithm
      readonly state: 'next' | 'current'
    }
  | { readonly do: 'remove'; readonly kid: string }

export type Plan = { readonly tag: 'plan'; readonly steps: readonly Step[] }
export type TooEarly = { readonly tag: 'too_early'; readonly waitSecs: number }

/** What is due by age alone. */
export function planMaintenance(rows: readonly KeyRow[], now: Date, rotationDays: number): Plan {
  const steps = SIGNING_ALGORITHMS.flatMap((algorithm) => {
    const { current, next } = keysOf(rows, algorithm)
    const isOld =
      current !== undefined && secsSince(current.currentSince, now) >= rotationDays * DAY_SECS
    const isKnown = next !== undefined && secsSince(next.createdAt, now) >= PUBLISH_AHEAD_SECS
    return isOld && isKnown ? replace(current, next, now, false) : complete(rows, algorithm)
  })
  return { tag: 'plan', steps: [...steps, ...removals(rows, now)] }
}

/** What somebody demands, whatever the age of the current keys. */
export function planRotation(
  rows: readonly KeyRow[],
  now: Date,
  { algorithm, compromised }: Demand,
): Plan | TooEarly {
  const wanted = algorithm === undefined ? SIGNING_ALGORITHMS : [algorithm]
  const steps: Step[] = []
  let waitSecs = 0
  for (const each of wanted) {
    const { current, next } = keysOf(rows, each)
    if (current === undefined) {
      steps.push(...complete(rows, each))
      continue
    }
    if (!compromised) {
      // A next key that is missing is made by maintenance, and must then be known for a while too.
      const knownSecs = next === undefined ? 0 : secsSince(next.createdAt, now)
      waitSecs = Math.max(waitSecs, PUBLISH_AHEAD_SECS - knownSecs)
    }
    steps.push(...replace(current, next, now, compromised))
  }
  if (waitSecs > 0) return { tag: 'too_early', waitSecs: Math.ceil(waitSecs) }
  return { tag: 'plan', steps: [...steps, ...removals(rows, now)] }
}

/** Out with the current key, in with the next, and a new next is published. */
function replace(
  current: KeyRow,
  next: KeyRow | undefined,
  now: Date,
  compromised: boolean,
): Step[] {
  const { algorithm } = current
  const lifetimeMs = compromised ? 0 : VERIFIABLE_AFTER_SECS * 1000
  const steps: Step[] = [
    { do: 'retire', kid: current.kid, verifiableUntil: new Date(now.getTime() + lifetimeMs) },
    next === undefined
      ? { do: 'create', algorithm, state: 'current' }
      : { do: 'promote', kid: next.kid },
    { do: 'create', algorithm, state: 'next' },
  ]
  if (compromised) steps.push({ do: 'remove', kid: current.kid })
  return steps
}

/** A first current key where there is none, and always a next one. */
function complete(rows: readonly KeyRow[], algorithm: SigningAlgorithm): Step[] {
  const { current, next } = keysOf(rows, algorithm)
  const steps: Step[] = []
  if (current === undefined && next !== undefined) steps.push({ do: 'promote', kid: next.kid })
  if (current === undefined && next === undefined) {
    steps.push({ do: 'create', algorithm, state: 'current' })
  }
  if (current === undefined || next === undefined) {
    steps.push({ do: 'create', algorithm, state: 'next' })
  }
  return steps
}

function removals(rows: readonly KeyRow[], now: Date): Step[] {
  return rows
    .filter(({ verifiableUntil }) => secsSince(verifiableUntil ?? now, now) >= REMEMBERED_SECS)
    .map(({ kid }) => ({ do: 'remove', kid }))
}

/** Whether a key is in the key set (decisions.md 8, JWKS): tokens of it may be alive. */
export function isPublished({ verifiableUntil }: Pick<KeyRow, 'verifiableUntil'>, now: Date) {
  return verifiableUntil === null || verifiableUntil > now
}

function keysOf(rows: readonly KeyRow[], algorithm: SigningAlgorithm) {
  const find = (state: 'next' | 'current') =>
    rows.find((row) => row.algorithm === algorithm && row.state === state)
  return { current: find('current'), next: find('next') }
}

function secsSince(then: Date | null, now: Date): number {
  return then === null ? Number.POSITIVE_INFINITY : (now.getTime() - then.getTime()) / 1000
}
