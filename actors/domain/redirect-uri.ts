/** The rules for redirect URIs (RFC 8252 section 7). */
import { namesUser } from '../../runtime/kernel/text/urls.js'
import { COMPARED, httpsUrl } from './entities/https-url.js'

const REDIRECT_URI_LENGTH_MAX = 2048
/** Schemes with a dot are private-use names in reverse domain order (RFC 8252 section 7.1). */
const PRIVATE_USE_SCHEME = /^[a-z][a-z0-9+-]*(\.[a-z0-9+-]+)+:/i
/** Installed applications also use short names, such as `cursor:`. Any application can claim these. */
const SHORT_SCHEME = /^[a-z][a-z0-9+-]*:/i
/** Schemes that browsers or operating systems run, open or resolve themselves. */
const SYSTEM_SCHEME = new RegExp(
  `^(?:${[
    'javascript|vbscript|data|file|blob|about|filesystem|view-source|jar|resource|urn|cid|mid',
    'https?|wss?|s?ftps?|ssh|telnet|ldaps?|smb|nfs|gopher|news|nntp|git',
    'mailto|tel|callto|fax|sms|smsto|mms|mmsto|sips?|xmpp|geo|maps|facetime|facetime-audio',
    'intent|android-app|market|itms|itms-[a-z]+|search|search-ms|ms|ms-[a-z0-9+-]+|shell|res|hcp|mhtml',
    'chrome|chrome-[a-z]+|edge|opera|brave|moz|moz-[a-z]+|[a-z0-9+-]+-extension',
  ].join('|')}):`,
  'i',
)

/**
 * Characters of host names and addresses. URLs allow more, such as `;` and `,`, which have a meaning in content security
 * policies and do not occur in DNS names.
 */
const HOST_NAME = /^(?:[a-z0-9._-]+|\[[0-9a-f:.]+\])$/

/** `http://<loopback host>[:port]<rest>`, as written. */
const LOOPBACK = /^http:\/\/(localhost|127\.0\.0\.1|\[::1\])(?::(\d{1,5}))?((?:[/?].*)?)$/

/** True if the URI is an http URI of a loopback host, with or without a port (RFC 8252 section 7.3). */
function isLoopbackRedirect(uri: string): boolean {
  return LOOPBACK.test(uri)
}

/** True if every redirect URI is one of a loopback host, so that any program of the computer could receive the code. */
export function isLoopbackOnly(uris: readonly string[]): boolean {
  return uris.length > 0 && uris.every(isLoopbackRedirect)
}

/**
 * True if a redirect URI is registered. URIs are compared as strings (RFC 9700 section 2.1). With `anyLoopbackPort` the
 * port of a loopback URI is free, and host, path and query must be equal: localhost and 127.0.0.1 are different hosts
 * (RFC 8252 section 7.3).
 */
export function isRegisteredRedirect(
  uri: string,
  registered: readonly string[],
  { anyLoopbackPort }: { readonly anyLoopbackPort: boolean },
): boolean {
  if (registered.includes(uri)) return true
  const own = anyLoopbackPort ? withoutPort(uri) : null
  return own !== null && registered.some((one) => withoutPort(one) === own)
}

/** A loopback URI without its port. Null for other URIs and for ports that do not exist. */
function withoutPort(uri: string): string | null {
  const parts = LOOPBACK.exec(uri)
  if (parts === null || redirectUriFault(uri) !== undefined) return null
  return `${parts[1]}${parts[3]}`
}

/**
 * The fault of a redirect URI, or undefined if it may be registered. It must be absolute, without fragment, user and
 * wildcard, and use HTTPS, HTTP on a loopback host, or a private-use scheme with a dot. Public clients, which need PKCE,
 * may use private schemes without a dot.
 */
export function redirectUriFault(uri: string, isPublic = false): string | undefined {
  if (uri.length > REDIRECT_URI_LENGTH_MAX) return 'is longer than 2048 characters'
  if (!/^[\x21-\x7e]+$/.test(uri)) return 'may contain visible ASCII characters only'
  if (uri.includes('#')) return 'must not have a fragment'
  if (uri.includes('*')) return 'must not have a wildcard'
  if (uri.includes('\\')) return 'must not have a backslash'
  // Private-use schemes too: browsers do not open an invalid URL such as `com.example.app://host:99999`.
  if (!URL.canParse(uri)) return 'is not an absolute URI'
  if (namesUser(uri)) return 'must not contain a user'
  if (PRIVATE_USE_SCHEME.test(uri)) return undefined
  if (isPublic && SHORT_SCHEME.test(uri) && !SYSTEM_SCHEME.test(uri)) return undefined
  const url = httpsUrl(uri, COMPARED)
  if (url !== null && HOST_NAME.test(url.hostname)) return undefined
  return 'must have HTTPS and a host of letters, digits, dots and hyphens, HTTP and a loopback host, or a private scheme with a dot'
}
