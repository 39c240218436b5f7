/**
 * Secrets that must not leak. A test plants them, and searches the output of a service for every
 * common encoding of them.
 */

/** Shorter texts would be found by chance. */
const CHARS_MIN = 12

export type Found = { readonly canary: string; readonly spelling: string; readonly where: string }

export interface Canaries {
  /** `name` describes the secret. The value is never shown. */
  plant(name: string, value: string): string
  /** The planted secrets in a text, except for the allowed ones. */
  search(where: string, text: string, allowed?: readonly string[]): Found[]
  readonly names: readonly string[]
}

export function canaries(): Canaries {
  const planted = new Map<string, ReadonlyMap<string, string>>()
  return {
    plant(name, value) {
      if (value.length < CHARS_MIN) throw new Error(`${name} is too short to be looked for`)
      planted.set(name, spellings(value))
      return value
    },
    search(where, text, allowed = []) {
      const lower = text.toLowerCase()
      const found: Found[] = []
      for (const [canary, each] of planted) {
        if (allowed.includes(canary)) continue
        for (const [spelling, needle] of each) {
          const isThere = spelling === 'hex' ? lower.includes(needle) : text.includes(needle)
          if (isThere) found.push({ canary, spelling, where })
        }
      }
      return found
    },
    get names() {
      return [...planted.keys()]
    },
  }
}

/** Secrets that no test service may log. */
export const everywhere: Canaries = canaries()

/**
 * Unchanged, in hex, as a JSON string, percent-encoded, and in base64 at each of its three offsets.
 */
function spellings(value: string): ReadonlyMap<string, string> {
  const bytes = Buffer.from(value)
  const found = new Map([
    ['raw', value],
    ['hex', bytes.toString('hex')],
  ])
  const json = JSON.stringify(value).slice(1, -1)
  if (json !== value) found.set('json', json)
  const percent = encodeURIComponent(value)
  if (percent !== value) found.set('percent', percent)
  for (const before of [0, 1, 2]) {
    // The characters at both ends depend on the neighbouring bytes.
    const base64 = Buffer.concat([Buffer.alloc(before), bytes]).toString('base64url')
    const core = base64.slice(before === 0 ? 0 : before + 1, -4)
    found.set(`base64url ${before}`, core)
    found.set(`base64 ${before}`, core.replaceAll('-', '+').replaceAll('_', '/'))
  }
  return found
}
