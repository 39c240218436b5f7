/**
 * did:web: the URL of the DID document, and the check that the document lists a key for authentication.
 * did:web method specification, sections 2.2 and 3.2; DID Core sections 5.2 and 5.3.1.
 */
import type { PublicJwk } from '../../domain/agents/agent-keys.js'

const PREFIX = 'did:web:'
const DID_CHARS_MAX = 256
const PORT_MAX = 65_535
/** Verification methods read of a document; real documents list a few. */
const METHODS_MAX = 100
const LABEL = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/
/** A segment does not begin with a dot, because the URL parser resolves `.` and `..`. */
const SEGMENT = /^[A-Za-z0-9_-][A-Za-z0-9._-]*$/
const PORT = /^[1-9][0-9]{0,4}$/

type DidWebReading =
  | { readonly tag: 'did_web'; readonly url: string }
  | { readonly tag: 'malformed'; readonly detail: string }

/**
 * The document URL of `did:web:host[%3Aport][:segment...]`. Only one spelling per document is accepted:
 * lower-case host names, no IP addresses, no port 443, no percent-encoding except the port's colon.
 */
export function readDidWeb(did: string): DidWebReading {
  if (!did.startsWith(PREFIX)) return malformed('is not a did:web')
  if (did.length > DID_CHARS_MAX) return malformed('is longer than 256 characters')
  const [authority = '', ...segments] = did.slice(PREFIX.length).split(':')
  const [host = '', port, ...more] = authority.split('%3A')
  const labels = host.split('.')
  if (host.length > 253 || !labels.every((label) => LABEL.test(label))) {
    return malformed('does not name a host in lower case (an international name as A-labels)')
  }
  if (port !== undefined && (more.length > 0 || !isPort(port))) {
    return malformed('has no valid port other than 443 after %3A')
  }
  if (!segments.every((segment) => SEGMENT.test(segment))) {
    return malformed('has a path segment that is empty or not made of letters, digits, -, _ and .')
  }
  const path = segments.length === 0 ? '.well-known' : segments.join('/')
  const url = `https://${host}${port === undefined ? '' : `:${port}`}/${path}/did.json`
  // The URL parser normalises every spelling of an IPv4 address, also `0x7f.1`.
  if (/^[0-9]/.test(labels.at(-1)!) || !URL.canParse(url) || new URL(url).href !== url) {
    return malformed('does not name a host: it holds an IP address or an invalid name')
  }
  return { tag: 'did_web', url }
}

function isPort(text: string): boolean {
  return PORT.test(text) && Number(text) <= PORT_MAX && Number(text) !== 443
}

/** A key in the two encodings that DID documents use. */
export type SoughtKey = {
  readonly jwk: PublicJwk
  /** Its did:key; the part after the prefix is its `publicKeyMultibase`. */
  readonly did: string
}

/** Why a document does not authorize a key. Each text continues the words "is a did:web". */
type DocumentFault =
  | 'whose document is not a JSON object'
  | 'whose document has another id'
  | 'whose document does not list public_key under authentication'

/** Undefined when the document of `did` lists the key under `authentication`. Never throws. */
export function documentFault(
  document: unknown,
  did: string,
  key: SoughtKey,
  nowMs: number,
): DocumentFault | undefined {
  if (!isObject(document)) return 'whose document is not a JSON object'
  if (document['id'] !== did) return 'whose document has another id'
  const methods = listOf(document['verificationMethod'])
  const authenticating = listOf(document['authentication']).map((entry) =>
    typeof entry === 'string'
      ? methods.find((method) => isObject(method) && sameId(method['id'], entry, did))
      : entry,
  )
  return authenticating.some((method) => isObject(method) && holds(method, key, nowMs))
    ? undefined
    : 'whose document does not list public_key under authentication'
}

/** A bare `#fragment` is relative to the DID of the document (DID Core section 3.2.2). */
function sameId(id: unknown, reference: string, did: string): boolean {
  return typeof id === 'string' && absolute(id, did) === absolute(reference, did)
}

function absolute(id: string, did: string): string {
  return id.startsWith('#') ? did + id : id
}

function holds(method: Members, key: SoughtKey, nowMs: number): boolean {
  const { publicKeyJwk: jwk, publicKeyMultibase: multibase } = method
  // Controlled Identifiers section 2.2: the key is neither expired nor revoked.
  if (!['expires', 'revoked'].every((member) => isAhead(method[member], nowMs))) return false
  if (multibase !== undefined) {
    return jwk === undefined && multibase === key.did.slice('did:key:'.length)
  }
  // A published private key proves nothing.
  if (!isObject(jwk) || jwk['d'] !== undefined) return false
  return Object.entries(key.jwk).every(([name, value]) => jwk[name] === value)
}

function isAhead(end: unknown, nowMs: number): boolean {
  return end === undefined || (typeof end === 'string' && Date.parse(end) > nowMs)
}

type Members = Readonly<Record<string, unknown>>

function isObject(value: unknown): value is Members {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value.slice(0, METHODS_MAX) : []
}

function malformed(detail: string): DidWebReading {
  return { tag: 'malformed', detail }
}
