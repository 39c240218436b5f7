/** Lists and reads the API keys of a tenant. */
import type { Handler } from '../../../../runtime/kernel/actor.js'
import { type ApiKeyRow, listApiKeyRows, findApiKey } from '../../../../storage/oauth/api-keys.js'
import { isUuid } from '../../../domain/ids.js'
import { pageOf } from '../../../platform/paging.js'
import type { ApiKeyRecord, ApiKeysProtocol } from './protocol.js'
import type { ApiKeysSettings } from './settings.js'
import { inTenant } from '../../../platform/in-tenant.js'
import type { WriteNeeds } from '../../../platform/write-needs.js'

export const UNKNOWN = { tag: 'unknown' } as const

export type ApiKeysNeeds = WriteNeeds & {
  readonly settings: ApiKeysSettings
}

export type Handling<K extends keyof ApiKeysProtocol> = Handler<ApiKeysNeeds, ApiKeysProtocol, K>

export const listApiKeys: Handling<'listApiKeys'> = async (needs, message, context) => {
  const { tenantId } = message.caller.principal
  const { items, next } = await pageOf(needs, tenantId, message, context, listApiKeyRows)
  const now = needs.clock.now()
  return { tag: 'listed', keys: items.map((row) => recordOf(row, now)), next }
}

export const readApiKey: Handling<'readApiKey'> = async (
  { database, clock },
  { caller, keyId },
  context,
) => {
  const { tenantId } = caller.principal
  if (!isUuid(keyId)) return UNKNOWN
  const row = await inTenant(database, tenantId, context, (tx) => findApiKey(tx, tenantId, keyId))
  return row === undefined ? UNKNOWN : { tag: 'found', key: recordOf(row, clock.now()) }
}

export function recordOf(row: ApiKeyRow, now: Date): ApiKeyRecord {
  const { maker, tenantId: _tenant, ...record } = row
  return { ...record, createdBy: maker, status: row.expiresAt > now ? 'active' : 'expired' }
}
