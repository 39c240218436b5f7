/** Manages the API resources of a tenant. */
import { type ActorRef, defineActor, type MessageContext } from '../../../runtime/kernel/actor.js'
import type { Clock } from '../../../runtime/kernel/clock.js'
import type { Random } from '../../../runtime/kernel/random.js'
import {
  type ApiResourceRow,
  deleteApiResource,
  findApiResource,
  hasRoomForApiResource,
  insertApiResource,
  listApiResources,
  lockApiResource,
  resourceKey,
  updateApiResource,
} from '../../../storage/oauth/api-resources.js'
import { isAudienceTaken } from '../../../storage/oauth/audiences.js'
import { appendAudit } from '../../../storage/operations/audit.js'
import { idempotently } from '../../../storage/platform/idempotency.js'
import type { Database, Transaction } from '../../../storage/platform/sql.js'
import { audited, type Caller } from '../../domain/audit.js'
import { isUuid } from '../../domain/ids.js'
import { changedName, refusedName } from '../../domain/shown-names.js'
import { tenants, type TenantsProtocol } from '../../identity/tenants/protocol.js'
import { page } from '../../platform/paging.js'
import { tokens, type TokensProtocol } from '../tokens/protocol.js'
import {
  apiResources,
  type ApiResourcesProtocol,
  type CreateResource,
  type ReadResource,
  type ResourceCreated,
  type ResourceDraft,
  type ResourceRefused,
} from './protocol.js'
import { ownershipFault } from './ownership.js'
import { draftFault } from './rules.js'

const UNKNOWN = { tag: 'unknown' } as const
const RESOURCES_MAX = 500

export type ApiResourcesNeeds = {
  readonly database: Database
  readonly clock: Clock
  readonly random: Random
  readonly tenants: ActorRef<TenantsProtocol>
  readonly tokens: ActorRef<TokensProtocol>
  readonly issuer: string
  readonly isOwnAddress: (uri: string) => boolean
}

export const apiResourcesActor = defineActor<ApiResourcesProtocol, ApiResourcesNeeds>({
  address: apiResources,
  asks: { tenants, tokens },
  mailbox: { capacity: 1024, inflightMax: 64 },
  // The actor has no state that a restart would repair.
  supervision: { onFailure: 'resume' },
  create: (needs) => {
    const { database, clock, random, tokens, issuer } = needs

    function record(
      tx: Transaction,
      caller: Caller,
      did: 'created' | 'updated' | 'deleted',
      row: ApiResourceRow,
      data: Readonly<Record<string, unknown>>,
      requestId: string | undefined,
    ): void {
      appendAudit(tx, [
        audited(caller, {
          id: random.uuid(),
          tenantId: row.tenantId,
          type: `admin.api_resource.${did}`,
          occurredAt: clock.now(),
          resource: { type: 'api_resource', id: row.id },
          requestId,
          data: { resource: row.resource, name: row.name, ...data },
        }),
      ])
    }

    async function insert(
      tx: Transaction,
      { caller, draft }: CreateResource,
      requestId: string | undefined,
    ): Promise<ResourceCreated | ResourceRefused> {
      const { tenantId } = caller.principal
      if (!(await hasRoomForApiResource(tx, tenantId, RESOURCES_MAX)))
        return { tag: 'full', most: RESOURCES_MAX }
      const now = clock.now()
      const times = { createdAt: now, updatedAt: now }
      const row = { ...draft, id: random.uuid(), tenantId, ...times }
      await insertApiResource(tx, row)
      record(tx, caller, 'created', row, powersOf(row), requestId)
      return { tag: 'created', resource: row, replayed: false }
    }

    /** Runs a write. The unique index decides between concurrent ones. */
    async function orConflict<T>(write: () => Promise<T>): Promise<T | ResourceRefused> {
      try {
        return await write()
      } catch (error) {
        if (!isAudienceTaken(error)) throw error
        return { tag: 'conflict' }
      }
    }

    async function find(
      { principal, resourceId }: ReadResource,
      context: MessageContext,
    ): Promise<ApiResourceRow | typeof UNKNOWN> {
      const { tenantId } = principal
      if (!isUuid(resourceId)) return UNKNOWN
      const row = await database.tenant(
        tenantId,
        (tx) => findApiResource(tx, tenantId, resourceId),
        { signal: context.signal },
      )
      return row ?? UNKNOWN
    }

    return {
      async list({ principal, limit, after }, context) {
        const { tenantId } = principal
        const rows = await database.tenant(
          tenantId,
          (tx) => listApiResources(tx, tenantId, limit + 1, after),
          { signal: context.signal },
        )
        const { items, next } = page(rows, limit)
        return { tag: 'listed', resources: items, next }
      },

      async read(message, context) {
        const row = await find(message, context)
        return 'tag' in row ? row : { tag: 'found', resource: row }
      },

      async describe(message, context) {
        const row = await find(message, context)
        return 'tag' in row ? row : { tag: 'described', resource: row, issuer }
      },

      async create(message, context) {
        const { caller, draft, idempotency } = message
        const { tenantId } = caller.principal
        const fault =
          draftFault(draft) ?? (await ownershipFault(needs, draft.resource, tenantId, context))
        if (fault !== null) return fault
        return orConflict(() =>
          database.tenant(
            tenantId,
            (tx) =>
              idempotently(
                tx,
                idempotency,
                () => insert(tx, message, context.requestId),
                (outcome) => (outcome.tag === 'created' ? outcome : undefined),
              ),
            { signal: context.signal },
          ),
        )
      },

      async update({ caller, resourceId, change }, context) {
        const { tenantId } = caller.principal
        if (!isUuid(resourceId)) return UNKNOWN
        const unowned =
          change.resource === undefined || resourceKey(change.resource) === null
            ? null
            : await ownershipFault(needs, change.resource, tenantId, context)
        const updated = await orConflict(() =>
          database.tenant(
            tenantId,
            async (tx) => {
              const before = await lockApiResource(tx, tenantId, resourceId)
              if (before === undefined) return UNKNOWN
              const name = changedName(change.name ?? before.name, before.name)
              if (name === null) return refusedName('/name')
              const row = { ...changed(before, change, clock.now()), name }
              const fault = draftFault(row) ?? unowned
              if (fault !== null) return fault
              await updateApiResource(tx, row, before)
              const data = { changed: changedMembers(before, row), ...powersOf(row) }
              record(tx, caller, 'updated', row, data, context.requestId)
              return { tag: 'found', resource: row } as const
            },
            { signal: context.signal },
          ),
        )
        if (updated.tag === 'found') tokens.send('invalidate', { ids: [resourceId] })
        return updated
      },

      async remove({ caller, resourceId }, context) {
        const { tenantId } = caller.principal
        if (!isUuid(resourceId)) return UNKNOWN
        const removed = await database.tenant(
          tenantId,
          async (tx) => {
            const row = await lockApiResource(tx, tenantId, resourceId)
            if (row === undefined) return UNKNOWN
            await deleteApiResource(tx, tenantId, resourceId)
            record(tx, caller, 'deleted', row, {}, context.requestId)
            return { tag: 'removed' } as const
          },
          { signal: context.signal },
        )
        tokens.send('invalidate', { ids: [resourceId] })
        return removed
      },
    }
  },
})

function changed(
  before: ApiResourceRow,
  change: { readonly [K in keyof ResourceDraft]: ResourceDraft[K] | undefined },
  now: Date,
): ApiResourceRow {
  const stated = Object.entries(change).filter(([, value]) => value !== undefined)
  return { ...before, ...(Object.fromEntries(stated) as Partial<ResourceDraft>), updatedAt: now }
}

/** The members that show in the audit log what a resource permits. */
function powersOf({ scopes, allowedClients, requireDpop }: ApiResourceRow) {
  return {
    scopes: scopes.map(({ name }) => name),
    allowed_clients: allowedClients,
    require_dpop: requireDpop,
  }
}

/** Members by their wire names. */
const MEMBERS = {
  resource: 'resource',
  name: 'name',
  scopes: 'scopes',
  allowedClients: 'allowed_clients',
  clientIds: 'client_ids',
  requireDpop: 'require_dpop',
  tokenStatusList: 'token_status_list',
  accessTokenLifetimeSecs: 'access_token_lifetime_secs',
} as const satisfies { readonly [member in keyof ResourceDraft]: string }

function changedMembers(before: ApiResourceRow, after: ApiResourceRow): readonly string[] {
  const names = Object.entries(MEMBERS) as [keyof typeof MEMBERS, string][]
  return names
    .filter(([member]) => JSON.stringify(before[member]) !== JSON.stringify(after[member]))
    .map(([, name]) => name)
}
