/** Which providers apply: to the users of a tenant, and to an email address. */
import { findDomainRoute } from '../../../../../storage/identity/verified-domains.js'
import { socialOf } from '../../../../domain/tenants/branding.js'
import type { FederatedLoginHandler } from './needs.js'
import { domainOf } from '../../../../platform/mail/public-domains.js'

export const offered: FederatedLoginHandler<'offered'> = async (
  { providers },
  { tenantId, tenantSettings },
  context,
) => {
  const tenant = { id: tenantId, deployment: socialOf(tenantSettings).enabled }
  return { tag: 'offered', upstreams: await providers.offered(tenant, context) }
}

export const checkSso: FederatedLoginHandler<'checkSso'> = async (
  { tenants, database, settings, verifiedDomains, issuer },
  { email, tenant: selector },
  context,
) => {
  const resolved = await tenants.resolve(selector, context)
  if (resolved.tag !== 'resolved') return resolved
  const { id: tenantId } = resolved.tenant
  const domain = domainOf(email)
  const isOn = settings.enterprise.enabled && verifiedDomains
  if (!isOn || domain === undefined) return { tag: 'not_routed' }
  const route = await database.system((tx) => findDomainRoute(tx, tenantId, domain), context)
  if (route === undefined) return { tag: 'not_routed' }
  const url = new URL('/auth/sso/start', issuer)
  const query = { tenant_id: tenantId, provider: route.providerId, login_hint: email }
  url.search = new URLSearchParams(query).toString()
  const { organizationId, organizationName } = route
  return { tag: 'routed', organizationId, organizationName, authorizeUrl: url.href }
}
