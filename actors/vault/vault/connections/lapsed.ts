/** Connections whose provider has ended the access: the person connects the account again. */
import { appendEvents } from '../../../../storage/platform/outbox.js'
import type { Transaction } from '../../../../storage/platform/sql.js'
import { lapseConnection } from '../../../../storage/vault/connections.js'
import { lapseVaultCredentialRow } from '../../../../storage/vault/vault-credentials.js'
import type { WriteNeeds } from '../../../platform/write-needs.js'
import { ownConnectionEvent } from './events.js'

/** The connection of a credential that has lapsed, if it is of one. */
export async function connectionLapsed(
  tx: Transaction,
  needs: Pick<WriteNeeds, 'clock' | 'random'>,
  tenantId: string,
  credentialId: string,
): Promise<void> {
  const row = await lapseConnection(tx, tenantId, credentialId, needs.clock.now())
  if (row !== undefined)
    appendEvents(tx, [ownConnectionEvent('vault.connection.needs_reauthorization', row, needs)])
}

/** The same with its credential. */
export async function lapseConnected(
  tx: Transaction,
  needs: Pick<WriteNeeds, 'clock' | 'random'>,
  tenantId: string,
  credentialId: string,
): Promise<void> {
  await lapseVaultCredentialRow(tx, tenantId, credentialId, needs.clock.now())
  await connectionLapsed(tx, needs, tenantId, credentialId)
}
