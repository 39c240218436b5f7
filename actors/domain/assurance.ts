/**
 * How sure we are who sits at the browser, and since when. `aal1` is one factor, `aal2` a password
 * and a second factor or a passkey that knew its person, `aal3` such a passkey that cannot leave its
 * device (decisions.md 7.2, `acr`; NIST SP 800-63B for the names).
 */

export type AssuranceLevel = 1 | 2 | 3

export type Acr = 'aal1' | 'aal2' | 'aal3'

export const acrOf = (level: AssuranceLevel): Acr => `aal${level}`

/** What a page or an authorization request asks of the session it is shown in. */
export type SessionDemand = {
  /** The least level that will do. */
  readonly level: AssuranceLevel
  /** The authentication is at most this old: `max_age`, `approval_max_auth_age_secs`. */
  readonly maxAgeSecs?: number | undefined
  /**
   * When `maxAgeSecs` is measured: for `max_age` the moment in which the request came, so that a
   * sign-in made for it is young enough however long it takes, `max_age=0` included. Default: now.
   */
  readonly asOf?: Date | undefined
  /** The authentication happened at or after this moment: for `prompt=login`, the same moment. */
  readonly since?: Date | undefined
}

/** The part of a session that a demand looks at. */
export type Evidence = { readonly level: AssuranceLevel; readonly authTime: Date }

/** What is missing: a whole new sign-in (`stale`), a second factor (`level`), or nothing. */
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

/** What an account has set up beside its password. */
export type OwnFactors = {
  readonly totp: boolean
  readonly passkey: boolean
  /** A passkey that never leaves its device. */
  readonly deviceBound: boolean
}

/** The highest level that an account can reach with what it has set up. */
export function reachOf({ totp, passkey, deviceBound }: OwnFactors): AssuranceLevel {
  if (deviceBound) return 3
  return totp || passkey ? 2 : 1
}
