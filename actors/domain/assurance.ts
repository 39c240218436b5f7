/**
 * Authentication assurance levels (`acr`), named after NIST SP 800-63B. `aal1` is one factor. `aal2` is a password with a
 * second factor, or a passkey with user verification. `aal3` is such a passkey that is bound to its device.
 */

import type { Principal } from './principal.js'

export type AssuranceLevel = 1 | 2 | 3

export type Acr = 'aal1' | 'aal2' | 'aal3'

export const acrOf = (level: AssuranceLevel): Acr => `aal${level}`

/** The requirements of a page or an authorization request on the session. */
export type SessionDemand = {
  /** The minimum level. */
  readonly level: AssuranceLevel
  /** Maximum age of the authentication: `max_age`, `approval_max_auth_age_secs`. */
  readonly maxAgeSecs?: number | undefined
  /**
   * The time at which `maxAgeSecs` is measured. For `max_age` it is the time of the request, so that a sign-in for
   * the request always satisfies it, also with `max_age=0`. Default: now.
   */
  readonly asOf?: Date | undefined
  /** The earliest time of the authentication: for `prompt=login`, the time of the request. */
  readonly since?: Date | undefined
}

/** The evidence of a session for a demand. */
type Evidence = { readonly level: AssuranceLevel; readonly authTime: Date }

/** The unmet requirement: a new sign-in (`stale`), a second factor (`level`), or none. */
export function unmetDemand(
  { level, authTime }: Evidence,
  demand: SessionDemand,
  now: Date,
): 'stale' | 'level' | null {
  const { maxAgeSecs, asOf = now, since } = demand
  if (maxAgeSecs !== undefined && asOf.getTime() - authTime.getTime() > maxAgeSecs * 1000) {
    return 'stale'
  }
  if (since !== undefined && authTime < since) return 'stale'
  return level < demand.level ? 'level' : null
}

/** Maximum age of a person's sign-in with two factors, for operations that need a recent one. */
export const FRESH_FACTORS_SECS = 300

/** True for a person who signed in with two factors a moment ago. Always true for agents and services. */
export function hasFreshFactors(
  { subjectType, acr, authTimeSecs }: Pick<Principal, 'subjectType' | 'acr' | 'authTimeSecs'>,
  nowSecs: number,
): boolean {
  if (subjectType !== 'human') return true
  const isFresh = authTimeSecs !== null && nowSecs - authTimeSecs <= FRESH_FACTORS_SECS
  return isFresh && (acr === 'aal2' || acr === 'aal3')
}

/** The factors of an account besides its password. */
type OwnFactors = {
  readonly totp: boolean
  readonly passkey: boolean
  /** A device-bound passkey. */
  readonly deviceBound: boolean
}

/** The highest level that an account can reach with its factors. */
export function reachOf({ totp, passkey, deviceBound }: OwnFactors): AssuranceLevel {
  if (deviceBound) return 3
  return totp || passkey ? 2 : 1
}
