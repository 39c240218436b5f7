/** Parses the form of an OAuth endpoint. Repeated parameters are an error (RFC 6749 section 3.2). */
import { TOKEN_EXCHANGE } from '../../domain/oauth/grant-types.js'
import type { FormFields } from './protocol.js'

/** May repeat (RFC 8707 section 2). An exchange may repeat `audience` too (RFC 8693 section 2.1). */
const REPEATABLE = 'resource'
/** scope-token characters: visible ASCII except `"` and `\`, separated by single spaces (RFC 6749 section 3.3). */
const SCOPE_FORM = /^[\x21\x23-\x5b\x5d-\x7e]+(?: [\x21\x23-\x5b\x5d-\x7e]+)*$/

export interface OAuthForm {
  /** The value, or null when the parameter is absent or empty. */
  get(name: string): string | null
  all(name: string): readonly string[]
}

/** @returns the form, or the name of a repeated parameter. */
export function readForm(fields: FormFields): OAuthForm | { readonly repeated: string } {
  const first = new Map<string, string>()
  const repeated = new Set<string>()
  for (const [name, value] of fields) {
    if (!first.has(name)) first.set(name, value)
    else if (name !== REPEATABLE) repeated.add(name)
  }
  if (first.get('grant_type') === TOKEN_EXCHANGE) repeated.delete('audience')
  const [name] = repeated
  if (name !== undefined) return { repeated: name }
  // A parameter sent without a value counts as omitted (RFC 6749 section 3.2).
  return {
    get: (name) => first.get(name) || null,
    all: (name) =>
      first.has(name)
        ? fields.flatMap(([named, value]) => (named === name && value !== '' ? value : []))
        : [],
  }
}

/** The distinct scopes of a scope parameter (RFC 6749 section 3.3), or null if it is malformed. */
export function readScope(text: string): readonly string[] | null {
  return SCOPE_FORM.test(text) ? [...new Set(text.split(' '))] : null
}
