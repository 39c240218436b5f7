/** The one rule for redirect URIs (decisions.md 7.4 and 21; RFC 8252 section 7). */

const REDIRECT_URI_LENGTH_MAX = 2048
const LOOPBACK_HOSTS = new Set(['localhost', '127.0.0.1', '[::1]'])
/** Schemes with a dot are private-use names in reverse domain order (RFC 8252 section 7.1). */
const PRIVATE_USE_SCHEME = /^[a-z][a-z0-9+-]*(\.[a-z0-9+-]+)+:/i

/**
 * What names and addresses consist of. URLs may hold more, such as `;` and `,`, which mean something
 * in a content security policy, and no name of the DNS has them.
 */
const HOST_NAME = /^(?:[a-z0-9._-]+|\[[0-9a-f:.]+\])$/

/**
 * Says what is wrong with a redirect URI, or undefined when it may be registered: HTTPS, HTTP on a
 * loopback host, or a private-use scheme with a dot; absolute, no fragment, no user, no wildcard.
 */
export function redirectUriFault(uri: string): string | undefined {
  if (uri.length > REDIRECT_URI_LENGTH_MAX) return 'is longer than 2048 characters'
  if (!/^[\x21-\x7e]+$/.test(uri)) return 'may hold visible ASCII characters only'
  if (uri.includes('#')) return 'must not have a fragment'
  if (uri.includes('*')) return 'must not have a wildcard'
  if (uri.includes('\\')) return 'must not have a backslash'
  // Of private schemes too: no browser opens one that it cannot read, like `com.example.app://host:99999`.
  if (!URL.canParse(uri)) return 'is not an absolute URI'
  const { protocol, hostname, username, password } = new URL(uri)
  if (username !== '' || password !== '') return 'must not name a user'
  if (PRIVATE_USE_SCHEME.test(uri)) return undefined
  if (!/^https?:\/\/[^/?]/i.test(uri)) return 'must name a host, or use a private scheme with a dot'
  if (!HOST_NAME.test(hostname)) return 'must name a host of letters, digits, dots and hyphens'
  if (protocol === 'https:') return undefined
  return LOOPBACK_HOSTS.has(hostname) ? undefined : 'must use HTTPS, or HTTP on a loopback host'
}
