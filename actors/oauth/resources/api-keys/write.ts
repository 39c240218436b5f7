/** Creates, rotates and deletes API keys. A key that a key made has no more than its maker. */
import type { MessageContext } from '../../../../runtime/kernel/actor.js'
import {
  type ApiKeyRow,
  findApiKey,
  insertApiKey,
  deleteApiKeyRow,
  rotateApiKeySecret,
} from '../../../../storage/oauth/api-keys.js'
import { createOnce } from '../../../platform/creation.js'
import { appendEvents } from '../../../../storage/platform/outbox.js'
import type { Transaction } from '../../../../storage/platform/sql.js'
import type { Caller } from '../../../domain/audit.js'
import { isNetwork, networkContains } from '../../../domain/commerce/networks.js'
import { eventBy, type EventContext, eventContext, type EventType } from '../../../domain/events.js'
import { isUuid } from '../../../domain/ids.js'
import type {
  ApiKeyCreated,
  ApiKeyRefused,
  ApiKeysFull,
  CreateApiKey,
  ScopesBeyondCaller,
} from './protocol.js'
import { type ApiKeysNeeds, type Handling, recordOf, UNKNOWN } from './read.js'
import { newApiKey } from '../../../domain/oauth/api-key.js'
import { sha256 } from '../../../domain/secret-hashes.js'
import { inTenant } from '../../../platform/in-tenant.js'

const NOT_A_TENANT_TOKEN = { tag: 'not_a_tenant_token' } as const

export const createApiKey: Handling<'createApiKey'> = (needs, message, context) =>
  createOnce(
    needs,
    message,
    context,
    (tx) => insert(tx, needs, message, context),
    (outcome) => (outcome.tag === 'created' ? { ...outcome, secret: null } : undefined),
  )

export const rotateApiKey: Handling<'rotateApiKey'> = async (needs, message, context) => {
  const { database, clock, random, settings } = needs
  const { caller, keyId, overlapSecs, expiresInSecs } = message
  const { tenantId } = caller.principal
  if (!isUuid(keyId)) return UNKNOWN
  return inTenant(database, tenantId, context, async (tx) => {
    const parent = await keyOfCaller(tx, caller)
    const before = await findApiKey(tx, tenantId, keyId)
    if (before === undefined) return UNKNOWN
    if (parent === undefined) return NOT_A_TENANT_TOKEN
    // The new secret is shown to the caller, who must not gain anything by it.
    const isOwn = parent === null || keyId === parent.id || before.parentId === parent.id
    if (!isOwn) return { tag: 'not_own_key' as const }
    const fault = scopeFault(caller, before.scopes)
    if (fault !== undefined) return fault
    const most = parent === null ? settings.max_lifetime_secs : 0
    if ((expiresInSecs ?? 0) > most) return { tag: 'lifetime_too_long' as const, mostSecs: most }
    const now = clock.now()
    const secret = newApiKey(random)
    const row = await rotateApiKeySecret(tx, tenantId, keyId, {
      tokenSha256: sha256(secret),
      previousExpiresAt: new Date(now.getTime() + overlapSecs * 1000),
      expiresAt: new Date(now.getTime() + (expiresInSecs ?? 0) * 1000),
      now,
    })
    if (row === undefined) return UNKNOWN
    tx.forget([keyId])
    append(tx, 'api_key.rotated', row, eventContext(needs, caller, context))
    return { tag: 'rotated' as const, key: recordOf(row, now), secret }
  })
}

export const deleteApiKey: Handling<'deleteApiKey'> = async (needs, { caller, keyId }, context) => {
  const { tenantId } = caller.principal
  if (!isUuid(keyId)) return UNKNOWN
  return inTenant(needs.database, tenantId, context, async (tx) => {
    const row = await deleteApiKeyRow(tx, tenantId, keyId)
    if (row === undefined) return UNKNOWN
    // The keys that it made are announced by the trigger of 0086_api_keys.
    tx.forget([keyId])
    append(tx, 'api_key.revoked', row, eventContext(needs, caller, context))
    return { tag: 'removed' }
  })
}

async function insert(
  tx: Transaction,
  needs: ApiKeysNeeds,
  message: CreateApiKey,
  context: MessageContext,
): Promise<ApiKeyCreated | ApiKeyRefused | ApiKeysFull> {
  const { clock, random, settings } = needs
  const { caller, name, scopes, expiresInSecs } = message
  const { tenantId, subject, subjectType } = caller.principal
  const parent = await keyOfCaller(tx, caller)
  if (parent === undefined) return NOT_A_TENANT_TOKEN
  const fault = scopeFault(caller, scopes) ?? addressFault(message, parent)
  if (fault !== undefined) return fault
  const most = mostSecs(needs, parent)
  if ((expiresInSecs ?? 0) > most) return { tag: 'lifetime_too_long', mostSecs: most }
  const lifetimeSecs = expiresInSecs ?? Math.min(settings.default_lifetime_secs, most)
  const now = clock.now()
  const secret = newApiKey(random)
  const asked = [...new Set(message.allowedAddresses)]
  const row = {
    id: random.uuid(),
    tenantId,
    name,
    scopes: [...new Set(scopes)],
    // A key that a limited key made is limited in the same way.
    allowedAddresses: asked.length === 0 ? (parent?.allowedAddresses ?? []) : asked,
    maker: parent?.maker ?? { type: subjectType, id: subject },
    parentId: parent?.id ?? null,
    createdAt: now,
    expiresAt: new Date(now.getTime() + lifetimeSecs * 1000),
  }
  const tokenSha256 = sha256(secret)
  if (!(await insertApiKey(tx, { ...row, tokenSha256 }, settings.max_per_tenant)))
    return { tag: 'full', most: settings.max_per_tenant }
  const key = { ...row, rotatedAt: null, previousExpiresAt: null, lastUsedAt: null }
  append(tx, 'api_key.created', key, eventContext(needs, caller, context))
  return { tag: 'created', key: recordOf(key, now), secret, replayed: false }
}

/** The key that the caller authenticated with, or null. Undefined if it was deleted just now. */
async function keyOfCaller(
  tx: Transaction,
  { principal: { tenantId, subject, apiKey } }: Caller,
): Promise<ApiKeyRow | null | undefined> {
  return apiKey === true ? findApiKey(tx, tenantId, subject) : null
}

function scopeFault(
  { principal }: Caller,
  scopes: readonly string[],
): ScopesBeyondCaller | undefined {
  const beyond = scopes.filter((scope) => !principal.scopes.includes(scope))
  return beyond.length === 0 ? undefined : { tag: 'scopes_beyond_caller', scopes: beyond }
}

function addressFault(
  { allowedAddresses }: Pick<CreateApiKey, 'allowedAddresses'>,
  parent: ApiKeyRow | null,
): ApiKeyRefused | undefined {
  for (const [index, address] of allowedAddresses.entries()) {
    if (!isNetwork(address)) {
      const detail = 'must be a network such as 192.0.2.0/24, with zero host bits'
      return { tag: 'address_refused', index, detail }
    }
    const outer = parent?.allowedAddresses ?? []
    if (outer.length > 0 && !outer.some((network) => networkContains(network, address)))
      return { tag: 'address_refused', index, detail: 'must lie within the networks of your key' }
  }
  return undefined
}

/** The most seconds that a key of this caller may live. */
function mostSecs({ clock, settings }: ApiKeysNeeds, parent: ApiKeyRow | null): number {
  if (parent === null) return settings.max_lifetime_secs
  const left = Math.floor((parent.expiresAt.getTime() - clock.now().getTime()) / 1000)
  return Math.min(settings.max_lifetime_secs, left)
}

function append(
  tx: Transaction,
  type: Extract<EventType, `api_key.${string}`>,
  key: ApiKeyRow,
  by: EventContext,
): void {
  const { tenantId, name, scopes, expiresAt } = key
  const resource = { type: 'api_key', id: key.id }
  const fields = { name, scopes, expires_at: expiresAt.toISOString() }
  appendEvents(tx, [eventBy(type, resource, by, fields, tenantId)])
}
