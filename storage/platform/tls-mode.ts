/** The TLS mode of a database URL. */

/** Values of `sslmode` that allow connections without TLS. */
const IN_CLEAR = new Set(['disable', 'allow', 'prefer'])

/** True for a unix socket, which has no TLS and crosses no network. */
export function isUnixSocket(url: string): boolean {
  const { searchParams, hostname } = new URL(url)
  return (searchParams.get('host') ?? decodeURIComponent(hostname)).startsWith('/')
}

/** True if the URL allows network connections without TLS. */
export function turnsTlsOff(url: string | undefined): boolean {
  if (url === undefined || isUnixSocket(url)) return false
  return IN_CLEAR.has(new URL(url).searchParams.get('sslmode') ?? '')
}
