/** What a form of an OAuth endpoint says, once it says nothing twice. RFC 6749 section 3.2. */
import type { FormFields } from './protocol.js'

/** The one parameter that may repeat (RFC 8707 section 2). */
const REPEATABLE = new Set(['resource'])
/** A token may hold visible ASCII and spaces; anything else is not a value of this protocol. */
const SCOPE_FORM = /^[\x21\x23-\x5b\x5d-\x7e]+(?: [\x21\x23-\x5b\x5d-\x7e]+)*$/

export interface OAuthForm {
  /** The value, or null when the parameter is absent or empty. */
  get(name: string): string | null
  all(name: string): readonly string[]
}

/** @returns the name of a parameter that came twice, instead of a form. */
export function readForm(fields: FormFields): OAuthForm | { readonly repeated: string } {
  const first = new Map<string, string>()
  for (const [name, value] of fields) {
    if (!first.has(name)) first.set(name, value)
    else if (!REPEATABLE.has(name)) return { repeated: name }
  }
  // A parameter sent without a value counts as omitted (RFC 6749 section 3.2).
  return {
    get: (name) => first.get(name) || null,
    all: (name) =>
      first.has(name)
        ? fields.flatMap(([named, value]) => (named === name && value !== '' ? value : []))
        : [],
  }
}

/** The tokens of a scope parameter, each once (RFC 6749 section 3.3); null when malformed. */
export function readScope(text: string): readonly string[] | null {
  return SCOPE_FORM.test(text) ? [...new Set(text.split(' '))] : null
}

/** The name came from the client: it is shown only where it is a plain word. */
export function describeRepeated({ repeated: name }: { readonly repeated: string }): string {
  return /^[a-z_]{1,64}$/.test(name) ? `${name} is repeated` : 'a parameter is repeated'
}
