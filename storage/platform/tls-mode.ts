/** What a database URL says of TLS. */

/** Values of `sslmode` with which a connection may be in clear. */
const IN_CLEAR = new Set(['disable', 'allow', 'prefer'])

/** Whether the URL leads to a unix socket, which has no TLS and crosses no network. */
export function isUnixSocket(url: string): boolean {
  const { searchParams, hostname } = new URL(url)
  return (searchParams.get('host') ?? decodeURIComponent(hostname)).startsWith('/')
}

/** Whether the URL by itself lets a connection over the network be in clear. */
export function turnsTlsOff(url: string | undefined): boolean {
  if (url === undefined || isUnixSocket(url)) return false
  return IN_CLEAR.has(new URL(url).searchParams.get('sslmode') ?? '')
}
