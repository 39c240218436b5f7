/** The API resources that an authorization request names, before its parameters are validated. */
import type { MessageContext } from '../../../../runtime/kernel/actor.js'
import type { AuthorizingClientRow } from '../../../../storage/oauth/applications.js'
import type { Database } from '../../../../storage/platform/sql.js'
import { SCOPES } from '../../../domain/scopes.js'
import { type NamedResources, namedResources, resourceLookup } from '../issue/api-resource.js'
import { knownAudience, readRequestedAudience } from '../issue/audience.js'
import { type OAuthForm, readScope } from '../form.js'

export const UNKNOWN_AUDIENCE = 'the audience is not known in this tenant'

/** Undefined if the request names no audience. */
export async function targetOf(
  { database, issuer }: { readonly database: Database; readonly issuer: string },
  form: OAuthForm,
  client: AuthorizingClientRow,
  context: MessageContext,
): Promise<NamedResources | undefined> {
  const read = readRequestedAudience(form)
  if ('fault' in read) return read
  if (read.requested.length === 0) return undefined
  const named = await namedResources(resourceLookup(database, null), client, read.requested)
  if ('fault' in named || named.resources.length > 0) return named
  const scopes = readScope(form.get('scope') ?? '') ?? []
  if (scopes.every((scope) => (SCOPES as readonly string[]).includes(scope))) return named
  // Scopes of a resource that does not exist are unknown: the request is refused because of its target.
  const known = await knownAudience(database, issuer, client, read.requested, context)
  return known === null ? { fault: UNKNOWN_AUDIENCE } : named
}
