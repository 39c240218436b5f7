/** Reads and computes the audience of a token (RFC 8707). See docs/reference/oauth.md. */
import type { MessageContext } from '../../../../runtime/kernel/actor.js'
import { type ApplicationRow, knownAudiences } from '../../../../storage/oauth/applications.js'
import type { Database } from '../../../../storage/platform/sql.js'
import { PERSON_SCOPES } from '../../../domain/scopes.js'
import type { OAuthForm } from '../form.js'
import { inTenant } from '../../../platform/in-tenant.js'

const RESOURCES_MAX = 10

type RequestedAudience = { readonly requested: readonly string[] } | { readonly fault: string }

/** The audiences that `audience` and `resource` request. If both are sent, they must be equal. */
export function readRequestedAudience(form: OAuthForm): RequestedAudience {
  const audiences = [...new Set(form.all('audience'))]
  const named = form.all('resource')
  const resources = named.length > 1 ? [...new Set(named)] : named
  if (Math.max(resources.length, audiences.length) > RESOURCES_MAX)
    return { fault: 'too many resources' }
  // RFC 8707 section 2: an absolute URI without a fragment.
  if (!resources.every((resource) => URL.canParse(resource) && !resource.includes('#')))
    return { fault: 'resource must be an absolute URI without a fragment' }
  if (audiences.length === 0) return { requested: resources }
  const isSame =
    resources.length === 0 || spelledAs(resources, audiences)?.length === audiences.length
  if (!isSame) return { fault: 'audience and resource must name the same audience' }
  return { requested: audiences }
}

/**
 * The `aud` of a token. `requested` are known audiences, `own` is the application's. A token with service
 * scopes also has the issuer in its audience.
 */
export function tokenAudience(
  requested: readonly string[],
  { own, issuer, scopes }: { own: string; issuer: string; scopes: readonly string[] },
): readonly string[] {
  const audience = requested.length === 0 ? [own] : [...requested]
  const service = scopes.some((scope) => !PERSON_SCOPES.has(scope))
  return service && !audience.includes(issuer) ? [...audience, issuer] : audience
}

/**
 * An origin with and without its empty path is the same resource (RFC 3986 section 6.2.3). URL parsers
 * write the slash, people often do not.
 */
const ORIGIN = /^https?:\/\/[^/?#\s]+\/?$/

function spellingsOf(audience: string): readonly string[] {
  if (!ORIGIN.test(audience)) return [audience]
  return [audience, audience.endsWith('/') ? audience.slice(0, -1) : `${audience}/`]
}

/** The requested audiences in the spelling of `known`, without duplicates. Null if one is unknown. */
export function spelledAs(
  requested: readonly string[],
  known: readonly string[],
): readonly string[] | null {
  const spelled = requested.map((one) =>
    spellingsOf(one).find((spelling) => known.includes(spelling)),
  )
  return spelled.every((one) => one !== undefined) ? [...new Set(spelled)] : null
}

/**
 * The requested audiences in the spelling of their owner: this service, the requesting application or
 * another active application of the tenant. Null if one has no owner.
 */
export async function knownAudience(
  database: Database,
  issuer: string,
  { tenantId, audience: requester }: Pick<ApplicationRow, 'tenantId' | 'audience'>,
  requested: readonly string[],
  context: Pick<MessageContext, 'signal'>,
): Promise<readonly string[] | null> {
  const own = [issuer, requester]
  const others = requested.filter((audience) => !own.includes(audience))
  if (others.length === 0) return requested
  // PostgreSQL rejects NUL even in a search value.
  if (others.some((audience) => audience.includes('\0'))) return null
  const spellings = others.flatMap(spellingsOf)
  const found = await inTenant(database, tenantId, context, (tx) =>
    knownAudiences(tx, tenantId, spellings, issuer),
  )
  return spelledAs(requested, [...found, ...own])
}
