/** Refreshing the tokens of connected accounts, with the client that their connector has now. */
import { appendEvents } from '../../../../storage/platform/outbox.js'
import type { Sealer } from '../../../../storage/platform/sealing/sealer.js'
import { lapsedConnection, reopenConnection } from '../../../../storage/vault/connections.js'
import { findConnectorOfConnection } from '../../../../storage/vault/connectors.js'
import type { WriteNeeds } from '../../../platform/write-needs.js'
import type { RefreshFailure } from '../protocol.js'
import type { TokenSource } from '../token-source.js'
import { withClientOf } from './endpoints.js'
import { ownConnectionEvent } from './events.js'

const CODE_BYTES = 24

type RefreshNeeds = WriteNeeds & { readonly sealer: Sealer; readonly connectionTtlSecs: number }

/**
 * The source with the client of its connector, which may have changed since the account was connected. Without the refresh
 * token if the connector is at another origin now.
 */
export async function ofConnector(
  { database, sealer }: RefreshNeeds,
  tenantId: string,
  source: TokenSource,
): Promise<TokenSource> {
  const id = source.kind === 'oauth' ? source.document.connection_id : undefined
  if (source.kind !== 'oauth' || id === undefined) return source
  const stored = await database.tenant(tenantId, (tx) =>
    findConnectorOfConnection(tx, tenantId, id),
  )
  if (stored === undefined) return source
  const document = await withClientOf(sealer, stored, source.document)
  const { refresh_token: _token, ...unusable } = source.document
  return { ...source, document: document ?? unusable }
}

/** The connection of a document. Undefined: the secret is of no connected account. */
export const connectionOf = ({ kind, document }: TokenSource): string | undefined =>
  kind === 'oauth' ? document.connection_id : undefined

/** There is no refresh token to send: the person connects the account again. */
export const cannotRefresh = ({ kind, document }: TokenSource): boolean =>
  kind === 'oauth' && document.connection_id !== undefined && document.refresh_token === undefined

/** With the code of a request to connect the account again: the open one, or a new one. */
export function reopened(
  needs: RefreshNeeds,
  tenantId: string,
  credentialId: string,
): Promise<Extract<RefreshFailure, { tag: 'lapsed' }>> {
  const { database, clock, random, connectionTtlSecs } = needs
  return database.tenant(tenantId, async (tx) => {
    const row = await lapsedConnection(tx, tenantId, credentialId)
    if (row === undefined) return { tag: 'lapsed' }
    const now = clock.now()
    if (row.code !== null && row.codeExpiresAt !== null && row.codeExpiresAt > now)
      return { tag: 'lapsed', connectCode: row.code }
    const code = random.token(CODE_BYTES)
    await reopenConnection(tx, row, code, new Date(now.getTime() + connectionTtlSecs * 1000))
    appendEvents(tx, [ownConnectionEvent('vault.connection.requested', row, needs)])
    return { tag: 'lapsed', connectCode: code }
  })
}
