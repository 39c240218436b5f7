/** Grants and leases of a credential. Each change takes effect at its commit. */
import type { MessageContext } from '../../../runtime/kernel/actor.js'
import { isDelegationActive } from '../../../storage/agents/delegations.js'
import { appendAudit } from '../../../storage/operations/audit.js'
import { idempotently } from '../../../storage/platform/idempotency.js'
import { appendEvents } from '../../../storage/platform/outbox.js'
import type { Transaction } from '../../../storage/platform/sql.js'
import type { SecretCredentialRow } from '../../../storage/vault/vault-credentials.js'
import {
  agentBelongs,
  revokeVaultGrantRow,
  insertVaultGrant,
  listVaultGrantRows,
} from '../../../storage/vault/vault-grants.js'
import {
  revokeVaultLeaseRow,
  insertVaultLease,
  listVaultLeaseRows,
} from '../../../storage/vault/vault-leases.js'
import type { Caller } from '../../domain/audit.js'
import type { IdempotencyClaim } from '../../domain/idempotency.js'
import { isUuid } from '../../domain/ids.js'
import { page } from '../../platform/paging.js'
import { type EventContext, eventContext } from '../../domain/events.js'
import { auditEntry, grantRevoked } from './events.js'
import type { VaultNeeds, VaultHandler } from './needs.js'
import { grantingRefusal } from './ownership.js'
import type {
  CredentialRevoked,
  GrantCreated,
  GrantingRefused,
  LeaseCreated,
  OneCredential,
  VaultInvalid,
} from './protocol.js'
import { changing, changingCredential, withCredential } from './read.js'
import { grantOf, leaseOf, snapshotOf } from './records.js'
import { wireBudget } from '../../domain/vault/budgets.js'
import { capabilitiesOf, expiryFault, grantFault, invalid } from './rules.js'
import { isForEgress } from '../../domain/entities/vault.js'
import { inTenant } from '../../platform/in-tenant.js'

export const listVaultGrants: VaultHandler<'listVaultGrants'> = (
  needs,
  { limit, after, ...named },
  context,
) => {
  return withCredential(needs, named, context, async (tx, { tenantId, id }) => {
    const { items, next } = page(
      await listVaultGrantRows(tx, tenantId, id, limit + 1, after),
      limit,
    )
    const now = needs.clock.now()
    return { tag: 'listed', grants: items.map((row) => grantOf(row, now)), next }
  })
}

export const createVaultGrant: VaultHandler<'createVaultGrant'> = (needs, message, context) => {
  const { granteeType, granteeId, budget } = message
  if (message.countsMoney) return Promise.resolve({ tag: 'money_not_counted' })
  return granting<GrantCreated>(needs, message, context, async (tx, row, eventContext) => {
    const { now } = eventContext
    const capabilities = capabilitiesOf(row.credentialType, message.capabilities)
    if ('tag' in capabilities) return capabilities
    const fault = grantFault(message, row, now)
    if (fault !== undefined) return fault
    if (!(await isGrantee(tx, row.tenantId, granteeType, granteeId, now))) {
      return invalid('/grantee_id', `The tenant has no such ${granteeType}.`)
    }
    const grant = await insertVaultGrant(tx, {
      id: needs.random.uuid(),
      tenantId: row.tenantId,
      credentialId: row.id,
      granteeType,
      granteeId,
      capabilities: [...capabilities],
      snapshot: snapshotOf(row),
      methods: message.methods && [...new Set(message.methods)],
      pathPrefixes: message.pathPrefixes && [...message.pathPrefixes],
      allowRange: message.allowRange,
      approval: message.approval,
      maxRequests: message.maxRequests,
      maxBytes: message.maxBytes,
      budget,
      expiresAt: message.expiresAt,
      createdAt: now,
    })
    appendAudit(tx, [
      auditEntry('vault.grant.created', { type: 'vault_grant', id: grant.id }, eventContext, {
        credential_id: row.id,
        grantee_type: granteeType,
        grantee_id: granteeId,
        capabilities,
        ...(budget === null ? {} : { budget: wireBudget(budget) }),
        ...(message.approval !== 'none' && { approval: message.approval }),
      }),
    ])
    return { tag: 'created', grant: grantOf(grant, now), replayed: false }
  })
}

export const revokeVaultGrant: VaultHandler<'revokeVaultGrant'> = async (
  needs,
  { caller, grantId },
  context,
) => {
  if (!isUuid(grantId)) return { tag: 'unknown_grant' }
  return ending(needs, caller, context, async (tx, eventContext) => {
    const ended = await revokeVaultGrantRow(
      tx,
      caller.principal.tenantId,
      grantId,
      eventContext.now,
    )
    if (ended === undefined) return { tag: 'unknown_grant' }
    if (ended.first) appendEvents(tx, [grantRevoked(ended.grant, eventContext)])
    return { tag: 'ended', grant: grantOf(ended.grant, eventContext.now) }
  })
}

export const listVaultLeases: VaultHandler<'listVaultLeases'> = (
  needs,
  { limit, after, ...named },
  context,
) => {
  return withCredential(needs, named, context, async (tx, { tenantId, id }) => {
    const { items, next } = page(
      await listVaultLeaseRows(tx, tenantId, id, limit + 1, after),
      limit,
    )
    const now = needs.clock.now()
    return { tag: 'listed', leases: items.map((row) => leaseOf(row, now)), next }
  })
}

export const createVaultLease: VaultHandler<'createVaultLease'> = (needs, message, context) => {
  const { recipientId, byteBudget, expiresAt } = message
  return granting<LeaseCreated>(needs, message, context, async (tx, row, eventContext) => {
    const { now } = eventContext
    // A byte budget applies to calls through the egress proxy only.
    if (!isForEgress(row.credentialType, row.authScheme)) {
      return invalid('', `An ${row.credentialType} credential cannot be leased.`)
    }
    const fault = expiryFault(expiresAt, now)
    if (fault !== undefined) return fault
    if (!(await isGrantee(tx, row.tenantId, 'agent', recipientId, now))) {
      return invalid('/recipient_id', 'The tenant has no such agent.')
    }
    const lease = await insertVaultLease(tx, {
      id: needs.random.uuid(),
      tenantId: row.tenantId,
      credentialId: row.id,
      recipientId,
      snapshot: snapshotOf(row),
      byteBudget,
      expiresAt,
      createdAt: now,
    })
    appendAudit(tx, [
      auditEntry('vault.lease.created', { type: 'vault_lease', id: lease.id }, eventContext, {
        credential_id: row.id,
        recipient_id: recipientId,
        byte_budget: byteBudget,
      }),
    ])
    return { tag: 'created', lease: leaseOf(lease, now), replayed: false }
  })
}

export const revokeVaultLease: VaultHandler<'revokeVaultLease'> = async (
  needs,
  { caller, leaseId },
  context,
) => {
  if (!isUuid(leaseId)) return { tag: 'unknown_lease' }
  return ending(needs, caller, context, async (tx, eventContext) => {
    const ended = await revokeVaultLeaseRow(
      tx,
      caller.principal.tenantId,
      leaseId,
      eventContext.now,
    )
    if (ended === undefined) return { tag: 'unknown_lease' }
    if (ended.first) {
      const resource = { type: 'vault_lease', id: leaseId }
      const data = { credential_id: ended.lease.credentialId }
      appendAudit(tx, [auditEntry('vault.lease.revoked', resource, eventContext, data)])
    }
    return { tag: 'ended', lease: leaseOf(ended.lease, eventContext.now) }
  })
}

/** Grants or leases a credential as its owner. A lock holds it against a revocation. */
function granting<Created extends { readonly tag: 'created' }>(
  needs: VaultNeeds,
  message: OneCredential & { readonly idempotency: IdempotencyClaim | null },
  context: MessageContext,
  create: (
    tx: Transaction,
    row: SecretCredentialRow,
    eventContext: EventContext,
  ) => Promise<Created | VaultInvalid>,
): Promise<Created | GrantingRefused> {
  const { caller, idempotency } = message
  return changingCredential(needs, message, context, async (tx, row) => {
    const refusal = await grantingRefusal(tx, row, caller.principal)
    if (refusal !== undefined) return refusal
    return idempotently(
      tx,
      idempotency,
      async (): Promise<Created | VaultInvalid | CredentialRevoked> =>
        row.status === 'revoked'
          ? { tag: 'revoked' }
          : create(tx, row, eventContext(needs, caller, context)),
      (outcome) => (outcome.tag === 'created' ? outcome : undefined),
    )
  })
}

/** Ends a grant or lease of the caller's tenant. */
function ending<Outcome>(
  needs: VaultNeeds,
  caller: Caller,
  context: MessageContext,
  end: (tx: Transaction, eventContext: EventContext) => Promise<Outcome>,
): Promise<Outcome> {
  const { tenantId } = caller.principal
  const ended = inTenant(needs.database, tenantId, context, (tx) =>
    end(tx, eventContext(needs, caller, context)),
  )
  return changing(needs, caller, ended)
}

/** A grantee is an agent that the tenant sees, or an active delegation. */
async function isGrantee(
  tx: Transaction,
  tenantId: string,
  type: 'agent' | 'delegation',
  id: string,
  now: Date,
): Promise<boolean> {
  if (!isUuid(id)) return false
  return type === 'agent'
    ? agentBelongs(tx, tenantId, id)
    : isDelegationActive(tx, tenantId, id, now)
}
