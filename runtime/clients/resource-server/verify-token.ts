/** Verifies an access token without a request, for queues, sockets and frameworks of all kinds. */
import { systemClock } from '../../kernel/clock.js'
import {
  type AccessToken,
  InvalidToken,
  type TokenRules,
  verifyAccessToken,
} from './access-token.js'
import { issuerKeys } from './issuer-keys.js'
import { ACCESS_TOKEN_ALGORITHMS, checkOptions, type ResourceServerOptions } from './options.js'
import { statusLists } from './status-list.js'

const CLOCK_TOLERANCE_SECS = 10

export type VerifyTokenOptions = Pick<
  ResourceServerOptions,
  | 'issuer'
  | 'tenantId'
  | 'implied'
  | 'algorithms'
  | 'jwksUri'
  | 'statusListOrigins'
  | 'clockToleranceSecs'
  | 'fetch'
  | 'clock'
> & {
  /** The value that `aud` must contain: the URL of the API as registered. */
  readonly audience: string
  /** Scopes that the token must have, all of them. */
  readonly scopes?: readonly string[] | undefined
}

/** The access token is valid and has not all scopes. */
export class InsufficientScope extends Error {
  override readonly name = 'InsufficientScope'
}

/** Rules by their options, so that keys are fetched once. The caller keeps the options. */
const kept = new WeakMap<VerifyTokenOptions, TokenRules>()

/**
 * The verified claims of an access token (RFC 9068). Keep one `options` object: the keys of the issuer are cached with it.
 * @throws InvalidToken if the token is refused: answer 401. Also for a token that is bound to a key, because this function
 *   sees no proof: use `createResourceServer` for DPoP.
 * @throws InsufficientScope if a scope is missing: answer 403.
 * @throws Unavailable while the keys or the status list cannot be fetched: answer 503.
 * @throws TypeError for invalid options.
 */
export async function verifyToken(
  token: string,
  options: VerifyTokenOptions,
): Promise<AccessToken> {
  let rules = kept.get(options)
  if (rules === undefined) {
    checkOptions({ ...options, resource: options.issuer, scopes: options.scopes ?? [] })
    rules = tokenRules(options)
    kept.set(options, rules)
  }
  const verified = await verifyAccessToken(rules, token)
  if (verified.jkt !== null) throw new InvalidToken('The access token is bound to a key.')
  const missing = (options.scopes ?? []).filter((scope) => !verified.scopes.includes(scope))
  if (missing.length > 0)
    throw new InsufficientScope(`The access token lacks the scopes: ${missing.join(' ')}.`)
  return verified
}

/** The rules of a verification, with a cache of the issuer's keys and status lists. */
export function tokenRules(options: VerifyTokenOptions): TokenRules {
  const { issuer, audience, clock = systemClock, fetch = globalThis.fetch } = options
  const algorithms = options.algorithms ?? ACCESS_TOKEN_ALGORITHMS
  const keys = issuerKeys({ issuer, jwksUri: options.jwksUri, fetch, clock })
  return {
    issuer,
    audience,
    tenantId: options.tenantId,
    algorithms,
    implied: options.implied ?? {},
    toleranceSecs: options.clockToleranceSecs ?? CLOCK_TOLERANCE_SECS,
    keys,
    statusLists: statusLists({
      issuer,
      origins: options.statusListOrigins ?? [new URL(issuer).origin],
      keys,
      algorithms,
      fetch,
      clock,
    }),
    clock,
  }
}
