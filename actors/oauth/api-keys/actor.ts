/** Manages the API keys of a tenant. The tokens actor verifies them (tokens/verify/api-key-verifier.ts). */
import { type ActorRef, defineActor, type MessageContext } from '../../../runtime/kernel/actor.js'
import type { Clock } from '../../../runtime/kernel/clock.js'
import type { Random } from '../../../runtime/kernel/random.js'
import {
  type ApiKeyMaker,
  type ApiKeyRow,
  deleteApiKey,
  findApiKey,
  insertApiKey,
  listApiKeys,
  rotateApiKey,
} from '../../../storage/oauth/api-keys.js'
import { idempotently } from '../../../storage/platform/idempotency.js'
import { appendEvents } from '../../../storage/platform/outbox.js'
import type { Database, Transaction } from '../../../storage/platform/sql.js'
import { actorOf, type Caller, doneBy } from '../../domain/audit.js'
import { isNetwork, networkContains } from '../../domain/commerce/networks.js'
import { type EventType, eventData } from '../../domain/events.js'
import { isUuid } from '../../domain/ids.js'
import { page } from '../../platform/paging.js'
import { tokens, type TokensProtocol } from '../tokens/protocol.js'
import {
  type ApiKeyRecord,
  type ApiKeyRefused,
  type ApiKeysProtocol,
  apiKeys,
  type CreateApiKey,
  type ScopesBeyondCaller,
} from './protocol.js'
import { apiKeyHash, newApiKey } from './secret.js'
import type { ApiKeysSettings } from './settings.js'

const UNKNOWN = { tag: 'unknown' } as const
const NOT_A_TENANT_TOKEN = { tag: 'not_a_tenant_token' } as const

export type ApiKeysNeeds = {
  readonly database: Database
  readonly clock: Clock
  readonly random: Random
  readonly tokens: ActorRef<TokensProtocol>
  readonly settings: ApiKeysSettings
}

export const apiKeysActor = defineActor<ApiKeysProtocol, ApiKeysNeeds>({
  address: apiKeys,
  asks: { tokens },
  mailbox: { capacity: 1024, inflightMax: 64 },
  // The actor has no state that a restart would repair.
  supervision: { onFailure: 'resume' },
  create: ({ database, clock, random, tokens, settings }) => {
    function append(
      tx: Transaction,
      caller: Caller,
      type: EventType,
      key: ApiKeyRow,
      { requestId }: MessageContext,
    ): void {
      const resource = { type: 'api_key', id: key.id }
      const data = eventData(
        { actor: actorOf(caller), resource, requestId },
        { name: key.name, scopes: key.scopes, expires_at: key.expiresAt.toISOString() },
      )
      const { tenantId } = key
      const event = { id: random.uuid(), tenantId, type, occurredAt: clock.now(), data }
      appendEvents(tx, [{ ...event, audit: doneBy(caller) }])
    }

    /** The key that the caller authenticated with, or null. Undefined if it was deleted just now. */
    async function keyOfCaller(
      tx: Transaction,
      { principal: { tenantId, subject, apiKey } }: Caller,
    ): Promise<ApiKeyRow | null | undefined> {
      return apiKey === true ? findApiKey(tx, tenantId, subject) : null
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
        if (outer.length > 0 && !outer.some((network) => networkContains(network, address))) {
          return { tag: 'address_refused', index, detail: 'must lie within those of your own key' }
        }
      }
      return undefined
    }

    /** The most seconds that a key of this caller may live. */
    function mostSecs(parent: ApiKeyRow | null): number {
      if (parent === null) return settings.max_lifetime_secs
      const left = Math.floor((parent.expiresAt.getTime() - clock.now().getTime()) / 1000)
      return Math.min(settings.max_lifetime_secs, left)
    }

    const scopeFault = (
      { principal }: Caller,
      scopes: readonly string[],
    ): ScopesBeyondCaller | undefined => {
      const beyond = scopes.filter((scope) => !principal.scopes.includes(scope))
      return beyond.length === 0 ? undefined : { tag: 'scopes_beyond_caller', scopes: beyond }
    }

    async function insert(tx: Transaction, message: CreateApiKey, context: MessageContext) {
      const { caller, name, scopes, expiresInSecs } = message
      const { tenantId, subject, subjectType } = caller.principal
      const parent = await keyOfCaller(tx, caller)
      if (parent === undefined) return NOT_A_TENANT_TOKEN
      const fault = scopeFault(caller, scopes) ?? addressFault(message, parent)
      if (fault !== undefined) return fault
      const most = mostSecs(parent)
      if ((expiresInSecs ?? 0) > most) return { tag: 'lifetime_too_long' as const, mostSecs: most }
      const lifetimeSecs = expiresInSecs ?? Math.min(settings.default_lifetime_secs, most)
      const now = clock.now()
      const secret = newApiKey(random)
      const maker: ApiKeyMaker = parent?.maker ?? { type: subjectType, id: subject }
      const asked = [...new Set(message.allowedAddresses)]
      const row = {
        id: random.uuid(),
        tenantId,
        name,
        scopes: [...new Set(scopes)],
        // A key that a limited key made is limited in the same way.
        allowedAddresses: asked.length === 0 ? (parent?.allowedAddresses ?? []) : asked,
        maker,
        parentId: parent?.id ?? null,
        createdAt: now,
        expiresAt: new Date(now.getTime() + lifetimeSecs * 1000),
      }
      const tokenSha256 = apiKeyHash(secret)
      if (!(await insertApiKey(tx, { ...row, tokenSha256 }, settings.max_per_tenant)))
        return { tag: 'full' as const, most: settings.max_per_tenant }
      const key = { ...row, rotatedAt: null, previousExpiresAt: null, lastUsedAt: null }
      append(tx, caller, 'api_key.created', key, context)
      return { tag: 'created' as const, key: recordOf(key, now), secret, replayed: false }
    }

    return {
      async listApiKeys({ caller, limit, after }, { signal }) {
        const { tenantId } = caller.principal
        const rows = await database.tenant(
          tenantId,
          (tx) => listApiKeys(tx, tenantId, limit + 1, after),
          { signal },
        )
        const { items, next } = page(rows, limit)
        const now = clock.now()
        return { tag: 'listed', keys: items.map((row) => recordOf(row, now)), next }
      },

      async readApiKey({ caller, keyId }, { signal }) {
        const { tenantId } = caller.principal
        if (!isUuid(keyId)) return UNKNOWN
        const row = await database.tenant(tenantId, (tx) => findApiKey(tx, tenantId, keyId), {
          signal,
        })
        return row === undefined ? UNKNOWN : { tag: 'found', key: recordOf(row, clock.now()) }
      },

      async createApiKey(message, context) {
        const { tenantId } = message.caller.principal
        return database.tenant(
          tenantId,
          (tx) =>
            idempotently(
              tx,
              message.idempotency,
              () => insert(tx, message, context),
              (outcome) => (outcome.tag === 'created' ? { ...outcome, secret: null } : undefined),
            ),
          { signal: context.signal },
        )
      },

      async rotateApiKey({ caller, keyId, overlapSecs, expiresInSecs }, context) {
        const { tenantId } = caller.principal
        if (!isUuid(keyId)) return UNKNOWN
        const outcome = await database.tenant(
          tenantId,
          async (tx) => {
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
            if ((expiresInSecs ?? 0) > most)
              return { tag: 'lifetime_too_long' as const, mostSecs: most }
            const now = clock.now()
            const secret = newApiKey(random)
            const row = await rotateApiKey(tx, tenantId, keyId, {
              tokenSha256: apiKeyHash(secret),
              previousExpiresAt: new Date(now.getTime() + overlapSecs * 1000),
              expiresAt: new Date(now.getTime() + (expiresInSecs ?? 0) * 1000),
              now,
            })
            if (row === undefined) return UNKNOWN
            append(tx, caller, 'api_key.rotated', row, context)
            return { tag: 'rotated' as const, key: recordOf(row, now), secret }
          },
          { signal: context.signal },
        )
        if (outcome.tag === 'rotated') tokens.send('invalidate', { ids: [keyId] })
        return outcome
      },

      async deleteApiKey({ caller, keyId }, context) {
        const { tenantId } = caller.principal
        if (!isUuid(keyId)) return UNKNOWN
        const isRemoved = await database.tenant(
          tenantId,
          async (tx) => {
            const row = await deleteApiKey(tx, tenantId, keyId)
            if (row === undefined) return false
            append(tx, caller, 'api_key.revoked', row, context)
            return true
          },
          { signal: context.signal },
        )
        if (!isRemoved) return UNKNOWN
        // The keys that it made are announced by the trigger of 0086_api_keys.
        tokens.send('invalidate', { ids: [keyId] })
        return { tag: 'removed' }
      },
    }
  },
})

function recordOf(row: ApiKeyRow, now: Date): ApiKeyRecord {
  const { maker, tenantId: _tenant, ...record } = row
  return { ...record, createdBy: maker, status: row.expiresAt > now ? 'active' : 'expired' }
}
