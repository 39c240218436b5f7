/** JSON put together by hand, where the same few members are written thousands of times a second. */

/** What JSON writes as it is. */
const PLAIN = /^[ !#-[\]-~]*$/

/** A text in its quotes, or `null`: what `JSON.stringify` writes of it. */
export function quoted(text: string | null): string {
  if (text === null) return 'null'
  return PLAIN.test(text) ? `"${text}"` : JSON.stringify(text)
}
