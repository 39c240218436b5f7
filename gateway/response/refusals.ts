/** The problems that the pipeline itself answers with. */
import type { ActorUnavailable, UnavailableReason } from '../../runtime/kernel/actor.js'
import type { BodyFailure, HttpExchange } from '../http-exchange.js'
import type { Problem } from './problems.js'

export const MALFORMED_HOST: Problem = {
  name: 'bad-request',
  detail: 'The Host header is missing or malformed.',
}
export const MISDIRECTED: Problem = {
  name: 'misdirected-request',
  detail: 'This service does not serve this host.',
}
export const STARTING: Problem = {
  name: 'service-unavailable',
  detail: 'The service is starting.',
  retryAfterSecs: 1,
}

/** The methods of the server, for `OPTIONS *` and for CONNECT. */
export const ALLOW_ALL = ['allow', 'GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS'] as const
const MALFORMED: Problem = {
  name: 'bad-request',
  detail: 'The request line, a header field or the host is malformed.',
}
export const NOT_FROM_HERE: Problem = {
  name: 'policy-denied',
  reason: 'admin_address_not_allowed',
  detail: 'The scopes of deployment operators may not be used from this address.',
}
export const FAULT_PROBLEMS: { readonly [F in NonNullable<HttpExchange['fault']>]: Problem } = {
  ambiguous: MALFORMED,
  malformed: MALFORMED,
  too_large: { name: 'headers-too-large' },
  target_too_long: { name: 'uri-too-long' },
  unknown_coding: {
    name: 'not-implemented',
    detail: 'The only transfer coding is chunked.',
  },
  unknown_version: {
    name: 'version-not-supported',
    detail: 'This connection takes HTTP/1.1 and HTTP/1.0.',
    pageWords: 'error.400',
  },
  late: { name: 'request-timeout' },
  tunnel: {
    name: 'method-not-allowed',
    detail: 'CONNECT is not supported.',
    headers: Object.fromEntries([ALLOW_ALL]),
  },
}

export const BODY_PROBLEMS: { readonly [R in Exclude<BodyFailure, 'aborted'>]: Problem } = {
  too_large: { name: 'payload-too-large' },
  timeout: { name: 'request-timeout' },
  malformed: { name: 'bad-request', detail: 'The chunked encoding of the body is malformed.' },
}

const WHY_UNAVAILABLE: { readonly [R in UnavailableReason]?: string } = {
  mailbox_full: 'The service is overloaded.',
  overloaded: 'The service is overloaded.',
  dependency: 'A dependency of the service is unavailable.',
}

/** The answer where no actor answered. */
export function unavailable({ reason }: ActorUnavailable): Problem {
  if (reason === 'deadline' || reason === 'cancelled') return { name: 'gateway-timeout' }
  return { name: 'service-unavailable', detail: WHY_UNAVAILABLE[reason], retryAfterSecs: 1 }
}
