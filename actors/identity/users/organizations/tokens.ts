/** Tokens of an organization, and of one of its tenants. */
import type { MessageContext } from '../../../../runtime/kernel/actor.js'
import { invariant } from '../../../../runtime/kernel/assert.js'
import { findGrantedScopes, findSessionKey } from '../../../../storage/agents/agent-status.js'
import { findTenant } from '../../../../storage/identity/tenants.js'
import type { Caller } from '../../../domain/audit.js'
import { isUuid } from '../../../domain/ids.js'
import type { Principal } from '../../../domain/principal.js'
import { agentScopes } from '../../../domain/scopes.js'
import { membershipOf, tokenFault } from './access.js'
import type { Handling, OrganizationsTools } from './needs.js'
import { organizationScopes } from './rules.js'
import { inTenant } from '../../../platform/in-tenant.js'

const UNKNOWN = { tag: 'unknown_organization' } as const

export const issueOrganizationToken: Handling<'issueOrganizationToken'> = async (
  needs,
  message,
  context,
) => {
  const { caller, organizationId } = message
  const fault = await tokenFault(needs, caller, context, { unbound: true })
  if (fault !== undefined) return fault
  const found = await needs.database.system((tx) => membershipOf(tx, message), context)
  if (found === undefined) return UNKNOWN
  if (found.status !== 'active') return { tag: 'suspended', what: 'organization' }
  const { principal } = caller
  const scopes = organizationScopes(found.role, principal.scopes)
  const asked = { principal, organizationId, scopes }
  if (principal.subjectType !== 'human')
    return issueToAgent(needs, caller, { ...asked, tenantId: principal.tenantId }, context)
  const { accessToken, tokenType, expiresInSecs } = await needs.tokens.grantOrganization(
    asked,
    context,
  )
  return { tag: 'issued', accessToken, tokenType, expiresInSecs, scopes, organizationId }
}

export const switchTenant: Handling<'switchTenant'> = async (needs, message, context) => {
  const { caller, organizationId, tenantId } = message
  const fault = await tokenFault(needs, caller, context)
  if (fault !== undefined) return fault
  const { within, tenant } = await needs.database.system(
    async (tx) => ({
      within: await membershipOf(tx, message),
      tenant: isUuid(tenantId) ? await findTenant(tx, tenantId) : undefined,
    }),
    context,
  )
  if (within === undefined) return UNKNOWN
  if (tenant?.organizationId !== organizationId) return { tag: 'unknown_tenant' }
  if (within.status !== 'active') return { tag: 'suspended', what: 'organization' }
  if (tenant.status !== 'active') return { tag: 'suspended', what: 'tenant' }
  const granted = await needs.database.system(
    (tx) => findGrantedScopes(tx, caller.principal.subject),
    context,
  )
  const scopes = agentScopes({ controlPlane: false, role: within.role, granted })
  const issued = await issueToAgent(needs, caller, { tenantId, organizationId, scopes }, context)
  return issued.tag === 'issued' ? { ...issued, tenantId, tenantSlug: tenant.slug } : issued
}

/** Issues a token for the tenant with the given scopes, on the basis of an agent's login. */
async function issueToAgent(
  needs: OrganizationsTools,
  { principal, address }: Caller,
  asked: {
    readonly tenantId: string
    readonly organizationId: string
    readonly scopes: readonly string[]
  },
  context: MessageContext,
) {
  const { tenantId, organizationId, scopes } = asked
  const granted = await needs.tokens.grantAgent(
    {
      tenantId,
      organizationId,
      agentId: principal.subject,
      scopes,
      keyFingerprint: await keyOf(needs, principal, context),
      jkt: principal.jkt,
      challengeId: null,
      address,
    },
    context,
  )
  if (granted.tag === 'policy_denied') return granted
  invariant(granted.tag === 'granted', 'the session needs no challenge')
  const { accessToken, tokenType, expiresInSecs } = granted
  return {
    tag: 'issued' as const,
    accessToken,
    tokenType,
    expiresInSecs,
    scopes,
    organizationId,
  }
}

/** The key that signed the caller's login. When the key is revoked, the tokens based on it end. */
async function keyOf(
  { database }: OrganizationsTools,
  { tenantId, sessionId }: Principal,
  context: MessageContext,
): Promise<string> {
  const key =
    sessionId === null
      ? undefined
      : await inTenant(database, tenantId, context, (tx) => findSessionKey(tx, tenantId, sessionId))
  if (key === undefined) throw new Error("an agent's session has no key")
  return key
}
