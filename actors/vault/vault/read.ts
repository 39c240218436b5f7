/** Reading credentials without their secrets, and the steps that the handlers of one credential share. */
import type { MessageContext } from '../../../runtime/kernel/actor.js'
import type { Transaction } from '../../../storage/platform/sql.js'
import {
  findVaultCredential,
  lockVaultCredential,
  type SecretCredentialRow,
  listGrantedCredentials,
  listVaultCredentialRows,
} from '../../../storage/vault/vault-credentials.js'
import type { Caller } from '../../domain/audit.js'
import { granteeOf } from '../../domain/grantee.js'
import { isUuid } from '../../domain/ids.js'
import { isDirect } from '../../domain/principal.js'
import { page } from '../../platform/paging.js'
import type { VaultNeeds, VaultHandler } from './needs.js'
import type { OneCredential, UnknownCredential } from './protocol.js'
import { credentialOf } from './records.js'
import { inTenant } from '../../platform/in-tenant.js'

const UNKNOWN: UnknownCredential = { tag: 'unknown_credential' }

export const listVaultCredentials: VaultHandler<'listVaultCredentials'> = async (
  { database, clock },
  { principal, limit, after },
  context,
) => {
  const { tenantId } = principal
  const managed = isDirect(principal) && principal.scopes.includes('vault:manage')
  const grantee = granteeOf(principal)
  const rows = await inTenant(database, tenantId, context, (tx) =>
    managed
      ? listVaultCredentialRows(tx, tenantId, limit + 1, after)
      : listGrantedCredentials(tx, tenantId, grantee, clock.now(), { limit: limit + 1, after }),
  )
  const { items, next } = page(rows, limit)
  return { tag: 'listed', managed, credentials: items.map(credentialOf), next }
}

export const getVaultCredential: VaultHandler<'getVaultCredential'> = (needs, message, context) => {
  return withCredential(needs, message, context, async (_tx, row) => ({
    tag: 'found',
    credential: credentialOf(row),
  }))
}

/** Runs `work` on a credential of the caller's tenant. */
export async function withCredential<T>(
  { database }: VaultNeeds,
  { caller, credentialId }: OneCredential,
  context: MessageContext,
  work: (tx: Transaction, row: SecretCredentialRow) => Promise<T>,
  find = findVaultCredential,
): Promise<T | UnknownCredential> {
  if (!isUuid(credentialId)) return UNKNOWN
  const { tenantId } = caller.principal
  return inTenant(database, tenantId, context, async (tx) => {
    const row = await find(tx, tenantId, credentialId)
    return row === undefined ? UNKNOWN : work(tx, row)
  })
}

/** Changes a credential of the caller's tenant while `lock` holds its row. */
export function changingCredential<T>(
  needs: VaultNeeds,
  named: OneCredential,
  context: MessageContext,
  change: (tx: Transaction, row: SecretCredentialRow) => Promise<T>,
  lock = lockVaultCredential,
): Promise<T | UnknownCredential> {
  return changing(needs, named.caller, withCredential(needs, named, context, change, lock))
}

/** A change applies to the next call through the egress proxy of this process. */
export async function changing<T>(
  { changed }: VaultNeeds,
  { principal }: Caller,
  change: Promise<T>,
): Promise<T> {
  const outcome = await change
  await changed(principal.tenantId)
  return outcome
}
