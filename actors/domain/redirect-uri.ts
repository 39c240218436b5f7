/** The rules for redirect URIs (RFC 8252 section 7). */

const REDIRECT_URI_LENGTH_MAX = 2048
const LOOPBACK_HOSTS = new Set(['localhost', '127.0.0.1', '[::1]'])
/** Schemes with a dot are private-use names in reverse domain order (RFC 8252 section 7.1). */
const PRIVATE_USE_SCHEME = /^[a-z][a-z0-9+-]*(\.[a-z0-9+-]+)+:/i

/**
 * Characters of host names and addresses. URLs allow more, such as `;` and `,`, which have a meaning in content security
 * policies and do not occur in DNS names.
 */
const HOST_NAME = /^(?:[a-z0-9._-]+|\[[0-9a-f:.]+\])$/

/**
 * The fault of a redirect URI, or undefined if it may be registered. It must be absolute, without fragment, user and
 * wildcard, and use HTTPS, HTTP on a loopback host, or a private-use scheme with a dot.
 */
export function redirectUriFault(uri: string): string | undefined {
  if (uri.length > REDIRECT_URI_LENGTH_MAX) return 'is longer than 2048 characters'
  if (!/^[\x21-\x7e]+$/.test(uri)) return 'may contain visible ASCII characters only'
  if (uri.includes('#')) return 'must not have a fragment'
  if (uri.includes('*')) return 'must not have a wildcard'
  if (uri.includes('\\')) return 'must not have a backslash'
  // Private-use schemes too: browsers do not open an invalid URL such as `com.example.app://host:99999`.
  if (!URL.canParse(uri)) return 'is not an absolute URI'
  const { protocol, hostname, username, password } = new URL(uri)
  if (username !== '' || password !== '') return 'must not contain a user'
  if (PRIVATE_USE_SCHEME.test(uri)) return undefined
  if (!/^https?:\/\/[^/?]/i.test(uri)) return 'must name a host, or use a private scheme with a dot'
  if (!HOST_NAME.test(hostname)) return 'must name a host of letters, digits, dots and hyphens'
  if (protocol === 'https:') return undefined
  return LOOPBACK_HOSTS.has(hostname) ? undefined : 'must use HTTPS, or HTTP on a loopback host'
}

/** True for an http redirect URI of a loopback host (RFC 8252 section 7.3). */
export function isLoopbackRedirect(uri: string): boolean {
  if (!/^http:/i.test(uri) || !URL.canParse(uri)) return false
  return LOOPBACK_HOSTS.has(new URL(uri).hostname)
}

/**
 * True if the URI is one of the registered ones. With `anyPort` a loopback URI may have any port, since installed
 * applications listen on a free one: scheme, host, path and query are compared exactly (RFC 8252 section 7.3). All
 * others are compared as strings, without normalisation (RFC 9700 section 2.1).
 */
export function isRegisteredRedirect(
  uri: string,
  registered: readonly string[],
  anyPort: boolean,
): boolean {
  if (registered.includes(uri)) return true
  if (!anyPort || redirectUriFault(uri) !== undefined || !isLoopbackRedirect(uri)) return false
  const portless = withoutPort(uri)
  return registered.some((one) => isLoopbackRedirect(one) && withoutPort(one) === portless)
}

/** Removes the port of the authority and keeps every other character. */
function withoutPort(uri: string): string {
  return uri.replace(/^(https?:\/\/(?:\[[^\]]*\]|[^/?:]*)):\d*/i, '$1')
}
