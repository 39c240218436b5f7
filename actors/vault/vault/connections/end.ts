/** Ends connections: the credential and its grants in the transaction, the access at the provider after it. */
import type { MessageContext } from '../../../../runtime/kernel/actor.js'
import { appendEvents } from '../../../../storage/platform/outbox.js'
import type { Transaction } from '../../../../storage/platform/sql.js'
import type { Sealer } from '../../../../storage/platform/sealing/sealer.js'
import { revokeConnectionRow } from '../../../../storage/vault/connections.js'
import { findConnector, type SecretConnector } from '../../../../storage/vault/connectors.js'
import { findManagedToken, managedTokenContext } from '../../../../storage/vault/managed-tokens.js'
import {
  credentialSecretContext,
  lockVaultCredential,
} from '../../../../storage/vault/vault-credentials.js'
import type { EventContext } from '../../../domain/events.js'
import type { OAuthDocument } from '../../../domain/vault/secret-documents/oauth.js'
import type { WriteNeeds } from '../../../platform/write-needs.js'
import { revokeIn } from '../changes.js'
import { connectionEvent } from './events.js'
import type { EndNeeds } from './needs.js'
import type { ConnectionRow } from '../../../domain/vault/connections.js'
import { withClientOf } from './endpoints.js'
import { askRevocation } from './provider.js'

/** What a provider needs to revoke the access. */
export type Revocable = {
  readonly tenantId: string
  readonly credentialId: string
  readonly connector: SecretConnector
  readonly secret: Uint8Array
  readonly token: Uint8Array | null
}

/** Undefined: nothing is to be revoked at the provider. */
export async function endConnection(
  tx: Transaction,
  needs: WriteNeeds,
  { tenantId, id, connectorId, credentialId }: ConnectionRow,
  by: EventContext,
): Promise<Revocable | undefined> {
  const ended = await revokeConnectionRow(tx, tenantId, id, by.now)
  if (ended === undefined) return undefined
  appendEvents(tx, [connectionEvent('vault.connection.revoked', ended, by)])
  if (credentialId === null) return undefined
  const credential = await lockVaultCredential(tx, tenantId, credentialId)
  if (credential === undefined) return undefined
  const connector = await findConnector(tx, tenantId, connectorId)
  const token = (await findManagedToken(tx, tenantId, credentialId))?.token ?? null
  await revokeIn(tx, needs, credential, by.caller, by)
  const { secret } = credential
  if (connector === undefined || secret === null) return undefined
  return { tenantId, credentialId, connector, secret, token }
}

/**
 * Revokes the refresh token, or the access token where the provider gave no other: at the address that the provider had when
 * the account was connected, or that it has now at the same origin.
 */
export async function revokeAtProvider(
  { sealer, fetch }: EndNeeds,
  { tenantId, credentialId, connector, secret, token }: Revocable,
  { log }: Pick<MessageContext, 'log'>,
): Promise<void> {
  try {
    const bytes = await sealer.open(tenantId, credentialSecretContext(credentialId), secret)
    const kept = readJson<OAuthDocument>(bytes)
    const document = (await withClientOf(sealer, connector, kept)) ?? kept
    if (document.revocation_url === undefined) return
    const { refresh_token: refreshToken } = document
    const isRefresh = refreshToken !== undefined
    const hint = isRefresh ? 'refresh_token' : 'access_token'
    const sent = refreshToken ?? (await accessTokenOf(sealer, tenantId, credentialId, token))
    if (sent === null || (await askRevocation(fetch, document, sent, hint))) return
    log.warn({ connector: connector.name }, 'vault: a provider did not confirm a revocation')
  } catch (error) {
    log.warn({ err: error }, 'vault: could not revoke a token at a provider')
  }
}

async function accessTokenOf(
  sealer: Sealer,
  tenantId: string,
  credentialId: string,
  sealed: Uint8Array | null,
): Promise<string | null> {
  if (sealed === null) return null
  const bytes = await sealer.open(tenantId, managedTokenContext(credentialId), sealed)
  return readJson<{ access_token: string }>(bytes).access_token
}

function readJson<T>(bytes: Uint8Array): T {
  const text = Buffer.from(bytes).toString('utf8')
  bytes.fill(0)
  return JSON.parse(text) as T
}
