/** Whom a token is for: RFC 8707 and decisions.md 7.6, audience and resource. */
import type { Turn } from '../../runtime/kernel/actor.js'
import { type ApplicationRow, knownAudiences } from '../../storage/applications.js'
import type { Database } from '../../storage/sql.js'
import type { OAuthForm } from './form.js'

/** Scopes that speak of the human, not of this service's own APIs. */
const IDENTITY_SCOPES = new Set(['openid', 'profile', 'email', 'phone', 'offline_access'])
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
  if (resources.length > 0 && (resources.length !== 1 || resources[0] !== audience))
    return { fault: 'audience and resource must name the same thing' }
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
  const service = scopes.some((scope) => !IDENTITY_SCOPES.has(scope))
  return service && !audience.includes(issuer) ? [...audience, issuer] : audience
}

/** Whether everything asked for is the issuer or the audience of an active application of the tenant. */
export async function areKnownAudiences(
  database: Database,
  issuer: string,
  { tenantId, audience: own }: Pick<ApplicationRow, 'tenantId' | 'audience'>,
  asked: readonly string[],
  turn: Pick<Turn, 'signal'>,
): Promise<boolean> {
  const others = asked.filter((audience) => audience !== issuer && audience !== own)
  if (others.length === 0) return true
  // PostgreSQL takes no NUL, not even to look for it.
  if (others.some((audience) => audience.includes('\0'))) return false
  const known = await database.tenant(tenantId, (tx) => knownAudiences(tx, tenantId, others), {
    signal: turn.signal,
  })
  return others.every((audience) => known.includes(audience))
}
