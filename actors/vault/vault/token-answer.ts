/** Interprets the response of an upstream's token endpoint (RFC 6749 sections 5.1 and 5.2). */
import type { RefreshFailure } from './protocol.js'
import type { Clock } from '../../../runtime/kernel/clock.js'
import type { ClientAuth } from '../../../storage/vault/managed-tokens.js'
import type { TokenSource } from './token-source.js'

const TOKEN_CHARS_MAX = 16 * 1024
const LIFETIME_SECS_MAX = 365 * 86_400
const RETRY_SECS_MAX = 300
/** Syntax of an error code that is passed on; error descriptions are not. */
const CODE = /^[a-z][a-z0-9_]{0,63}$/

export type EndpointAnswer =
  | {
      readonly tag: 'answer'
      readonly status: number
      readonly retryAfter: string | null
      /** Undefined when the body is not JSON or too large. */
      readonly document: unknown
    }
  /** `fault`: an error type of RFC 9209 section 2.3, or `timeout`. */
  | { readonly tag: 'none'; readonly fault: string }

export type TokenAnswer =
  | {
      readonly tag: 'granted'
      readonly accessToken: string
      readonly obtainedAt: Date
      /** Null without `expires_in`. */
      readonly expiresAt: Date | null
      /** The new refresh token; null to keep the current one. */
      readonly refreshToken: string | null
      readonly scope: string | null
      readonly clientAuth: ClientAuth
    }
  | RefreshFailure

/** The answer in the form of RFC 6749. GitHub answers in another one. */
export function asOAuth(
  { kind }: TokenSource,
  answer: EndpointAnswer,
  clock: Clock,
): EndpointAnswer {
  if (kind !== 'github_app' || answer.tag === 'none' || !isObject(answer.document)) return answer
  const { token, expires_at: end } = answer.document
  const leftMs = Date.parse(String(end)) - clock.now().getTime()
  const document = { access_token: token, token_type: 'bearer', expires_in: leftMs / 1000 }
  return { ...answer, document }
}

export function judgeEndpointAnswer(
  answer: EndpointAnswer,
  clientAuth: ClientAuth,
  clock: Clock,
): TokenAnswer {
  if (answer.tag === 'none') {
    return answer.fault === 'destination_ip_prohibited'
      ? { tag: 'prohibited', fault: answer.fault }
      : { tag: 'unavailable', fault: answer.fault, retryAfterSecs: null }
  }
  const { status, retryAfter, document } = answer
  const members = isObject(document) ? document : null
  // GitHub limits rates with 403.
  const isLimited = status === 429 || (status === 403 && retryAfter !== null)
  if (status === 408 || isLimited || status >= 500) {
    return {
      tag: 'unavailable',
      fault: `status_${status}`,
      retryAfterSecs: /^\d{1,6}$/.test(retryAfter ?? '')
        ? Math.min(Number(retryAfter), RETRY_SECS_MAX)
        : null,
    }
  }
  const error = members?.['error']
  // Some upstreams send errors with status 200.
  if ((status >= 400 || status === 200) && typeof error === 'string') {
    return { tag: 'refused', error: CODE.test(error) ? error : 'unnamed_error' }
  }
  if (status === 401) return { tag: 'refused', error: 'invalid_client' }
  if (status >= 400) return { tag: 'refused', error: `status_${status}` }
  if (status !== 200 && status !== 201) return { tag: 'malformed', fault: `status_${status}` }
  return members === null
    ? { tag: 'malformed', fault: 'not_json' }
    : granted(members, clientAuth, clock)
}

function granted(
  members: Readonly<Record<string, unknown>>,
  clientAuth: ClientAuth,
  clock: Clock,
): TokenAnswer {
  const malformed = (fault: string): TokenAnswer => ({ tag: 'malformed', fault })
  const { access_token: accessToken, token_type: type, refresh_token: refresh, scope } = members
  if (!isToken(accessToken)) return malformed('access_token')
  // RFC 6749 section 7.1: a client must not use an unknown token type. Some upstreams leave it out.
  const isBearer = typeof type === 'string' && type.toLowerCase() === 'bearer'
  if (!isBearer && type !== undefined && type !== null) return malformed('token_type')
  if (refresh !== undefined && refresh !== null && !isToken(refresh)) {
    return malformed('refresh_token')
  }
  const lifetime = lifetimeSecs(members['expires_in'])
  if (lifetime === undefined) return malformed('expires_in')
  const obtainedAt = clock.now()
  return {
    tag: 'granted',
    accessToken,
    obtainedAt,
    expiresAt: lifetime === null ? null : new Date(obtainedAt.getTime() + lifetime * 1000),
    refreshToken: refresh ?? null,
    scope: typeof scope === 'string' && scope.length <= 4096 ? scope : null,
    clientAuth,
  }
}

/** Null when absent, undefined when invalid. Accepts a number in quotes, which is common. */
function lifetimeSecs(value: unknown): number | null | undefined {
  if (value === undefined || value === null) return null
  const secs = typeof value === 'string' && /^\d{1,10}$/.test(value) ? Number(value) : value
  if (typeof secs !== 'number' || !Number.isFinite(secs) || secs <= 0) return undefined
  return Math.min(Math.floor(secs), LIFETIME_SECS_MAX)
}

/** RFC 6749 appendix A.12: printable ASCII. */
function isToken(value: unknown): value is string {
  return (
    typeof value === 'string' && value.length <= TOKEN_CHARS_MAX && /^[\x20-\x7e]+$/.test(value)
  )
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
