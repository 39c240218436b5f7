/** Which URLs may be asked for at all, before any name is resolved (decisions.md section 5). */
import { isHostname } from '../../domain/hostnames.js'
import type { UrlFault } from '../../vault/egress/protocol.js'

const URL_CHARS_MAX = 8192
const STANDARD_PORT = 443
/** The parser would silently delete, fold or reinterpret these; what is meant is unclear. */
const UNCLEAR = /[^!-~\u0080-\uffff]|\\/
/** Names that never mean a host of the public internet (RFC 6761, RFC 6762, RFC 9476). */
const LOCAL_SUFFIXES = [
  'localhost',
  'local',
  'internal',
  'localdomain',
  'home.arpa',
  'onion',
  'alt',
]

export type TargetRules = {
  /** Ports other than 443. */
  readonly nonStandardPorts: boolean
  /** Local names and address literals; the dialer still checks addresses by its own rules. */
  readonly privateNetworks: boolean
}

export type TargetVerdict =
  | { readonly tag: 'target'; readonly url: URL }
  | { readonly tag: 'refused'; readonly fault: UrlFault }

/** Reads a URL as strictly as it will be used. The host is lower case and in A-labels afterwards. */
export function judgeTarget(text: string, rules: TargetRules): TargetVerdict {
  if (text.length > URL_CHARS_MAX || UNCLEAR.test(text)) return refused('url_syntax')
  let url: URL
  try {
    url = new URL(text)
  } catch {
    return refused('url_syntax')
  }
  if (url.protocol !== 'https:') return refused('url_scheme')
  if (!/^https:\/\/[^/]/i.test(text)) return refused('url_syntax')
  // An empty userinfo or fragment is dropped by the parser: look at the text as well.
  const authority = /^[^:]+:\/\/([^/?#]*)/.exec(text)?.[1] ?? ''
  if (authority.includes('@')) return refused('url_userinfo')
  if (text.includes('#')) return refused('url_fragment')
  const port = url.port === '' ? STANDARD_PORT : Number(url.port)
  if (port === 0) return refused('url_port')
  if (port !== STANDARD_PORT && !rules.nonStandardPorts) return refused('url_port')
  // The name is used without its trailing dot, so that one host has one spelling.
  if (url.hostname.endsWith('.')) url.hostname = url.hostname.slice(0, -1)
  if (!rules.privateNetworks && !isPublicName(url.hostname)) return refused('url_host')
  return { tag: 'target', url }
}

/** What is wrong with an address, for whoever wrote it. */
export const URL_FAULTS: Readonly<Record<UrlFault, string>> = {
  url_syntax: 'Not a well-formed absolute URL.',
  url_scheme: 'Must be an https URL.',
  url_userinfo: 'Must not carry credentials.',
  url_fragment: 'Must not have a fragment.',
  url_port: 'Must use port 443.',
  url_host: 'Must name a host of the public internet.',
}

/** A fully qualified name of the public name space; never an address. */
export function isPublicName(hostname: string): boolean {
  if (!hostname.includes('.') || !isHostname(hostname)) return false
  return !LOCAL_SUFFIXES.some((suffix) => hostname.endsWith(`.${suffix}`))
}

function refused(fault: UrlFault): TargetVerdict {
  return { tag: 'refused', fault }
}
