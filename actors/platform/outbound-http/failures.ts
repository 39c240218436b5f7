/** Maps connection errors to error types of RFC 9209 section 2.3. */
import { LOOKUPS_IN_USE } from './name-lookup.js'
import { CONNECTION_RESET } from './deferred-eof.js'
import { PROXY_REFUSED } from './tunnels.js'

/** A share of a limited resource is exhausted, of the tenant or of all. */
export const SHARE_IN_USE = 'connection_limit_reached'

const BY_CODE: Readonly<Record<string, string>> = {
  SVC_ADDRESS_REFUSED: 'destination_ip_prohibited',
  [LOOKUPS_IN_USE]: SHARE_IN_USE,
  ENOTFOUND: 'dns_error',
  EAI_AGAIN: 'dns_timeout',
  EAI_FAIL: 'dns_error',
  ECONNREFUSED: 'connection_refused',
  [PROXY_REFUSED]: 'connection_refused',
  ENETUNREACH: 'destination_ip_unroutable',
  EHOSTUNREACH: 'destination_ip_unroutable',
  ETIMEDOUT: 'connection_timeout',
  UND_ERR_CONNECT_TIMEOUT: 'connection_timeout',
  ECONNRESET: 'connection_terminated',
  [CONNECTION_RESET]: 'connection_terminated',
  EPIPE: 'connection_terminated',
  UND_ERR_SOCKET: 'connection_terminated',
  UND_ERR_HEADERS_OVERFLOW: 'http_response_header_section_size',
  UND_ERR_RES_CONTENT_LENGTH_MISMATCH: 'http_response_incomplete',
  UND_ERR_REQ_CONTENT_LENGTH_MISMATCH: 'http_request_error',
  ERR_TLS_CERT_ALTNAME_INVALID: 'tls_certificate_error',
  CERT_HAS_EXPIRED: 'tls_certificate_error',
  CERT_NOT_YET_VALID: 'tls_certificate_error',
  CERT_REVOKED: 'tls_certificate_error',
  CERT_UNTRUSTED: 'tls_certificate_error',
  DEPTH_ZERO_SELF_SIGNED_CERT: 'tls_certificate_error',
  SELF_SIGNED_CERT_IN_CHAIN: 'tls_certificate_error',
  UNABLE_TO_GET_ISSUER_CERT: 'tls_certificate_error',
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: 'tls_certificate_error',
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: 'tls_certificate_error',
}

/** The Proxy-Status error type of an error of undici, node:net, node:tls or the dialer. */
export function proxyErrorOf(error: unknown, headersReceived: boolean): string {
  for (const each of causesOf(error)) {
    const { code, name } = each as { code?: unknown; name?: unknown }
    // Not every parser error of undici has a code.
    if (name === 'HTTPParserError') return 'http_protocol_error'
    if (typeof code !== 'string') continue
    const known = BY_CODE[code]
    // A connection lost during the body is an incomplete response.
    if (known === 'connection_terminated' && headersReceived) return 'http_response_incomplete'
    if (known !== undefined) return known
    if (code.startsWith('ERR_SSL_') || code.startsWith('ERR_TLS_')) return 'tls_protocol_error'
  }
  return headersReceived ? 'http_response_incomplete' : 'destination_unavailable'
}

const CAUSES_MAX = 4

/** An error, its causes, and the first error of an attempt at several addresses. */
function causesOf(error: unknown): unknown[] {
  const found: unknown[] = []
  let next = error
  while (next instanceof Error && found.length < CAUSES_MAX) {
    found.push(next)
    if (next instanceof AggregateError) found.push(...next.errors.slice(0, 1))
    next = next.cause
  }
  return found
}
