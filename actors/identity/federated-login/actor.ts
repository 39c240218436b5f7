/** Federated sign-in: assembles the handlers. */
import { defineActor } from '../../../runtime/kernel/actor.js'
import { appendAudit } from '../../../storage/operations/audit.js'
import { findTenantBranding } from '../../../storage/identity/sign-in-flows.js'
import { listIdentities, removeIdentity } from '../../../storage/identity/upstream-identities.js'
import { findDomainRoute } from '../../../storage/identity/verified-domains.js'
import { browserSessions } from '../sessions/protocol.js'
import { personAuditRecord } from '../password-recovery/records.js'
import { isUuid } from '../../domain/ids.js'
import { socialOf } from '../../domain/tenants/branding.js'
import { tenants } from '../tenants/protocol.js'
import { SIGN_INS_MAX } from './fair-client.js'
import { federatedLogin, type FederatedLoginProtocol } from './protocol.js'
import { providersOf } from './providers.js'
import { domainOf } from './rules.js'
import { callback, link, sensitive, start } from './sign-in.js'
import type { FederatedLoginNeeds, FederatedLoginTools } from './needs.js'

export const federatedLoginActor = defineActor<FederatedLoginProtocol, FederatedLoginNeeds>({
  address: federatedLogin,
  asks: { tenants, browserSessions },
  // Callbacks wait for providers, which may be slow. The high limit keeps room for other requests.
  mailbox: { capacity: 1024, inflightMax: SIGN_INS_MAX },
  lane: { unlinkOwnIdentity: ({ session }) => session.accountId },
  supervision: { onFailure: 'resume' },
  create: (needs) => {
    const { database, sealer, clock, random, settings, issuer } = needs
    const tools: FederatedLoginTools = {
      ...needs,
      providers: providersOf(settings, database, sealer),
    }
    const { providers } = tools

    return {
      startSso: (message, context) => start(tools, message, context),
      linkOwnIdentity: (message, context) => link(tools, message, context),
      finishSso: (message, context) => callback(tools, message, context),

      async offered({ tenantId, tenantSettings }, context) {
        const tenant = { id: tenantId, deployment: socialOf(tenantSettings).enabled }
        return { tag: 'offered', upstreams: await providers.offered(tenant, context) }
      },

      async identities({ session }, context) {
        const { tenantId, accountId } = session
        const rows = await database.system((tx) => listIdentities(tx, tenantId, accountId), context)
        const branding = await database.tenant(
          tenantId,
          (tx) => findTenantBranding(tx, tenantId),
          context,
        )
        const deployment = socialOf(branding?.tenantSettings ?? {}).enabled
        const upstreams = await providers.offered({ id: tenantId, deployment }, context)
        const names = new Map(upstreams.map(({ id, name }) => [id, name]))
        return {
          tag: 'listed',
          // A tenant's provider must not learn the user's identities at the deployment's providers.
          identities: rows
            .filter((row) => !session.confined || row.tenantId !== null)
            .map((row) => ({
              id: row.id,
              name: names.get(row.provider) ?? row.issuer,
              email: row.email,
              linkedAt: row.createdAt,
              lastUsedAt: row.lastUsedAt,
            })),
          upstreams,
        }
      },

      async unlinkOwnIdentity({ session, token, identityId, address }, context) {
        if (!isUuid(identityId)) return { tag: 'unknown_identity' }
        const needed = sensitive(session, token)
        const demanded = await needs.browserSessions.demand(needed, context)
        if (demanded.tag === 'sign_in') return demanded
        const { tenantId, accountId, sub } = session
        const now = clock.now()
        const outcome = await database.system(async (tx) => {
          const removed = await removeIdentity(tx, tenantId, accountId, identityId, now)
          if (removed !== 'removed') return removed
          const done = { tenantId, type: 'account.identity.unlinked', sub, address } as const
          appendAudit(tx, [
            personAuditRecord(random, { ...done, requestId: context.requestId }, now),
          ])
          return removed
        }, context)
        if (outcome === 'last') return { tag: 'last_way_in' }
        return { tag: outcome === 'removed' ? 'unlinked' : 'unknown_identity' }
      },

      async checkSso({ email, tenant: selector }, context) {
        const resolved = await needs.tenants.resolve(selector, context)
        if (resolved.tag !== 'resolved') return resolved
        const { id: tenantId } = resolved.tenant
        const domain = domainOf(email)
        const isOn = settings.enterprise.enabled && needs.verifiedDomains
        if (!isOn || domain === undefined) return { tag: 'not_routed' }
        const route = await database.system((tx) => findDomainRoute(tx, tenantId, domain), context)
        if (route === undefined) return { tag: 'not_routed' }
        const url = new URL('/auth/sso/start', issuer)
        const query = { tenant_id: tenantId, provider: route.providerId, login_hint: email }
        url.search = new URLSearchParams(query).toString()
        const { organizationId, organizationName } = route
        return { tag: 'routed', organizationId, organizationName, authorizeUrl: url.href }
      },
    }
  },
})
