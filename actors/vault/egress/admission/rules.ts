/** Authorization of a call. All functions are pure (docs/reference/vault.md). */
import { denied } from '../../../domain/vault/denied.js'
import type { BudgetRefusal } from '../../../domain/vault/budgets.js'
import type { AuthorityRow } from '../../../../storage/vault/egress-authorities.js'
import type { HeldCredentialRow } from '../../../../storage/vault/vault-credentials.js'
import { type ProxyMethod, readAuthScheme } from '../../../domain/vault/egress.js'
import { APPROVAL_MODES } from '../../../domain/vault/approvals.js'
import { isForEgress } from '../../../domain/entities/vault.js'
import { hasParameter } from '../inject/injection.js'
import type { HeaderPair, ProxyOutcome } from '../protocol.js'
import { signedCallFault } from '../sign/call-faults.js'

/** The parts of a call on which grants and credentials decide. */
export type ProxiedCall = {
  readonly method: ProxyMethod
  readonly url: URL
  readonly headers: readonly HeaderPair[]
  readonly authScheme: string | null
  /** Known length of the request body; 0 when unknown. */
  readonly bodyBytes: number
}

export type Refusal = Extract<
  ProxyOutcome,
  {
    tag:
      | 'invalid'
      | 'denied'
      | 'unknown_credential'
      | 'budget_exceeded'
      | 'approval_needed'
      | 'too_many_approvals'
  }
>
type Verdict =
  /** In order of preference. */
  { readonly tag: 'allowed'; readonly authorities: readonly AuthorityRow[] } | Refusal

const UNKNOWN: Refusal = { tag: 'unknown_credential' }
export const SPENT: Refusal = { tag: 'budget_exceeded', detail: 'The byte budget is exhausted.' }
const REQUESTS_SPENT: Refusal = {
  tag: 'budget_exceeded',
  detail: 'The request limit of the grant is exhausted.',
}

/** The refusal of a call for which a budget has too little left. */
export function lacking(budget: BudgetRefusal, now: Date): Refusal {
  const { budget: name, limit, left, window, windowEndsAt } = budget
  const span = window === 'total' ? 'in total' : `per ${window}`
  const end = windowEndsAt === null ? '' : ` The window ends at ${windowEndsAt.toISOString()}.`
  const detail = `The budget of the grant has ${left} of ${limit} ${name} left (${span}).${end}`
  const retryAfterSecs =
    windowEndsAt === null
      ? undefined
      : Math.max(1, Math.ceil((windowEndsAt.getTime() - now.getTime()) / 1000))
  return { tag: 'budget_exceeded', detail, budget, retryAfterSecs }
}

export function judgeCall(
  call: ProxiedCall,
  row: HeldCredentialRow | undefined,
  authorities: readonly AuthorityRow[],
  now: Date,
): Verdict {
  if (row === undefined) return UNKNOWN
  if (row.status === 'revoked') {
    // Only callers whose grant ended with the credential learn that it existed.
    const endedWithIt = authorities.some(
      ({ revokedAt }) => revokedAt?.getTime() === row.updatedAt.getTime(),
    )
    return endedWithIt ? denied('credential_revoked', 'The credential is revoked.') : UNKNOWN
  }
  const active = authorities.filter((each) => isActive(each, now))
  if (active.length === 0) return UNKNOWN
  if (!isForEgress(row.credentialType, row.authScheme)) {
    const detail = `The egress proxy does not support credentials of type ${row.credentialType}.`
    return denied('credential_type_unsupported', detail)
  }
  if (call.authScheme !== null && call.authScheme !== row.authScheme) {
    return denied(
      'auth_scheme_differs',
      'The auth_scheme differs from the scheme of the credential.',
    )
  }
  const { hostname } = call.url
  if (!row.allowedHosts.includes(hostname))
    return denied('host_not_allowed', 'The credential does not allow this host.')
  const duplicate = duplicateFault(call, row.authScheme)
  if (duplicate !== undefined) return duplicate
  // Leases take precedence over grants.
  const leases = active.filter(({ kind }) => kind === 'lease')
  const within = (leases.length > 0 ? leases : active).filter(({ snapshot }) =>
    snapshot.allowed_hosts.includes(hostname),
  )
  if (within.length === 0)
    return denied(
      'host_not_allowed',
      'The grant does not allow this host: the credential did not when it was granted.',
    )
  const fitting = within.filter((each) => fits(each, call))
  if (fitting.length === 0)
    return denied('call_not_covered', 'The grant does not cover this method and path.')
  const left = fitting.filter(hasRequests)
  if (left.length === 0) return REQUESTS_SPENT
  const affordable = left.filter((each) => hasBytes(each, call.bodyBytes))
  return affordable.length === 0 ? SPENT : { tag: 'allowed', authorities: easiest(affordable) }
}

/** Those without an approval come first, then those that need one, then those that need one for each call. */
function easiest(authorities: readonly AuthorityRow[]): readonly AuthorityRow[] {
  if (authorities.length === 1) return authorities
  return APPROVAL_MODES.flatMap((needed) =>
    authorities.filter(({ approval }) => approval === needed),
  )
}

function duplicateFault({ headers, url }: ProxiedCall, authScheme: string): Refusal | undefined {
  const scheme = readAuthScheme(authScheme)
  if (scheme === null)
    return denied('secret_not_sent', 'No secret is sent by the auth_scheme of the credential.')
  if (scheme.kind === 'signed') {
    // What a caller sends as a signature is replaced.
    const fault = signedCallFault(scheme.text, { headers, url })
    return fault && invalid(fault.pointer, fault.detail)
  }
  if (scheme.kind === 'query') {
    return hasParameter(url.search, scheme.name)
      ? invalid('/url', 'The URL contains the query parameter that the proxy sets.')
      : undefined
  }
  const plain = (name: string) => name.toLowerCase().replaceAll('_', '-')
  return headers.some(([name]) => plain(name) === plain(scheme.name))
    ? invalid('/headers', 'The request contains the header that the proxy sets.')
    : undefined
}

function isActive({ revokedAt, expiresAt }: AuthorityRow, now: Date): boolean {
  return revokedAt === null && (expiresAt === null || expiresAt > now)
}

function hasRequests({ maxRequests, requestsUsed }: AuthorityRow): boolean {
  return maxRequests === null || requestsUsed < maxRequests
}

function hasBytes({ maxBytes, bytesUsed, isSpent }: AuthorityRow, bytes: number): boolean {
  return !isSpent && (maxBytes === null || maxBytes - bytesUsed >= Math.max(1, bytes))
}

/** Headers with which S3 reads another object than the path names: a copy, a rename. */
const READS_ANOTHER = /^x[-_]amz[-_][a-z_-]*source$/i

function fits(
  { methods, pathPrefixes }: AuthorityRow,
  { method, url, headers }: ProxiedCall,
): boolean {
  const covered =
    methods === null || methods.includes(method) || (method === 'HEAD' && methods.includes('GET'))
  if (!covered) return false
  if (pathPrefixes === null) return true
  if (headers.some(([name]) => READS_ANOTHER.test(name))) return false
  const path = decodedPath(url)
  return path !== null && pathPrefixes.some((prefix) => isBelow(path, prefix))
}

/** Decodes escaped unreserved characters, once (RFC 3986 section 6.2.2.2). */
export function withPlainUnreserved(path: string): string {
  if (!path.includes('%')) return path
  return path.replaceAll(/%[0-9a-f]{2}/gi, (escape) => {
    const char = String.fromCharCode(Number.parseInt(escape.slice(1), 16))
    return /[A-Za-z0-9._~-]/.test(char) ? char : escape
  })
}

/**
 * The query with the quotes as the caller wrote them. URL parsers escape `'`, which is a plain character of a query (RFC
 * 3986 section 3.4), and signatures over the query break.
 * @param search the query of the parsed `url`.
 */
export function withPlainQuotes(search: string, url: string): string {
  const start = url.indexOf('?')
  if (start < 0 || !url.includes("'", start)) return search
  const quotes = url.slice(start).match(/'|%27/g) ?? []
  // Each in its turn: an escaped quote of the caller stays escaped.
  let nth = 0
  return search.replaceAll('%27', () => quotes[nth++] ?? '%27')
}

/** Encoded slash, backslash or percent sign: servers disagree whether to decode it before routing. */
const AMBIGUOUS_ESCAPE = /%(?:2f|5c|25)/i

/**
 * The decoded path as the upstream reads it; null when two servers could read it differently. The URL
 * parser has resolved plain dot segments; this function rejects escaped ones.
 */
function decodedPath({ pathname }: URL): string | null {
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
