/** Organizations and environments, as their operators create and see them. */
import { type ActorRef, defineActor, type MessageContext } from '../../../runtime/kernel/actor.js'
import { invariant } from '../../../runtime/kernel/assert.js'
import type { Clock } from '../../../runtime/kernel/clock.js'
import type { Random } from '../../../runtime/kernel/random.js'
import { findGrantedScopes, findSessionKey } from '../../../storage/agents/agent-status.js'
import { idempotently } from '../../../storage/platform/idempotency.js'
import {
  findAccountOfSubject,
  findMembership,
  findPersonOrganization,
  listMemberships,
  listPersonOrganizations,
  type Member,
  type Membership,
} from '../../../storage/identity/organizations.js'
import type { Database, Transaction } from '../../../storage/platform/sql.js'
import { findTenant, listTenants } from '../../../storage/identity/tenants.js'
import type { Caller } from '../../domain/audit.js'
import { isUuid } from '../../domain/ids.js'
import type { Principal } from '../../domain/principal.js'
import { agentScopes, reachesOrganization } from '../../domain/scopes.js'
import { page } from '../../platform/paging.js'
import type { ListCursor } from '../../domain/paging.js'
import { type TenantsProtocol, tenants } from '../tenants/protocol.js'
import { type TokensProtocol, tokens } from '../../oauth/tokens/protocol.js'
import { isOperatorOfDeployment, organizationAccess } from './access.js'
import { activation } from './activation.js'
import { members } from './members.js'
import { policies } from './policies.js'
import type { OrganizationsSettings } from './settings.js'
import { transfers } from './transfers.js'
import { records } from './records.js'
import { suspension } from './suspension.js'
import { createOrganization, createTenant, tenantRecord } from './creation.js'
import { type NotOperator, type OrganizationsProtocol, organizations } from './protocol.js'
import {
  boundTo,
  mayCreateTenant,
  mayNameOrganization,
  operatorFault,
  organizationScopes,
  slugFault,
} from './rules.js'

const UNKNOWN = { tag: 'unknown_organization' } as const
const OFF = { tag: 'organizations_off' } as const
const NO_ACCOUNT: NotOperator = { tag: 'not_operator', detail: 'The caller has no account.' }

export type OrganizationsNeeds = {
  readonly database: Database
  readonly clock: Clock
  readonly random: Random
  readonly tenants: ActorRef<TenantsProtocol>
  readonly tokens: ActorRef<TokensProtocol>
  readonly limits: OrganizationsSettings
}

export const organizationsActor = defineActor<OrganizationsProtocol, OrganizationsNeeds>({
  address: organizations,
  asks: { tenants, tokens },
  mailbox: { capacity: 1024, inflightMax: 64 },
  lane: {
    updateOrganization: ({ organizationId }) => organizationId,
    updateTenant: ({ tenantId }) => tenantId,
    suspendOrganization: ({ id }) => id,
    reactivateOrganization: ({ id }) => id,
    suspendTenant: ({ id }) => id,
    reactivateTenant: ({ id }) => id,
    suspendAccount: ({ id }) => id,
    reactivateAccount: ({ id }) => id,
    addOrganizationMember: ({ organizationId }) => organizationId,
    updateOrganizationMember: ({ organizationId }) => organizationId,
    removeOrganizationMember: ({ organizationId }) => organizationId,
    updateOrganizationPolicy: ({ organizationId }) => organizationId,
    startTenantTransfer: ({ tenantId }) => tenantId,
    acceptTenantTransfer: ({ organizationId }) => organizationId,
    closeTenantTransfer: ({ organizationId }) => organizationId,
    activateTenant: ({ caller }) => caller.principal.tenantId,
  },
  supervision: { onFailure: 'resume' },
  create: (needs) => {
    const { database, clock, random, tenants, tokens, limits } = needs
    let controlPlaneId: string | undefined
    const activate = activation({ database, clock, random, tokens })

    async function refuse(
      { principal }: Caller,
      context: MessageContext,
      { unbound = false } = {},
    ): Promise<NotOperator | undefined> {
      controlPlaneId ??= (await tenants.ensureControlPlane({}, context)).tenant.id
      return operatorFault(principal, controlPlaneId, unbound)
    }

    /** Organizations and their members belong to no tenant, so every transaction here crosses tenants. */
    const crossing = <T>(work: (tx: Transaction) => Promise<T>, { signal }: MessageContext) =>
      database.system(work, { signal })

    async function membership(
      tx: Transaction,
      { principal }: Caller,
      organizationId: string,
    ): Promise<Membership | undefined> {
      if (!mayNameOrganization(principal, organizationId)) return undefined
      const member = await memberOf(tx, principal)
      if (member === undefined) return undefined
      if (member.memberType === 'agent') return findMembership(tx, member, organizationId)
      const { tenantId, scopes } = principal
      if (!reachesOrganization(scopes)) return undefined
      return findPersonOrganization(tx, { accountId: member.memberId, tenantId, organizationId })
    }

    async function memberships(
      tx: Transaction,
      { principal }: Caller,
      limit: number,
      after: ListCursor | null,
    ): Promise<Membership[]> {
      const organizationId = boundTo(principal)
      const member = await memberOf(tx, principal)
      if (member === undefined) return []
      if (member.memberType === 'agent')
        return listMemberships(tx, member, organizationId, limit, after)
      const { tenantId } = principal
      const within = { accountId: member.memberId, tenantId, organizationId }
      return listPersonOrganizations(tx, within, limit, after)
    }

    /** Issues a token for the tenant with the given scopes, on the basis of an agent's login. */
    async function issue(
      { principal, address }: Caller,
      tenantId: string,
      organizationId: string,
      scopes: readonly string[],
      context: MessageContext,
    ) {
      const granted = await tokens.grantAgent(
        {
          tenantId,
          organizationId,
          agentId: principal.subject,
          scopes,
          keyFingerprint: await keyOf(principal, context),
          jkt: principal.jkt,
          challengeId: null,
          address,
        },
        context,
      )
      if (granted.tag === 'policy_denied') return granted
      invariant(granted.tag === 'granted', 'the session needs no challenge')
      const { accessToken, tokenType, expiresInSecs } = granted
      return { accessToken, tokenType, expiresInSecs, scopes, organizationId }
    }

    async function issueToPerson(
      principal: Principal,
      organizationId: string,
      scopes: readonly string[],
      context: MessageContext,
    ) {
      const message = { principal, organizationId, scopes }
      const { accessToken, tokenType, expiresInSecs } = await tokens.grantOrganization(
        message,
        context,
      )
      return { accessToken, tokenType, expiresInSecs, scopes, organizationId }
    }

    /** The key that signed the caller's login. When the key is revoked, the tokens based on it end. */
    async function keyOf(
      { tenantId, sessionId }: Principal,
      context: MessageContext,
    ): Promise<string> {
      const key =
        sessionId === null
          ? undefined
          : await database.tenant(tenantId, (tx) => findSessionKey(tx, tenantId, sessionId), {
              signal: context.signal,
            })
      if (key === undefined) throw new Error("an agent's session has no key")
      return key
    }

    const access = organizationAccess({ database, refuse, membership })
    const changed = (tenantId: string) => tenants.send('forget', { tenantId })
    const refuseOff = (caller: Caller) =>
      limits.enabled || isOperatorOfDeployment(caller) ? undefined : OFF

    return {
      ...records({ database, clock, random, access, changed }),
      ...suspension({ database, clock, random, tenants, tokens }),
      ...members({ clock, random, tokens, access, limits, refuseOff }),
      ...policies({ clock, random, access, limits }),
      ...transfers({ database, clock, random, access, limits, refuseOff, changed }),

      async listOrganizations({ caller, limit, after }, context) {
        const fault = await refuse(caller, context)
        if (fault !== undefined) return fault
        const rows = await crossing((tx) => memberships(tx, caller, limit + 1, after), context)
        const { items, next } = page(rows, limit)
        return { tag: 'listed', organizations: items, next }
      },

      async createOrganization(message, context) {
        const fault =
          refuseOff(message.caller) ??
          (await refuse(message.caller, context, { unbound: true })) ??
          slugFault(message.slug)
        if (fault !== undefined) return fault
        return crossing(
          (tx) =>
            idempotently(
              tx,
              message.idempotency,
              async () => {
                const member = await memberOf(tx, message.caller.principal)
                if (member === undefined) return NO_ACCOUNT
                return createOrganization(tx, message, member, { clock, random }, context.requestId)
              },
              (outcome) => (outcome.tag === 'created' ? outcome : undefined),
            ),
          context,
        )
      },

      async issueOrganizationToken({ caller, organizationId }, context) {
        const fault = await refuse(caller, context, { unbound: true })
        if (fault !== undefined) return fault
        const found = await crossing((tx) => membership(tx, caller, organizationId), context)
        if (found === undefined) return UNKNOWN
        if (found.status !== 'active') return { tag: 'suspended', what: 'organization' }
        const { principal } = caller
        const { tenantId, subjectType } = principal
        const scopes = organizationScopes(found.role, principal.scopes)
        const issued =
          subjectType === 'human'
            ? await issueToPerson(principal, organizationId, scopes, context)
            : await issue(caller, tenantId, organizationId, scopes, context)
        if ('tag' in issued) return issued
        return { tag: 'issued', ...issued }
      },

      async listTenants({ caller, organizationId, limit, after }, context) {
        const fault = await refuse(caller, context)
        if (fault !== undefined) return fault
        const rows = await crossing(
          async (tx) =>
            (await membership(tx, caller, organizationId)) === undefined
              ? undefined
              : listTenants(tx, organizationId, limit + 1, after),
          context,
        )
        if (rows === undefined) return UNKNOWN
        const { items, next } = page(rows, limit)
        return { tag: 'listed', tenants: items.map(tenantRecord), next }
      },

      async createTenant(message, context) {
        const fault =
          refuseOff(message.caller) ??
          (await refuse(message.caller, context)) ??
          slugFault(message.slug)
        if (fault !== undefined) return fault
        return crossing(async (tx) => {
          const found = await membership(tx, message.caller, message.organizationId)
          if (found === undefined) return UNKNOWN
          if (!mayCreateTenant(found.role)) return { tag: 'role_too_low', role: found.role }
          if (found.status !== 'active') return { tag: 'suspended', what: 'organization' }
          return idempotently(
            tx,
            message.idempotency,
            async () => {
              const member = await memberOf(tx, message.caller.principal)
              const deps = { clock, random, maxTenants: limits.max_tenants }
              return createTenant(tx, message, found, member, deps, context.requestId)
            },
            (outcome) => (outcome.tag === 'created' ? outcome : undefined),
          )
        }, context)
      },

      async activateTenant(message, context) {
        const outcome = await activate(message, context)
        // Other processes are notified by the commit.
        tenants.send('forget', { tenantId: message.caller.principal.tenantId })
        return outcome
      },

      async switchTenant({ caller, organizationId, tenantId }, context) {
        const fault = await refuse(caller, context)
        if (fault !== undefined) return fault
        const found = await crossing(async (tx) => {
          const within = await membership(tx, caller, organizationId)
          const tenant = isUuid(tenantId) ? await findTenant(tx, tenantId) : undefined
          return { within, tenant }
        }, context)
        const { within, tenant } = found
        if (within === undefined) return UNKNOWN
        if (tenant?.organizationId !== organizationId) return { tag: 'unknown_tenant' }
        if (within.status !== 'active') return { tag: 'suspended', what: 'organization' }
        if (tenant.status !== 'active') return { tag: 'suspended', what: 'tenant' }
        const granted = await crossing(
          (tx) => findGrantedScopes(tx, caller.principal.subject),
          context,
        )
        const scopes = agentScopes({ controlPlane: false, role: within.role, granted })
        const issued = await issue(caller, tenantId, organizationId, scopes, context)
        if ('tag' in issued) return issued
        return { tag: 'issued', ...issued, tenantId, tenantSlug: tenant.slug }
      },
    }
  },
})

/** The member of organizations that the token represents; undefined when there is none. */
async function memberOf(tx: Transaction, principal: Principal): Promise<Member | undefined> {
  const { subject, subjectType, tenantId } = principal
  if (subjectType === 'agent') return { memberType: 'agent', memberId: subject }
  const memberId =
    subjectType === 'human' ? await findAccountOfSubject(tx, tenantId, subject) : undefined
  return memberId === undefined ? undefined : { memberType: 'account', memberId }
}
