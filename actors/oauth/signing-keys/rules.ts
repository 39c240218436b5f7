/**
 * Decides when signing keys change. Pure: rows and a time in, a plan out.
 *
 *     (created) --> next --> current --> retired --> (deleted)
 *
 * A key is published when it is created. It becomes current when its predecessor is old enough and
 * verifiers had time to fetch it. It stays published until its last token has expired, and is deleted
 * when no id_token_hint can need it.
 */
import { DEFAULT_ALGORITHMS, SIGNING_ALGORITHMS, type SigningAlgorithm } from './protocol.js'

/** Clients cache key sets for 300 s, and processes read a new key within another 300 s. */
export const PUBLISH_AHEAD_SECS = 600
/** How long a process without database access may still sign with an old key. */
export const STALE_MAX_SECS = 300
/**
 * The longest token lifetime that [jwt] allows, not the current setting, which may have been higher when
 * a token was signed. The rest covers stale processes and clock differences.
 */
export const VERIFIABLE_AFTER_SECS = 86_400 + STALE_MAX_SECS + 300
/** The longest lifetime that [credentials] allows. */
const CREDENTIAL_SECS_MAX = 31_536_000
const DAY_SECS = 86_400
/**
 * An expired ID token may be sent as id_token_hint (OpenID Connect RP-Initiated Logout section 2). Its key is kept,
 * unpublished, until then.
 */
const HINT_SECS = 90 * DAY_SECS
/** Credentials that a key of the service signed before tenants had keys live longest. */
export const REMEMBERED_SECS = CREDENTIAL_SECS_MAX

/** What a set of keys signs. */
export type Use = {
  readonly algorithms: readonly SigningAlgorithm[]
  /** How long a key verifies after it has stopped to sign. */
  readonly verifiableAfterSecs: number
}
const serviceUse = (rows: readonly KeyRow[]): Use => ({
  algorithms: SIGNING_ALGORITHMS.filter(
    (each) => isDefault(each) || keysOf(rows, each).current !== undefined,
  ),
  verifiableAfterSecs: VERIFIABLE_AFTER_SECS,
})
const isDefault = (algorithm: SigningAlgorithm) =>
  DEFAULT_ALGORITHMS.some((each) => each === algorithm)
/** Credentials of a tenant, and the status lists and metadata of its issuer. */
export const CREDENTIAL_USE: Use = {
  algorithms: ['ES256'],
  verifiableAfterSecs: CREDENTIAL_SECS_MAX + STALE_MAX_SECS + 300,
}

/** Security event tokens, which do not expire. Receivers get them within days, or not at all. */
export const SECURITY_EVENT_USE: Use = {
  algorithms: ['RS256'],
  verifiableAfterSecs: 30 * DAY_SECS,
}

export type KeyRow = {
  readonly kid: string
  readonly algorithm: SigningAlgorithm
  readonly state: 'next' | 'current' | 'retired'
  readonly createdAt: Date
  readonly currentSince: Date | null
  readonly verifiableUntil: Date | null
}

type Demand = {
  readonly algorithm?: SigningAlgorithm | undefined
  readonly compromised: boolean
}

/** One step. The steps of a plan are executed in order. */
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

/** The plan of maintenance: what is due by age. */
export function planMaintenance(
  rows: readonly KeyRow[],
  now: Date,
  rotationDays: number,
  { algorithms, verifiableAfterSecs }: Use = serviceUse(rows),
): Plan {
  const steps = algorithms.flatMap((algorithm) => {
    const { current, next } = keysOf(rows, algorithm)
    const isOld =
      current !== undefined && secsSince(current.currentSince, now) >= rotationDays * DAY_SECS
    const isKnown = next !== undefined && secsSince(next.createdAt, now) >= PUBLISH_AHEAD_SECS
    return isOld && isKnown
      ? replace(current, next, now, verifiableAfterSecs)
      : complete(rows, algorithm)
  })
  return { tag: 'plan', steps: [...steps, ...removals(rows, now)] }
}

/** The plan of the first use of an algorithm: its keys, unless it has them. */
export const planFirstUse = (rows: readonly KeyRow[], algorithm: SigningAlgorithm): Plan => ({
  tag: 'plan',
  steps: complete(rows, algorithm),
})

/** The plan of a requested rotation, independent of the age of the keys. */
export function planRotation(
  rows: readonly KeyRow[],
  now: Date,
  { algorithm, compromised }: Demand,
): Plan | TooEarly {
  const wanted = algorithm === undefined ? serviceUse(rows).algorithms : [algorithm]
  const steps: Step[] = []
  let waitSecs = 0
  for (const each of wanted) {
    const { current, next } = keysOf(rows, each)
    if (current === undefined) {
      steps.push(...complete(rows, each))
      continue
    }
    if (!compromised) {
      // Maintenance creates a missing next key, which must then be published for a while too.
      const knownSecs = next === undefined ? 0 : secsSince(next.createdAt, now)
      waitSecs = Math.max(waitSecs, PUBLISH_AHEAD_SECS - knownSecs)
    }
    steps.push(...replace(current, next, now, compromised ? 0 : VERIFIABLE_AFTER_SECS))
    if (compromised) steps.push({ do: 'remove', kid: current.kid })
  }
  if (waitSecs > 0) return { tag: 'too_early', waitSecs: Math.ceil(waitSecs) }
  return { tag: 'plan', steps: [...steps, ...removals(rows, now)] }
}

/** Retires the current key, promotes the next one and creates a new next one. */
function replace(
  current: KeyRow,
  next: KeyRow | undefined,
  now: Date,
  verifiableSecs: number,
): Step[] {
  const { algorithm } = current
  const verifiableUntil = new Date(now.getTime() + verifiableSecs * 1000)
  return [
    { do: 'retire', kid: current.kid, verifiableUntil },
    next === undefined
      ? { do: 'create', algorithm, state: 'current' }
      : { do: 'promote', kid: next.kid },
    { do: 'create', algorithm, state: 'next' },
  ]
}

/** Creates a missing current key and a missing next key. */
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

/** True if the key is in the published JWK Set, because valid tokens may refer to it. */
export function isPublished({ verifiableUntil }: Pick<KeyRow, 'verifiableUntil'>, now: Date) {
  return verifiableUntil === null || verifiableUntil > now
}

/** True if the service verifies with the key: tokens and hints refer to it. */
export function isVerifying({ verifiableUntil }: Pick<KeyRow, 'verifiableUntil'>, now: Date) {
  return verifiableUntil === null || secsSince(verifiableUntil, now) < HINT_SECS
}

function keysOf(rows: readonly KeyRow[], algorithm: SigningAlgorithm) {
  const find = (state: 'next' | 'current') =>
    rows.find((row) => row.algorithm === algorithm && row.state === state)
  return { current: find('current'), next: find('next') }
}

function secsSince(then: Date | null, now: Date): number {
  return then === null ? Number.POSITIVE_INFINITY : (now.getTime() - then.getTime()) / 1000
}
