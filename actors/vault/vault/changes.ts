/** Changes to what is in the vault, and its ends: each takes effect with the commit. */
import type { MessageContext } from '../../../runtime/kernel/actor.js'
import { appendAudit } from '../../../storage/operations/audit.js'
import { forgetManagedToken } from '../../../storage/vault/managed-tokens.js'
import { appendEvents } from '../../../storage/platform/outbox.js'
import type { Transaction } from '../../../storage/platform/sql.js'
import {
  findVaultCredential,
  lockTokensOf,
  narrowTokensOf,
  revokeVaultCredential,
  type SecretCredentialRow,
  updateVaultCredential,
} from '../../../storage/vault/vault-credentials.js'
import { revokeGrantsOf, revokeVaultGrant } from '../../../storage/vault/vault-grants.js'
import { revokeLeasesOf, revokeVaultLease } from '../../../storage/vault/vault-leases.js'
import type { Caller } from '../../domain/audit.js'
import { isUuid } from '../../domain/ids.js'
import { metadataSources } from '../../domain/commerce/networks.js'
import type { VaultNeeds } from './needs.js'
import { sourcesFault } from './credentials.js'
import { credentialResource, grantRevoked, noted } from './events.js'
import type {
  CredentialFound,
  CredentialRevoked,
  GrantRevoked,
  LeaseRevoked,
  OwnerRefused,
  UnknownGrant,
  UnknownLease,
  UpdateCredential,
  VaultInvalid,
} from './protocol.js'
import { ownerRefusal } from './ownership.js'
import { credentialOf, grantOf, leaseOf } from './records.js'
import {
  hostsBeyond,
  invalid,
  metadataFault,
  normalizeHosts,
  widensHosts,
  widensSources,
} from './rules.js'

type Means = Pick<VaultNeeds, 'clock' | 'random'>

export async function updateCredential(
  tx: Transaction,
  row: SecretCredentialRow,
  { caller, label, allowedHosts, metadata, authScheme }: UpdateCredential,
  { clock, random }: Means,
  { requestId }: MessageContext,
): Promise<CredentialFound | VaultInvalid | CredentialRevoked | OwnerRefused> {
  if (row.status === 'revoked') return { tag: 'revoked' }
  if (authScheme !== undefined && authScheme !== row.authScheme) {
    return invalid('/auth_scheme', 'The auth_scheme of a credential is fixed at its creation.')
  }
  const hosts = allowedHosts === undefined ? null : normalizeHosts(allowedHosts)
  if (hosts !== null && 'tag' in hosts) return hosts
  if (metadata !== undefined) {
    const fault = metadataFault(metadata) ?? sourcesFault(row.credentialType, metadata)
    if (fault !== undefined) return fault
  }
  if (widens(row, hosts, metadata)) {
    const refusal = await ownerRefusal(tx, row, caller.principal, clock.nowSecs())
    if (refusal !== undefined) return refusal
  }
  if (hosts !== null && row.tokenOf !== null) {
    const source = await findVaultCredential(tx, row.tenantId, row.tokenOf)
    const fault = hostsBeyond(hosts, source!.allowedHosts)
    if (fault !== undefined) return fault
  }
  const now = clock.now()
  const changes = { label: label ?? null, allowedHosts: hosts, metadata: metadata ?? null }
  const changed = await updateVaultCredential(tx, row.tenantId, row.id, changes, now)
  const named = Object.entries({ label, allowed_hosts: hosts ?? undefined, metadata })
    .filter(([, value]) => value !== undefined)
    .map(([name]) => name)
  const eventContext = { caller, random, now, requestId }
  const resource = credentialResource(row.id)
  appendAudit(tx, [noted('vault.credential.updated', resource, eventContext, { changed: named })])
  if (hosts !== null && row.credentialType === 'oauth2') {
    const cut = await narrowTokensOf(tx, row.tenantId, row.id, hosts, now)
    appendAudit(
      tx,
      cut.map((id) =>
        noted('vault.credential.updated', credentialResource(id), eventContext, {
          changed: ['allowed_hosts'],
          narrowed_with: row.id,
        }),
      ),
    )
  }
  return { tag: 'found', credential: credentialOf(changed) }
}

/** Whether a change lets the credential be used where, or from where, it was not used before. */
function widens(
  { credentialType, allowedHosts, metadata: before }: SecretCredentialRow,
  hosts: readonly string[] | null,
  metadata: UpdateCredential['metadata'],
): boolean {
  if (hosts !== null && widensHosts(credentialType, allowedHosts, hosts)) return true
  if (metadata === undefined || credentialType !== 'ssh_ca') return false
  return widensSources(metadataSources(before) ?? [], metadataSources(metadata) ?? [])
}

/**
 * Final: the sealed secret is removed, and every grant and lease ends with it, and every credential
 * that carries its tokens.
 */
export async function endCredential(
  tx: Transaction,
  row: SecretCredentialRow,
  caller: Caller,
  { clock, random }: Means,
  context: MessageContext,
): Promise<CredentialFound> {
  const { requestId } = context
  if (row.status === 'revoked') return { tag: 'found', credential: credentialOf(row) }
  const { tenantId, id } = row
  const now = clock.now()
  const revoked = await revokeVaultCredential(tx, tenantId, id, now)
  await forgetManagedToken(tx, tenantId, id)
  for (const carrier of await lockTokensOf(tx, tenantId, id)) {
    await endCredential(tx, carrier, caller, { clock, random }, context)
  }
  const grants = await revokeGrantsOf(tx, tenantId, id, now)
  const leases = await revokeLeasesOf(tx, tenantId, id, now)
  const eventContext = { caller, random, now, requestId }
  appendEvents(
    tx,
    grants.map((grant) => grantRevoked(grant, eventContext)),
  )
  appendAudit(tx, [
    ...leases.map((lease) =>
      noted('vault.lease.revoked', { type: 'vault_lease', id: lease.id }, eventContext, {
        credential_id: id,
      }),
    ),
    noted('vault.credential.revoked', credentialResource(id), eventContext, {
      grants: grants.length,
      leases: leases.length,
    }),
  ])
  return { tag: 'found', credential: credentialOf(revoked) }
}

export async function endGrant(
  { database, clock, random }: VaultNeeds,
  caller: Caller,
  grantId: string,
  { signal, requestId }: MessageContext,
): Promise<GrantRevoked | UnknownGrant> {
  const { tenantId } = caller.principal
  if (!isUuid(grantId)) return { tag: 'unknown_grant' }
  return database.tenant(
    tenantId,
    async (tx) => {
      const now = clock.now()
      const ended = await revokeVaultGrant(tx, tenantId, grantId, now)
      if (ended === undefined) return { tag: 'unknown_grant' }
      const eventContext = { caller, random, now, requestId }
      if (ended.first) appendEvents(tx, [grantRevoked(ended.grant, eventContext)])
      return { tag: 'ended', grant: grantOf(ended.grant, now) }
    },
    { signal },
  )
}

export async function endLease(
  { database, clock, random }: VaultNeeds,
  caller: Caller,
  leaseId: string,
  { signal, requestId }: MessageContext,
): Promise<LeaseRevoked | UnknownLease> {
  const { tenantId } = caller.principal
  if (!isUuid(leaseId)) return { tag: 'unknown_lease' }
  return database.tenant(
    tenantId,
    async (tx) => {
      const now = clock.now()
      const ended = await revokeVaultLease(tx, tenantId, leaseId, now)
      if (ended === undefined) return { tag: 'unknown_lease' }
      if (ended.first) {
        const eventContext = { caller, random, now, requestId }
        const resource = { type: 'vault_lease', id: leaseId }
        const data = { credential_id: ended.lease.credentialId }
        appendAudit(tx, [noted('vault.lease.revoked', resource, eventContext, data)])
      }
      return { tag: 'ended', lease: leaseOf(ended.lease, now) }
    },
    { signal },
  )
}
