/** The connection of a credential ends with it. */
import { appendEvents } from '../../../../storage/platform/outbox.js'
import type { Transaction } from '../../../../storage/platform/sql.js'
import { revokeConnectionOf } from '../../../../storage/vault/connections.js'
import { keepRevocationOf } from '../../../../storage/vault/revocations.js'
import type { VaultCredentialRow } from '../../../../storage/vault/vault-credentials.js'
import type { EventContext } from '../../../domain/events.js'
import { connectionEvent } from './events.js'

/** Before the secret of the locked credential is deleted: its tokens wait to be revoked. */
export async function connectionEnds(
  tx: Transaction,
  { tenantId, id, authScheme }: VaultCredentialRow,
  by: EventContext,
): Promise<void> {
  if (authScheme !== 'oauth2_refresh') return
  await keepRevocationOf(tx, tenantId, id, by.random.uuid(), by.now)
  const ended = await revokeConnectionOf(tx, tenantId, id, by.now)
  if (ended !== undefined)
    appendEvents(tx, [connectionEvent('vault.connection.revoked', ended, by)])
}
