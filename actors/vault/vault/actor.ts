/**
 * The vault: third-party credentials with their grants and leases. Secrets are sealed before they are
 * stored and unsealed where they are used; this actor keeps none in memory.
 */
import { defineActor } from '../../../runtime/kernel/actor.js'
import type { Transaction } from '../../../storage/platform/sql.js'
import {
  findVaultCredential,
  listGrantedCredentials,
  listVaultCredentials,
  lockVaultCredential,
  lockWithItsSource,
  type SecretCredentialRow,
} from '../../../storage/vault/vault-credentials.js'
import { listVaultGrants } from '../../../storage/vault/vault-grants.js'
import { listVaultLeases } from '../../../storage/vault/vault-leases.js'
import type { Caller } from '../../domain/audit.js'
import { granteeOf } from '../../domain/grantee.js'
import { isUuid } from '../../domain/ids.js'
import { isDirect } from '../../domain/principal.js'
import { page } from '../../platform/paging.js'
import { sshCertificates } from '../ssh-certificates/protocol.js'
import { createCredential, readSecret, rotateSecret } from './credentials.js'
import { revokeCredential, revokeGrant, revokeLease, updateCredential } from './changes.js'
import { createGrant, createLease } from './grants.js'
import { type UnknownCredential, type VaultProtocol, vault } from './protocol.js'
import { credentialOf, grantOf, leaseOf } from './records.js'
import type { VaultNeeds } from './needs.js'

const UNKNOWN: UnknownCredential = { tag: 'unknown_credential' }

export const vaultActor = defineActor<VaultProtocol, VaultNeeds>({
  address: vault,
  asks: { sshCertificates },
  mailbox: { capacity: 1024, inflightMax: 128 },
  supervision: { onFailure: 'resume' },
  create: (needs) => {
    const { database, clock, changed } = needs

    /** A change applies to the next call through the egress proxy of this process. */
    async function changing<T>({ principal }: Caller, change: Promise<T>): Promise<T> {
      const outcome = await change
      await changed(principal.tenantId)
      return outcome
    }

    /** Runs `work` on a credential of the tenant. */
    async function withCredential<T>(
      tenantId: string,
      credentialId: string,
      signal: AbortSignal,
      work: (tx: Transaction, row: SecretCredentialRow) => Promise<T>,
      find = findVaultCredential,
    ): Promise<T | UnknownCredential> {
      if (!isUuid(credentialId)) return UNKNOWN
      return database.tenant(
        tenantId,
        async (tx) => {
          const row = await find(tx, tenantId, credentialId)
          return row === undefined ? UNKNOWN : work(tx, row)
        },
        { signal },
      )
    }

    /** Changes a credential of the caller's tenant while `lock` holds its row. */
    const changingCredential = <T>(
      { caller, credentialId }: { readonly caller: Caller; readonly credentialId: string },
      { signal }: { readonly signal: AbortSignal },
      change: (tx: Transaction, row: SecretCredentialRow) => Promise<T>,
      lock = lockVaultCredential,
    ): Promise<T | UnknownCredential> =>
      changing(
        caller,
        withCredential(caller.principal.tenantId, credentialId, signal, change, lock),
      )

    return {
      async list({ principal, limit, after }, { signal }) {
        const { tenantId } = principal
        const managed = isDirect(principal) && principal.scopes.includes('vault:manage')
        const rows = await database.tenant(
          tenantId,
          (tx) =>
            managed
              ? listVaultCredentials(tx, tenantId, limit + 1, after)
              : listGrantedCredentials(
                  tx,
                  tenantId,
                  granteeOf(principal),
                  clock.now(),
                  limit + 1,
                  after,
                ),
          { signal },
        )
        const { items, next } = page(rows, limit)
        return { tag: 'listed', managed, credentials: items.map(credentialOf), next }
      },

      create: (message, context) => createCredential(needs, message, context),

      read: ({ tenantId, credentialId }, { signal }) =>
        withCredential(tenantId, credentialId, signal, async (_tx, row) => ({
          tag: 'found',
          credential: credentialOf(row),
        })),

      update: (message, context) =>
        changingCredential(
          message,
          context,
          (tx, row) => updateCredential(tx, row, message, needs, context),
          lockWithItsSource,
        ),

      rotate: (message, context) => changing(message.caller, rotateSecret(needs, message, context)),

      revoke: (message, context) =>
        changingCredential(message, context, (tx, row) =>
          revokeCredential(tx, row, message.caller, needs, context),
        ),

      secret: (message, context) => readSecret(needs, message, context),

      listGrants: ({ tenantId, credentialId, limit, after }, { signal }) =>
        withCredential(tenantId, credentialId, signal, async (tx) => {
          const rows = await listVaultGrants(tx, tenantId, credentialId, limit + 1, after)
          const { items, next } = page(rows, limit)
          const now = clock.now()
          return { tag: 'listed', grants: items.map((row) => grantOf(row, now)), next }
        }),

      createGrant: (message, context) =>
        changingCredential(message, context, (tx, row) =>
          createGrant(tx, row, message, needs, context),
        ),

      revokeGrant: ({ caller, grantId }, context) =>
        changing(caller, revokeGrant(needs, caller, grantId, context)),

      listLeases: ({ tenantId, credentialId, limit, after }, { signal }) =>
        withCredential(tenantId, credentialId, signal, async (tx) => {
          const rows = await listVaultLeases(tx, tenantId, credentialId, limit + 1, after)
          const { items, next } = page(rows, limit)
          const now = clock.now()
          return { tag: 'listed', leases: items.map((row) => leaseOf(row, now)), next }
        }),

      createLease: (message, context) =>
        changingCredential(message, context, (tx, row) =>
          createLease(tx, row, message, needs, context),
        ),

      revokeLease: ({ caller, leaseId }, context) =>
        changing(caller, revokeLease(needs, caller, leaseId, context)),
    }
  },
})
