/** Facts about URLs that `URL` does not show. */

/** The hosts of this machine, as `URL` writes them. */
export const LOOPBACK_HOSTS: ReadonlySet<string> = new Set(['localhost', '127.0.0.1', '[::1]'])

/** True if an absolute URL has a user part, also an empty one: `new URL('https://:@host')` shows none. */
export function namesUser(url: string): boolean {
  const { username, password } = new URL(url)
  return username !== '' || password !== '' || /^[^/?#]*:\/\/[^/?#]*@/.test(url)
}
