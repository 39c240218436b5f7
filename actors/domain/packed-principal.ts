/**
 * Principals on their way to another thread: as one text per token, which is written once and parsed once, however many
 * calls the token makes.
 */
import type { Principal } from './principal.js'

const texts = new WeakMap<Principal, string>()
const PRINCIPALS_MAX = 1_024

/** The principal as JSON. The object must not change afterwards. */
export function packPrincipal(principal: Principal): string {
  let text = texts.get(principal)
  if (text === undefined) {
    text = JSON.stringify(principal)
    texts.set(principal, text)
  }
  return text
}

/** Reads packed principals. The same text gives the same object while it is remembered. */
export class PrincipalReader {
  readonly #known = new Map<string, Principal>()

  read(text: string): Principal {
    let principal = this.#known.get(text)
    if (principal === undefined) {
      principal = JSON.parse(text) as Principal
      if (this.#known.size >= PRINCIPALS_MAX) this.#known.delete(this.#known.keys().next().value!)
      this.#known.set(text, principal)
    }
    return principal
  }
}
