/** Whom a token is for: RFC 8707 and decisions.md 7.6, audience and resource. */
import type { MessageContext } from '../../../../runtime/kernel/actor.js'
import { type ApplicationRow, knownAudiences } from '../../../../storage/oauth/applications.js'
import type { Database } from '../../../../storage/platform/sql.js'
import { PERSON_SCOPES } from '../../../domain/scopes.js'
import type { OAuthForm } from '../form.js'

const RESOURCES_MAX = 10

export type AskedAudience = { readonly asked: readonly string[] } | { readonly fault: string }

/** What `audience` and `resource` ask for; both together must name the same thing. */
export function readAskedAudience(form: OAuthForm): AskedAudience {
  const audience = form.get('audience')
  const named = form.all('resource')
  const resources = named.length > 1 ? [...new Set(named)] : named
  if (resources.length > RESOURCES_MAX) return { fault: 'too many resources' }
  // RFC 8707 section 2: an absolute URI without a fragment.
  if (!resources.every((resource) => URL.canParse(resource) && !resource.includes('#')))
    return { fault: 'resource must be an absolute URI without a fragment' }
  if (audience === null) return { asked: resources }
  const isSame = resources.length === 0 || spelledAs(resources, [audience])?.length === 1
  if (!isSame) return { fault: 'audience and resource must name the same thing' }
  return { asked: [audience] }
}

/**
 * The audience of a token that was asked for with `asked`, all of them known; `own` is that of the
 * application. A token with service scopes is for this service as well.
 */
export function tokenAudience(
  asked: readonly string[],
  { own, issuer, scopes }: { own: string; issuer: string; scopes: readonly string[] },
): readonly string[] {
  const audience = asked.length === 0 ? [own] : [...asked]
  const service = scopes.some((scope) => !PERSON_SCOPES.has(scope))
  return service && !audience.includes(issuer) ? [...audience, issuer] : audience
}

/**
 * An origin as a URI with its empty path and without is one resource (RFC 3986 section 6.2.3): programs
 * that go through a URL parser write the one, people the other.
 */
const ORIGIN = /^https?:\/\/[^/?#\s]+\/?$/

function spellingsOf(audience: string): readonly string[] {
  if (!ORIGIN.test(audience)) return [audience]
  return [audience, audience.endsWith('/') ? audience.slice(0, -1) : `${audience}/`]
}

/** What was asked for, each as `known` spells it and none twice; null when one is not among them. */
export function spelledAs(
  asked: readonly string[],
  known: readonly string[],
): readonly string[] | null {
  const spelled = asked.map((one) => spellingsOf(one).find((spelling) => known.includes(spelling)))
  return spelled.every((one) => one !== undefined) ? [...new Set(spelled)] : null
}

/**
 * What was asked for, as those spell it whose it is: this service, the one who asks, or another active
 * application of the tenant. Null when one is nobody's.
 */
export async function knownAudience(
  database: Database,
  issuer: string,
  { tenantId, audience: asker }: Pick<ApplicationRow, 'tenantId' | 'audience'>,
  asked: readonly string[],
  context: Pick<MessageContext, 'signal'>,
): Promise<readonly string[] | null> {
  const own = [issuer, asker]
  const others = asked.filter((audience) => !own.includes(audience))
  if (others.length === 0) return asked
  // PostgreSQL takes no NUL, not even to look for it.
  if (others.some((audience) => audience.includes('\0'))) return null
  const spellings = others.flatMap(spellingsOf)
  const found = await database.tenant(tenantId, (tx) => knownAudiences(tx, tenantId, spellings), {
    signal: context.signal,
  })
  return spelledAs(asked, [...found, ...own])
}
