/** Parts of URLs that `URL` does not show. */

/** True if an absolute URL has a user part, also an empty one: `new URL('https://:@host')` shows none. */
export function namesUser(url: string): boolean {
  const { username, password } = new URL(url)
  return username !== '' || password !== '' || /^[^/?#]*:\/\/[^/?#]*@/.test(url)
}
