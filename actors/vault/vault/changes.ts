/** Updates and revocations of credentials; each takes effect at its commit. */
import type { MessageContext } from '../../../runtime/kernel/actor.js'
import { appendAudit } from '../../../storage/operations/audit.js'
import { forgetManagedToken } from '../../../storage/vault/managed-tokens.js'
import { appendEvents } from '../../../storage/platform/outbox.js'
import type { Transaction } from '../../../storage/platform/sql.js'
import {
  updateVaultCredentialRow,
  revokeVaultCredentialRow,
  findVaultCredential,
  lockTokensOf,
  lockWithItsSource,
  narrowTokensOf,
  type SecretCredentialRow,
} from '../../../storage/vault/vault-credentials.js'
import { revokeGrantsOf } from '../../../storage/vault/vault-grants.js'
import { revokeLeasesOf } from '../../../storage/vault/vault-leases.js'
import type { Caller } from '../../domain/audit.js'
import { metadataSources } from '../../domain/commerce/networks.js'
import type { VaultNeeds, VaultHandler } from './needs.js'
import { connectionEnds } from './connections/ends.js'
import { revokeNow } from './connections/revocations.js'
import { sourcesFault } from './credentials.js'
import { credentialResource, grantRevoked, auditEntry } from './events.js'
import type { CredentialFound, UpdateCredential } from './protocol.js'
import { ownerRefusal } from './ownership.js'
import { changingCredential } from './read.js'
import { credentialOf } from './records.js'
import {
  hostsBeyond,
  invalid,
  metadataFault,
  normalizeHosts,
  widensHosts,
  widensSources,
} from './rules.js'

export const updateVaultCredential: VaultHandler<'updateVaultCredential'> = (
  needs,
  message,
  context,
) => {
  const { clock, random } = needs
  const { caller, label, allowedHosts, metadata, authScheme } = message
  return changingCredential(
    needs,
    message,
    context,
    async (tx, row) => {
      if (row.status === 'revoked') return { tag: 'revoked' }
      if (authScheme !== undefined && authScheme !== row.authScheme) {
        return invalid('/auth_scheme', 'The auth_scheme cannot change after the creation.')
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
      const changed = await updateVaultCredentialRow(tx, row.tenantId, row.id, changes, now)
      const changedNames = Object.entries({ label, allowed_hosts: hosts ?? undefined, metadata })
        .filter(([, value]) => value !== undefined)
        .map(([name]) => name)
      const eventContext = { caller, random, now, requestId: context.requestId }
      const resource = credentialResource(row.id)
      appendAudit(tx, [
        auditEntry('vault.credential.updated', resource, eventContext, { changed: changedNames }),
      ])
      if (hosts !== null && row.credentialType === 'oauth2') {
        const narrowed = await narrowTokensOf(tx, row.tenantId, row.id, hosts, now)
        appendAudit(
          tx,
          narrowed.map((id) =>
            auditEntry('vault.credential.updated', credentialResource(id), eventContext, {
              changed: ['allowed_hosts'],
              narrowed_with: row.id,
            }),
          ),
        )
      }
      return { tag: 'found', credential: credentialOf(changed) }
    },
    lockWithItsSource,
  )
}

/** True if a change allows hosts or source addresses that were not allowed before. */
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
 * Revokes a credential, which is final: deletes the sealed secret and revokes its grants, its leases and
 * the credentials that refer to it with `token_of`. The connection of a connected account ends with it.
 */
export const revokeVaultCredential: VaultHandler<'revokeVaultCredential'> = async (
  needs,
  message,
  context,
) => {
  const outcome = await changingCredential(needs, message, context, (tx, row) =>
    revokeIn(tx, needs, row, message.caller, context),
  )
  await revokeNow(needs, message.caller.principal.tenantId, context.log)
  return outcome
}

/** Revokes a locked credential, with what depends on it. */
export async function revokeIn(
  tx: Transaction,
  needs: Pick<VaultNeeds, 'clock' | 'random'>,
  row: SecretCredentialRow,
  caller: Caller,
  context: Pick<MessageContext, 'requestId'>,
): Promise<CredentialFound> {
  const { clock, random } = needs
  if (row.status === 'revoked') return { tag: 'found', credential: credentialOf(row) }
  const { tenantId, id } = row
  const now = clock.now()
  await connectionEnds(tx, row, { caller, random, now, requestId: context.requestId })
  const ended = await revokeVaultCredentialRow(tx, tenantId, id, now)
  await forgetManagedToken(tx, tenantId, id)
  for (const dependent of await lockTokensOf(tx, tenantId, id)) {
    await revokeIn(tx, needs, dependent, caller, context)
  }
  const grants = await revokeGrantsOf(tx, tenantId, id, now)
  const leases = await revokeLeasesOf(tx, tenantId, id, now)
  const eventContext = { caller, random, now, requestId: context.requestId }
  appendEvents(
    tx,
    grants.map((grant) => grantRevoked(grant, eventContext)),
  )
  appendAudit(tx, [
    ...leases.map((lease) =>
      auditEntry('vault.lease.revoked', { type: 'vault_lease', id: lease.id }, eventContext, {
        credential_id: id,
      }),
    ),
    auditEntry('vault.credential.revoked', credentialResource(id), eventContext, {
      grants: grants.length,
      leases: leases.length,
    }),
  ])
  return { tag: 'found', credential: credentialOf(ended) }
}
