/** Checks of outbound URLs before name resolution (docs/reference/vault.md). */
import { isHostname } from '../../domain/hostnames.js'
import type { UrlFault } from '../../vault/egress/protocol.js'

const URL_CHARS_MAX = 8192
const STANDARD_PORT = 443
/** The URL parser silently deletes, folds or reinterprets these characters. */
const AMBIGUOUS = /[^!-~\u0080-\uffff]|\\/
const BEGINS_WITH_HOST = /^https:\/\/[^/]/i
const HAS_USERINFO = /^[^:]+:\/\/[^/?#]*@/
/** Special-use domains without public hosts (RFC 6761, RFC 6762, RFC 9476). */
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
  /** Allows ports other than 443. */
  readonly nonStandardPorts: boolean
  /** Allows local names and IP literals; the dialer checks addresses by its own rules. */
  readonly privateNetworks: boolean
}

export type TargetVerdict =
  | { readonly tag: 'target'; readonly url: URL }
  | { readonly tag: 'refused'; readonly fault: UrlFault }

/** Parses a URL strictly. The resulting host is lower case, in A-labels. */
export function judgeTarget(text: string, rules: TargetRules): TargetVerdict {
  if (text.length > URL_CHARS_MAX || AMBIGUOUS.test(text)) return refused('url_syntax')
  let url: URL
  try {
    url = new URL(text)
  } catch {
    return refused('url_syntax')
  }
  if (url.protocol !== 'https:') return refused('url_scheme')
  if (!BEGINS_WITH_HOST.test(text)) return refused('url_syntax')
  // The parser drops an empty userinfo or fragment, so check the text too.
  if (text.includes('@') && HAS_USERINFO.test(text)) return refused('url_userinfo')
  if (text.includes('#')) return refused('url_fragment')
  const port = url.port === '' ? STANDARD_PORT : Number(url.port)
  if (port === 0) return refused('url_port')
  if (port !== STANDARD_PORT && !rules.nonStandardPorts) return refused('url_port')
  // The trailing dot is removed, so that a host has one canonical name.
  if (url.hostname.endsWith('.')) url.hostname = url.hostname.slice(0, -1)
  if (!rules.privateNetworks && !isPublicName(url.hostname)) return refused('url_host')
  return { tag: 'target', url }
}

/** What is wrong with a URL of a caller that the service calls. Undefined for a URL that it may call. */
export type FaultOf = (url: string) => UrlFault | undefined

export const faultsUnder =
  (rules: TargetRules): FaultOf =>
  (url) => {
    const target = judgeTarget(url, rules)
    return target.tag === 'refused' ? target.fault : undefined
  }

/** Error details for the author of a URL. */
export const URL_FAULTS: Readonly<Record<UrlFault, string>> = {
  url_syntax: 'Must be a well-formed absolute URL.',
  url_scheme: 'Must be an https URL.',
  url_userinfo: 'Must not carry credentials.',
  url_fragment: 'Must not have a fragment.',
  url_port: 'Must use port 443.',
  url_host: 'Must name a host of the public internet.',
}

/** True for a fully qualified public domain name, false for an IP address. */
export function isPublicName(hostname: string): boolean {
  if (!hostname.includes('.') || !isHostname(hostname)) return false
  return !LOCAL_SUFFIXES.some((suffix) => hostname.endsWith(`.${suffix}`))
}

function refused(fault: UrlFault): TargetVerdict {
  return { tag: 'refused', fault }
}
