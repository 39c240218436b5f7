/**
 * Duplicate members of JSON bodies (RFC 8259 section 4, RFC 7493 section 2.3). `JSON.parse` keeps the last one and other
 * parsers the first, so that a proxy could check one value and the service use another.
 */

const QUOTE = 0x22
const COMMA = 0x2c
const COLON = 0x3a
const OPEN_BRACKET = 0x5b
const BACKSLASH = 0x5c
const CLOSE_BRACKET = 0x5d
const OPEN_BRACE = 0x7b
const CLOSE_BRACE = 0x7d

type JsonMeasure = { readonly depth: number; readonly members: number }

/** Counts levels and members of a JSON text, without recursion. */
export function measureJson(text: string): JsonMeasure {
  let [depth, deepest, members] = [0, 0, 0]
  for (let index = 0; index < text.length; index += 1) {
    const code = text.charCodeAt(index)
    if (code === QUOTE) index = endOfString(text, index)
    else if (code === OPEN_BRACE || code === OPEN_BRACKET) {
      depth += 1
      if (depth > deepest) deepest = depth
    } else if (code === CLOSE_BRACE || code === CLOSE_BRACKET) depth -= 1
    else if (code === COLON) members += 1
  }
  return { depth: deepest, members }
}

/** Counts the members of a parsed value. Fewer than in its text: some are duplicates. */
export function countMembers(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 0
  const inner = Object.values(value) as unknown[]
  let members = Array.isArray(value) ? 0 : inner.length
  for (const one of inner) if (typeof one === 'object' && one !== null) members += countMembers(one)
  return members
}

type Level = { readonly names: Set<string> | null; at: string | number }

/** The path of the first duplicate member of a valid JSON text. Null without one. */
export function findDuplicate(text: string): readonly PropertyKey[] | null {
  const levels: Level[] = []
  let expectsName = false
  for (let index = 0; index < text.length; index += 1) {
    const level = levels.at(-1)
    switch (text.charCodeAt(index)) {
      case OPEN_BRACE:
        levels.push({ names: new Set(), at: '' })
        expectsName = true
        break
      case OPEN_BRACKET:
        levels.push({ names: null, at: 0 })
        expectsName = false
        break
      case CLOSE_BRACE:
      case CLOSE_BRACKET:
        levels.pop()
        expectsName = false
        break
      case COMMA:
        expectsName = level?.names != null
        if (level !== undefined && typeof level.at === 'number') level.at += 1
        break
      case COLON:
        expectsName = false
        break
      case QUOTE: {
        const end = endOfString(text, index)
        if (expectsName && level?.names != null) {
          // An escape sequence may hide a duplicate.
          level.at = JSON.parse(text.slice(index, end + 1)) as string
          if (level.names.has(level.at)) return levels.map(({ at }) => at)
          level.names.add(level.at)
        }
        index = end
        break
      }
    }
  }
  return null
}

/** The index of the closing quote. The last index without one. */
function endOfString(text: string, start: number): number {
  let end = text.indexOf('"', start + 1)
  while (end > 0 && isEscaped(text, end)) end = text.indexOf('"', end + 1)
  return end < 0 ? text.length - 1 : end
}

function isEscaped(text: string, at: number): boolean {
  let slashes = 0
  while (text.charCodeAt(at - 1 - slashes) === BACKSLASH) slashes += 1
  return slashes % 2 === 1
}
