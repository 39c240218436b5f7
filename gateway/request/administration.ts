/**
 * [admin]: whether and from where the scopes of deployment operators may be used. Elsewhere a token counts as one
 * without these scopes.
 */
import type { Principal } from '../../actors/domain/principal.js'
import { APPOINTED_SCOPES } from '../../actors/domain/scopes.js'
import type { Route } from '../route.js'
import type { AdminSettings } from '../settings.js'
import { addressTest } from './client-address.js'
import { demandsOf } from './authenticate.js'

const SCOPES: ReadonlySet<string> = new Set(APPOINTED_SCOPES)

/** Removes the scopes of deployment operators from a principal that may not use them from this address. */
export type Administration = (principal: Principal, address: string) => Principal

/** Null where they may be used from everywhere, which costs a request nothing. */
export function administration({
  enabled,
  allowed_addresses,
}: AdminSettings): Administration | null {
  if (enabled && allowed_addresses.length === 0) return null
  const isAllowed = addressTest(allowed_addresses)
  return (principal, address) => {
    if (!principal.scopes.some((scope) => SCOPES.has(scope))) return principal
    if (enabled && isAllowed(address)) return principal
    return { ...principal, scopes: principal.scopes.filter((scope) => !SCOPES.has(scope)) }
  }
}

/** True for an operation that only deployment operators may use. */
export function isForOperators({ security }: Route): boolean {
  const scopes = demandsOf(security)?.scopes ?? []
  return scopes.length > 0 && scopes.every((scope) => SCOPES.has(scope))
}
