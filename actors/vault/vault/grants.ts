/** Creating grants and leases. The caller has locked the credential against a revocation. */
import type { MessageContext } from '../../../runtime/kernel/actor.js'
import { appendAudit } from '../../../storage/operations/audit.js'
import { isDelegationActive } from '../../../storage/agents/delegations.js'
import { idempotently } from '../../../storage/platform/idempotency.js'
import type { Transaction } from '../../../storage/platform/sql.js'
import type { SecretCredentialRow } from '../../../storage/vault/vault-credentials.js'
import { agentBelongs, insertVaultGrant } from '../../../storage/vault/vault-grants.js'
import { insertVaultLease } from '../../../storage/vault/vault-leases.js'
import { isUuid } from '../../domain/ids.js'
import type { VaultNeeds } from './needs.js'
import { auditEntry } from './events.js'
import type {
  CreateGrant,
  CreateLease,
  CredentialRevoked,
  DirectTokenNeeded,
  GrantCreated,
  IdempotencyRefused,
  LeaseCreated,
  VaultDenied,
  VaultInvalid,
} from './protocol.js'
import { grantingRefusal } from './ownership.js'
import { grantOf, leaseOf, snapshotOf } from './records.js'
import { capabilitiesOf, expiryFault, grantFault, invalid } from './rules.js'

type EventNeeds = Pick<VaultNeeds, 'clock' | 'random'>

export async function createGrant(
  tx: Transaction,
  row: SecretCredentialRow,
  message: CreateGrant,
  { clock, random }: EventNeeds,
  { requestId }: MessageContext,
): Promise<
  | GrantCreated
  | VaultInvalid
  | CredentialRevoked
  | IdempotencyRefused
  | VaultDenied
  | DirectTokenNeeded
> {
  const { caller, granteeType, granteeId, idempotency } = message
  const refusal = await grantingRefusal(tx, row, caller.principal)
  if (refusal !== undefined) return refusal
  async function run(): Promise<GrantCreated | VaultInvalid | CredentialRevoked> {
    if (row.status === 'revoked') return { tag: 'revoked' }
    const now = clock.now()
    const capabilities = capabilitiesOf(row.credentialType, message.capabilities)
    if ('tag' in capabilities) return capabilities
    const fault = grantFault(message, row.credentialType, now)
    if (fault !== undefined) return fault
    if (!(await isGrantee(tx, row.tenantId, granteeType, granteeId, now))) {
      return invalid('/grantee_id', `The tenant has no such ${granteeType}.`)
    }
    const grant = await insertVaultGrant(tx, {
      id: random.uuid(),
      tenantId: row.tenantId,
      credentialId: row.id,
      granteeType,
      granteeId,
      capabilities: [...capabilities],
      snapshot: snapshotOf(row),
      methods: message.methods && [...new Set(message.methods)],
      pathPrefixes: message.pathPrefixes && [...message.pathPrefixes],
      allowRange: message.allowRange,
      maxRequests: message.maxRequests,
      maxBytes: message.maxBytes,
      expiresAt: message.expiresAt,
      createdAt: now,
    })
    appendAudit(tx, [
      auditEntry(
        'vault.grant.created',
        { type: 'vault_grant', id: grant.id },
        { caller, random, now, requestId },
        {
          credential_id: row.id,
          grantee_type: granteeType,
          grantee_id: granteeId,
          capabilities,
        },
      ),
    ])
    return { tag: 'created', grant: grantOf(grant, now), replayed: false }
  }
  return idempotently(tx, idempotency, run, (outcome) =>
    outcome.tag === 'created' ? outcome : undefined,
  )
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

export async function createLease(
  tx: Transaction,
  row: SecretCredentialRow,
  message: CreateLease,
  { clock, random }: EventNeeds,
  { requestId }: MessageContext,
): Promise<
  | LeaseCreated
  | VaultInvalid
  | CredentialRevoked
  | IdempotencyRefused
  | VaultDenied
  | DirectTokenNeeded
> {
  const { caller, recipientId, byteBudget, expiresAt, idempotency } = message
  const refusal = await grantingRefusal(tx, row, caller.principal)
  if (refusal !== undefined) return refusal
  async function run(): Promise<LeaseCreated | VaultInvalid | CredentialRevoked> {
    if (row.status === 'revoked') return { tag: 'revoked' }
    const now = clock.now()
    // A byte budget applies to calls through the egress proxy only.
    if (row.credentialType === 'ssh_ca' || row.credentialType === 'oauth2') {
      return invalid('', `An ${row.credentialType} credential cannot be leased.`)
    }
    const fault = expiryFault(expiresAt, now)
    if (fault !== undefined) return fault
    if (!(await isGrantee(tx, row.tenantId, 'agent', recipientId, now))) {
      return invalid('/recipient_id', 'The tenant has no such agent.')
    }
    const lease = await insertVaultLease(tx, {
      id: random.uuid(),
      tenantId: row.tenantId,
      credentialId: row.id,
      recipientId,
      snapshot: snapshotOf(row),
      byteBudget,
      expiresAt,
      createdAt: now,
    })
    appendAudit(tx, [
      auditEntry(
        'vault.lease.created',
        { type: 'vault_lease', id: lease.id },
        { caller, random, now, requestId },
        { credential_id: row.id, recipient_id: recipientId, byte_budget: byteBudget },
      ),
    ])
    return { tag: 'created', lease: leaseOf(lease, now), replayed: false }
  }
  return idempotently(tx, idempotency, run, (outcome) =>
    outcome.tag === 'created' ? outcome : undefined,
  )
}
