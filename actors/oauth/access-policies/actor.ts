/** Manages the access policies of a tenant. `enforcement.ts` evaluates them. */
import { type ActorRef, defineActor, type MessageContext } from '../../../runtime/kernel/actor.js'
import type { Clock } from '../../../runtime/kernel/clock.js'
import type { Random } from '../../../runtime/kernel/random.js'
import {
  type AccessPolicyRow,
  accessPoliciesInForce,
  deleteAccessPolicy,
  findAccessPolicy,
  insertAccessPolicy,
  listAccessPolicies,
  lockAccessPolicy,
  updateAccessPolicy,
} from '../../../storage/oauth/access-policies.js'
import { appendAudit } from '../../../storage/operations/audit.js'
import { idempotently } from '../../../storage/platform/idempotency.js'
import type { Database, Transaction } from '../../../storage/platform/sql.js'
import { audited, type Caller } from '../../domain/audit.js'
import { isNetwork } from '../../domain/commerce/networks.js'
import { isUuid } from '../../domain/ids.js'
import { page } from '../../platform/paging.js'
import { tokens, type TokensProtocol } from '../tokens/protocol.js'
import {
  type AccessPoliciesProtocol,
  accessPolicies,
  type PolicyMembers,
  type PolicyRecord,
  type PolicyRefused,
} from './protocol.js'
import { denials } from './rules.js'
import type { AccessControlSettings } from './settings.js'

const UNKNOWN = { tag: 'unknown' } as const

export type AccessPoliciesActorNeeds = {
  readonly database: Database
  readonly clock: Clock
  readonly random: Random
  readonly tokens: ActorRef<TokensProtocol>
  readonly settings: AccessControlSettings
  /** The highest assurance level that a sign-in can reach: 3 with passkeys, otherwise 2. */
  readonly levelMax: 2 | 3
}

export const accessPoliciesActor = defineActor<AccessPoliciesProtocol, AccessPoliciesActorNeeds>({
  address: accessPolicies,
  asks: { tokens },
  mailbox: { capacity: 512, inflightMax: 32 },
  // The actor has no state that a restart would repair.
  supervision: { onFailure: 'resume' },
  create: ({ database, clock, random, tokens, settings, levelMax }) => {
    function record(
      tx: Transaction,
      caller: Caller,
      did: 'created' | 'updated' | 'deleted',
      row: AccessPolicyRow,
      { requestId }: MessageContext,
      before?: AccessPolicyRow,
    ): void {
      appendAudit(tx, [
        audited(caller, {
          id: random.uuid(),
          tenantId: row.tenantId,
          type: `admin.access_policy.${did}`,
          occurredAt: clock.now(),
          resource: { type: 'access_policy', id: row.id },
          requestId,
          data: before === undefined ? wire(row) : { before: wire(before), after: wire(row) },
        }),
      ])
    }

    const changed = (tenantId: string) => tokens.send('invalidate', { ids: [tenantId] })

    return {
      async list({ caller, limit, after }, { signal }) {
        const { tenantId } = caller.principal
        const rows = await database.tenant(
          tenantId,
          (tx) => listAccessPolicies(tx, tenantId, limit + 1, after),
          { signal },
        )
        const { items, next } = page(rows, limit)
        return { tag: 'listed', policies: items.map(recordOf), next }
      },

      async read({ caller, policyId }, { signal }) {
        const { tenantId } = caller.principal
        if (!isUuid(policyId)) return UNKNOWN
        const row = await database.tenant(
          tenantId,
          (tx) => findAccessPolicy(tx, tenantId, policyId),
          { signal },
        )
        return row === undefined ? UNKNOWN : { tag: 'found', policy: recordOf(row) }
      },

      async create({ caller, policy, force, idempotency }, context) {
        const { tenantId } = caller.principal
        const refused = faultOf(policy, levelMax) ?? (force ? undefined : lockout(policy, caller))
        if (refused !== undefined) return refused
        const outcome = await database.tenant(
          tenantId,
          (tx) =>
            idempotently(
              tx,
              idempotency,
              async () => {
                const now = clock.now()
                const times = { createdAt: now, updatedAt: now }
                const row = { ...policy, ...times, id: random.uuid(), tenantId }
                const most = settings.max_policies_per_tenant
                if (!(await insertAccessPolicy(tx, row, most)))
                  return { tag: 'full' as const, most }
                record(tx, caller, 'created', row, context)
                return { tag: 'created' as const, policy: recordOf(row), replayed: false }
              },
              (done) => (done.tag === 'created' ? done : undefined),
            ),
          { signal: context.signal },
        )
        changed(tenantId)
        return outcome
      },

      async update({ caller, policyId, change, force }, context) {
        const { tenantId } = caller.principal
        if (!isUuid(policyId)) return UNKNOWN
        const outcome = await database.tenant(
          tenantId,
          async (tx) => {
            const before = await lockAccessPolicy(tx, tenantId, policyId)
            if (before === undefined) return UNKNOWN
            const given = Object.entries(change).filter(([, value]) => value !== undefined)
            const policy: PolicyMembers = { ...before, ...Object.fromEntries(given) }
            const refused =
              faultOf(policy, levelMax) ?? (force ? undefined : lockout(policy, caller))
            if (refused !== undefined) return refused
            const row = { ...before, ...policy, updatedAt: clock.now() }
            await updateAccessPolicy(tx, row)
            record(tx, caller, 'updated', row, context, before)
            return { tag: 'found' as const, policy: recordOf(row) }
          },
          { signal: context.signal },
        )
        changed(tenantId)
        return outcome
      },

      async remove({ caller, policyId }, context) {
        const { tenantId } = caller.principal
        if (!isUuid(policyId)) return UNKNOWN
        const isRemoved = await database.tenant(
          tenantId,
          async (tx) => {
            const row = await deleteAccessPolicy(tx, tenantId, policyId)
            if (row !== undefined) record(tx, caller, 'deleted', row, context)
            return row !== undefined
          },
          { signal: context.signal },
        )
        changed(tenantId)
        return isRemoved ? { tag: 'removed' } : UNKNOWN
      },

      async evaluateAccessPolicies({ caller, ...question }, { signal }) {
        const { tenantId } = caller.principal
        const policies = await database.tenant(
          tenantId,
          (tx) => accessPoliciesInForce(tx, tenantId),
          { signal },
        )
        const denied = denials(policies, question).map(({ policy: { id, name }, reason }) => ({
          policyId: id,
          name,
          reason,
        }))
        return { tag: 'evaluated', denied }
      },
    }
  },
})

function faultOf(policy: PolicyMembers, levelMax: number): PolicyRefused | undefined {
  const { allowedNetworks, deniedNetworks, requiredLevel } = policy
  if ((requiredLevel ?? 1) > levelMax) return { tag: 'level_unreachable' }
  for (const [member, networks] of [
    ['allowed_networks', allowedNetworks],
    ['denied_networks', deniedNetworks],
  ] as const) {
    const index = networks.findIndex((network) => !isNetwork(network))
    if (index >= 0) return { tag: 'network_invalid', member, index }
  }
  const isEmpty =
    allowedNetworks.length === 0 && deniedNetworks.length === 0 && requiredLevel === null
  return isEmpty ? { tag: 'no_condition' } : undefined
}

/** The refusal of a policy that would refuse its own author, with this token and from this address. */
function lockout(policy: PolicyMembers, { principal, address }: Caller): PolicyRefused | undefined {
  const { clientId, scopes, subjectType, acr } = principal
  const level = subjectType === 'human' ? Number(acr?.slice(-1) ?? 1) : null
  for (const action of policy.actions) {
    const [verdict] = denials([{ ...policy, id: '' }], { action, clientId, scopes, address, level })
    if (verdict !== undefined) return { tag: 'locks_out', reason: verdict.reason, address }
  }
  return undefined
}

function recordOf({ tenantId: _tenant, ...policy }: AccessPolicyRow): PolicyRecord {
  return policy
}

function wire(row: AccessPolicyRow) {
  return {
    name: row.name,
    enabled: row.enabled,
    actions: row.actions,
    client_ids: row.clientIds,
    scopes: row.scopes,
    allowed_networks: row.allowedNetworks,
    denied_networks: row.deniedNetworks,
    required_aal: row.requiredLevel === null ? null : `aal${row.requiredLevel}`,
  }
}
