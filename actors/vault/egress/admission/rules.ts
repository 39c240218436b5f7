/** Whether a call may be made: pure decisions over what the database holds (decisions.md 4, 5, 22). */
import type { AuthorityRow } from '../../../../storage/vault/egress-authorities.js'
import type { HeldCredentialRow } from '../../../../storage/vault/vault-credentials.js'
import { hasParameter, injectionPoint } from '../inject/injection.js'
import type { HeaderPair, ProxyMethod, ProxyOutcome } from '../protocol.js'

/** A call as far as grants and credentials judge it. */
export type AskedCall = {
  readonly method: ProxyMethod
  readonly url: URL
  readonly headers: readonly HeaderPair[]
  readonly authScheme: string | null
  /** Bytes that are certain to be sent. */
  readonly bodyBytes: number
}

export type Refusal = Extract<
  ProxyOutcome,
  { tag: 'invalid' | 'denied' | 'unknown_credential' | 'budget_exceeded' }
>
export type Verdict =
  /** In the order in which they are to be tried. */
  { readonly tag: 'allowed'; readonly authorities: readonly AuthorityRow[] } | Refusal

const UNKNOWN: Refusal = { tag: 'unknown_credential' }
export const SPENT: Refusal = { tag: 'budget_exceeded', detail: 'The byte budget is used up.' }
const REQUESTS_SPENT: Refusal = {
  tag: 'budget_exceeded',
  detail: 'The grant allows no more requests.',
}
const USABLE_TYPES = new Set(['api_key', 'custom', 'ssh_key'])

export function judgeCall(
  call: AskedCall,
  row: HeldCredentialRow | undefined,
  authorities: readonly AuthorityRow[],
  now: Date,
): Verdict {
  if (row === undefined) return UNKNOWN
  if (row.status === 'revoked') {
    // Whose grant ended with the credential is told so; for everybody else there is nothing.
    const endedWithIt = authorities.some(
      ({ revokedAt }) => revokedAt?.getTime() === row.updatedAt.getTime(),
    )
    return endedWithIt ? denied('The credential is revoked.') : UNKNOWN
  }
  const active = authorities.filter((each) => isActive(each, now))
  if (active.length === 0) return UNKNOWN
  if (!USABLE_TYPES.has(row.credentialType)) {
    return denied(`A credential of the type ${row.credentialType} is not used through egress.`)
  }
  if (call.authScheme !== null && call.authScheme !== row.authScheme) {
    return denied('The auth_scheme is not that of the credential.')
  }
  const { hostname } = call.url
  if (!row.allowedHosts.includes(hostname)) return denied('The host is not allowed.')
  const duplicate = duplicateFault(call, row.authScheme)
  if (duplicate !== undefined) return duplicate
  // A lease before a grant: where both exist, the lease is used.
  const leases = active.filter(({ kind }) => kind === 'lease')
  const within = (leases.length > 0 ? leases : active).filter(({ snapshot }) =>
    snapshot.allowed_hosts.includes(hostname),
  )
  if (within.length === 0) return denied('The host was not allowed when this was granted.')
  const fitting = within.filter((each) => fits(each, call))
  if (fitting.length === 0) return denied('The grant does not cover this method and path.')
  const left = fitting.filter(hasRequests)
  if (left.length === 0) return REQUESTS_SPENT
  const affordable = left.filter((each) => hasBytes(each, call.bodyBytes))
  return affordable.length === 0 ? SPENT : { tag: 'allowed', authorities: affordable }
}

function duplicateFault({ headers, url }: AskedCall, authScheme: string): Refusal | undefined {
  const point = injectionPoint(authScheme)
  if (point?.in === 'query' && hasParameter(url.search, point.key)) {
    return invalid('/url', 'The URL has the parameter that carries the credential.')
  }
  if (point?.in === 'header') {
    const plain = (name: string) => name.toLowerCase().replaceAll('_', '-')
    if (headers.some(([name]) => plain(name) === plain(point.name))) {
      return invalid('/headers', 'The header that carries the credential is not for the caller.')
    }
  }
  return undefined
}

function isActive({ revokedAt, expiresAt }: AuthorityRow, now: Date): boolean {
  return revokedAt === null && (expiresAt === null || expiresAt > now)
}

function hasRequests({ maxRequests, requestsUsed }: AuthorityRow): boolean {
  return maxRequests === null || requestsUsed < maxRequests
}

function hasBytes({ maxBytes, bytesUsed }: AuthorityRow, bytes: number): boolean {
  return maxBytes === null || maxBytes - bytesUsed >= Math.max(1, bytes)
}

function fits({ methods, pathPrefixes }: AuthorityRow, { method, url }: AskedCall): boolean {
  const covered =
    methods === null || methods.includes(method) || (method === 'HEAD' && methods.includes('GET'))
  if (!covered) return false
  if (pathPrefixes === null) return true
  const path = decodedPath(url)
  return path !== null && pathPrefixes.some((prefix) => isBelow(path, prefix))
}

/** Unreserved characters need no escape, and mean the same without it (RFC 3986 section 6.2.2.2). Decoded once. */
export function withPlainUnreserved(path: string): string {
  return path.replaceAll(/%[0-9a-f]{2}/gi, (escape) => {
    const char = String.fromCharCode(Number.parseInt(escape.slice(1), 16))
    return /[A-Za-z0-9._~-]/.test(char) ? char : escape
  })
}

/** An encoded slash, backslash or percent: some readers take it for the character, some for a part of a segment. */
const AMBIGUOUS_ESCAPE = /%(?:2f|5c|25)/i

/**
 * The path as the upstream may come to read it; null where two readers could disagree. The URL
 * parser has resolved dot segments already, those that were hidden in escapes show here.
 */
export function decodedPath({ pathname }: URL): string | null {
  if (AMBIGUOUS_ESCAPE.test(pathname)) return null
  let path: string
  try {
    path = decodeURIComponent(pathname)
  } catch {
    return null
  }
  // oxlint-disable-next-line no-control-regex
  if (/[\\\u0000-\u001f\u007f]|\/\/|%[0-9a-f]{2}/i.test(path)) return null
  return path.split('/').some((segment) => /^\.{1,2}(;.*)?$/.test(segment)) ? null : path
}

function isBelow(path: string, prefix: string): boolean {
  const base = prefix.endsWith('/') ? prefix.slice(0, -1) : prefix
  return path === base || path.startsWith(`${base}/`)
}

export function invalid(pointer: string, detail: string): Refusal {
  return { tag: 'invalid', pointer, detail }
}

export function denied(detail: string): Refusal {
  return { tag: 'denied', detail }
}
