/**
 * What a token request may ask of the grant behind it: the same or less, for the one token that it is
 * answered with; the grant keeps what it has. RFC 8707 section 2.2, RFC 9396 section 6.
 */
import { isDeepStrictEqual } from 'node:util'
import type { AuthorizationDetails } from '../../../../storage/oauth/authorization-codes.js'
import { readAskedAudience, spelledAs, tokenAudience } from './audience.js'
import type { OAuthForm } from '../form.js'
import type { OAuthRefused } from '../protocol.js'
import { refuse } from '../refusals.js'

/** The part of a grant that can be narrowed besides its scopes. */
export type Breadth = {
  readonly audience: readonly string[]
  readonly authorizationDetails: AuthorizationDetails | null
}

/** As for authorization requests: what is longer was never granted. */
const DETAILS_CHARACTERS_MAX = 8192

/**
 * Whom the token is for and what exactly it allows: what was asked for by `audience`, `resource` and
 * `authorization_details`, each left out meaning all of the grant. A token with service scopes is for
 * this service as well, as always (decisions.md 7.2, `aud`).
 */
export function narrowed(
  form: OAuthForm,
  granted: Breadth,
  { issuer, scopes }: { readonly issuer: string; readonly scopes: readonly string[] },
): Breadth | OAuthRefused {
  const read = readAskedAudience(form)
  if ('fault' in read) return refuse('invalid_target', read.fault)
  const asked = spelledAs(read.asked, granted.audience)
  if (asked === null) return refuse('invalid_target', 'the grant was not for this audience')
  const authorizationDetails = narrowedDetails(
    form.get('authorization_details'),
    granted.authorizationDetails,
  )
  if (authorizationDetails === undefined)
    return refuse('invalid_authorization_details', 'the grant has no such authorization_details')
  const audience =
    asked.length === 0 ? granted.audience : tokenAudience(asked, { own: asked[0]!, issuer, scopes })
  return { audience, authorizationDetails }
}

/** Those of the grant that are named, each as it was granted; undefined when another one is. */
function narrowedDetails(
  text: string | null,
  granted: AuthorizationDetails | null,
): AuthorizationDetails | null | undefined {
  if (text === null) return granted
  const asked = readArray(text)
  if (asked === null || granted === null) return undefined
  const known = asked.every((one) => granted.some((other) => isDeepStrictEqual(one, other)))
  return known
    ? granted.filter((one) => asked.some((other) => isDeepStrictEqual(one, other)))
    : undefined
}

function readArray(text: string): readonly unknown[] | null {
  if (text.length > DETAILS_CHARACTERS_MAX) return null
  try {
    const parsed: unknown = JSON.parse(text)
    return Array.isArray(parsed) && parsed.length > 0 ? parsed : null
  } catch {
    return null
  }
}
