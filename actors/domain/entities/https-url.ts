/** URLs that callers give: pages that people open, documents that the service fetches, names of issuers and resources. */
import { isIP } from 'node:net'
import { z } from 'zod'
import { LOOPBACK_HOSTS } from '../../../runtime/kernel/text/urls.js'
import { isHostname } from '../hostnames.js'

/** What a URL may have besides scheme, host, port and path. */
type UrlRules = {
  readonly query?: boolean
  readonly fragment?: boolean
  readonly http?: 'of loopback hosts' | 'of all hosts' | undefined
  /** Capitals in the scheme. */
  readonly anyCase?: boolean
  /** The most characters: 2048 by default. */
  readonly max?: number
}

/** A page, which a browser opens. */
export const PAGE = { query: true, fragment: true } as const
/** A redirect URI or a resource. Both are compared. */
export const COMPARED = { query: true, http: 'of loopback hosts', anyCase: true } as const

/** The parser deletes or folds other characters. */
const VISIBLE = /^[!-[\]-~]+$/
/** The parser also finds a host in `https:host` and `https:///host`, and hides an empty user. */
const SCHEME_AND_HOST = /^(https?):\/\/([^/?#@]+)(?=[/?#]|$)/i

/** The URL. Null unless it is absolute, without a user, and keeps the rules. */
export function httpsUrl(text: string, rules: UrlRules = {}): URL | null {
  if (text.length > (rules.max ?? 2048) || !VISIBLE.test(text) || !URL.canParse(text)) return null
  const [, scheme, authority = ''] = SCHEME_AND_HOST.exec(text) ?? []
  if (scheme === undefined || (scheme !== scheme.toLowerCase() && !rules.anyCase)) return null
  if ((text.includes('?') && !rules.query) || (text.includes('#') && !rules.fragment)) return null
  const url = new URL(text)
  if (!namesHost(authority.toLowerCase(), url)) return null
  if (url.protocol === 'https:' || rules.http === 'of all hosts') return url
  return rules.http === 'of loopback hosts' && LOOPBACK_HOSTS.has(url.hostname) ? url : null
}

/** The parser decodes and shortens hosts: a reader must see the one that is opened. */
function namesHost(authority: string, { host, hostname, protocol }: URL): boolean {
  const port = protocol === 'https:' ? 443 : 80
  if (authority !== host && authority !== `${host}:${port}`) return false
  return isHostname(hostname) || isIP(hostname.replace(/^\[(.*)\]$/, '$1')) > 0
}

/** A member of a body. */
export const HttpsUrl = (rules: UrlRules) =>
  z
    .string()
    .max(2048)
    .refine((text) => httpsUrl(text, rules) !== null, 'Must be an https URL without a user.')
    .meta({ format: 'uri' })
