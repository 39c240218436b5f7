/**
 * Secrets that must not be seen. A test plants them; whatever comes out of a service is searched for
 * them in every spelling that programs use.
 */

/** Shorter ones would be found by chance. */
const CHARS_MIN = 12

export type Found = { readonly canary: string; readonly spelling: string; readonly where: string }

export interface Canaries {
  /** `name` says what it is; the value is never shown. */
  plant(name: string, value: string): string
  /** What of them is in a text, but for those that belong there. */
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

/** Secrets that no test service may log, whatever the test is about. */
export const everywhere: Canaries = canaries()

/** As it is, in hex, as a JSON string, in percent-encoding, and in base64 at each of its three places. */
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
    // The characters at either end depend on what stands beside it.
    const base64 = Buffer.concat([Buffer.alloc(before), bytes]).toString('base64url')
    const core = base64.slice(before === 0 ? 0 : before + 1, -4)
    found.set(`base64url ${before}`, core)
    found.set(`base64 ${before}`, core.replaceAll('-', '+').replaceAll('_', '/'))
  }
  return found
}
