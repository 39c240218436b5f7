/** Ends connections. Every way ends with the credential, whose revocation ends the connection (changes.ts). */
import { appendEvents } from '../../../../storage/platform/outbox.js'
import type { Transaction } from '../../../../storage/platform/sql.js'
import { listOpenConnections, revokeConnectionRow } from '../../../../storage/vault/connections.js'
import { lockVaultCredential } from '../../../../storage/vault/vault-credentials.js'
import type { ConnectionRow } from '../../../domain/vault/connections.js'
import type { EventContext } from '../../../domain/events.js'
import type { WriteNeeds } from '../../../platform/write-needs.js'
import { revokeIn } from '../changes.js'
import { connectionEvent } from './events.js'

/** Connections that end in one transaction. */
export const END_BATCH = 50

/** Ends a connection with its credential and grants. Its tokens wait to be revoked (revocations.ts). */
export async function endConnection(
  tx: Transaction,
  needs: WriteNeeds,
  row: ConnectionRow,
  by: EventContext,
): Promise<void> {
  const { tenantId, id, credentialId } = row
  if (credentialId !== null && (await revokeCredential(tx, needs, tenantId, credentialId, by)))
    return
  const ended = await revokeConnectionRow(tx, tenantId, id, by.now)
  if (ended === undefined) return
  appendEvents(tx, [connectionEvent('vault.connection.revoked', ended, by)])
  // The account was connected after the row was read.
  if (ended.credentialId !== null && ended.credentialId !== credentialId)
    await revokeCredential(tx, needs, tenantId, ended.credentialId, by)
}

/** False: it was revoked before. */
async function revokeCredential(
  tx: Transaction,
  needs: WriteNeeds,
  tenantId: string,
  id: string,
  by: EventContext,
): Promise<boolean> {
  const credential = await lockVaultCredential(tx, tenantId, id)
  if (credential === undefined || credential.status === 'revoked') return false
  await revokeIn(tx, needs, credential, by.caller, by)
  return true
}

/** Ends up to `END_BATCH` connections of a connector, and says how many. */
export const endConnectionsOf = (
  needs: WriteNeeds,
  tenantId: string,
  connectorId: string,
  by: EventContext,
): Promise<number> =>
  needs.database.tenant(tenantId, async (tx) => {
    const rows = await listOpenConnections(tx, tenantId, connectorId, END_BATCH)
    for (const row of rows) await endConnection(tx, needs, row, by)
    return rows.length
  })
