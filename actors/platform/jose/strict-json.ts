/** Unambiguous JSON: valid UTF-8, no duplicate members, bounded depth (RFC 8259, RFC 7493). */

const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

const QUOTE = 0x22
const COMMA = 0x2c
const COLON = 0x3a
const OPEN_BRACKET = 0x5b
const BACKSLASH = 0x5c
const CLOSE_BRACKET = 0x5d
const OPEN_BRACE = 0x7b
const CLOSE_BRACE = 0x7d

/**
 * Parses JSON. Undefined if it is invalid, nested deeper than `depthMax`, not UTF-8, or has duplicate
 * members. `JSON.parse` keeps the last duplicate and other parsers the first, so that one party could
 * check a value and the other use a different one (RFC 8725 section 2.4).
 */
export function parseStrictJson(bytes: Uint8Array, depthMax: number): unknown {
  try {
    const text = decoder.decode(bytes)
    if (!hasUniqueMembers(text, depthMax)) return undefined
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/**
 * Scans the text once for member names and levels. It does not check the grammar, since `JSON.parse`
 * does.
 */
function hasUniqueMembers(text: string, depthMax: number): boolean {
  // One entry per open level: the names seen in an object, or null for an array.
  const levels: (Set<string> | null)[] = []
  let expectsName = false
  for (let at = 0; at < text.length; at += 1) {
    switch (text.charCodeAt(at)) {
      case OPEN_BRACE:
      case OPEN_BRACKET: {
        if (levels.length === depthMax) return false
        const isObject = text.charCodeAt(at) === OPEN_BRACE
        levels.push(isObject ? new Set() : null)
        expectsName = isObject
        break
      }
      case CLOSE_BRACE:
      case CLOSE_BRACKET:
        levels.pop()
        expectsName = false
        break
      case COMMA:
        expectsName = levels.at(-1) instanceof Set
        break
      case COLON:
        expectsName = false
        break
      case QUOTE: {
        const end = endOfString(text, at)
        if (expectsName && !isNew(levels.at(-1), text.slice(at, end + 1))) return false
        at = end
        break
      }
    }
  }
  return true
}

/** The index of the closing quote, or the last index. */
function endOfString(text: string, start: number): number {
  let at = start + 1
  for (; at < text.length; at += 1) {
    const code = text.charCodeAt(at)
    if (code === BACKSLASH) at += 1
    else if (code === QUOTE) return at
  }
  return text.length - 1
}

/** Compares decoded names: an escape sequence may hide a duplicate. */
function isNew(names: Set<string> | null | undefined, quoted: string): boolean {
  const name = quoted.includes('\\') ? (JSON.parse(quoted) as string) : quoted.slice(1, -1)
  if (names?.has(name)) return false
  names?.add(name)
  return true
}
