/**
 * The handlers of an entity (actors/domain/entities/). Every handler works in the tenant of the caller's token. A
 * limit, a change of a name, a conflict, and the audit event of each write are decided here, once.
 */
import type { MessageContext } from '../../runtime/kernel/actor.js'
import type { EntityTable } from '../../storage/platform/portable/entity-table.js'
import type { Transaction } from '../../storage/platform/sql.js'
import type { AuditOnlyType, Caller } from '../domain/audit.js'
import {
  type Change,
  changedMembers,
  type Draft,
  type Entity,
  type Members,
  type Row,
} from '../domain/entities/entity.js'
import type { EntityProtocol, WriteRefused } from '../domain/entities/messages.js'
import { ChosenName } from '../domain/entities/names.js'
import { isUuid } from '../domain/ids.js'
import { changedName, refusedName } from '../domain/shown-names.js'
import { createOnce } from './creation.js'
import { page } from './paging.js'
import { recordAudit } from './record-audit.js'
import { inTenant } from './in-tenant.js'
import type { WriteNeeds } from './write-needs.js'

const UNKNOWN = { tag: 'unknown' } as const

type EntityRules<M extends Members, Refused> = {
  readonly entity: Entity<M>
  readonly table: EntityTable<M>
  /** The id of the one new row, where something was sealed for it before. Default: a random one. */
  readonly newId?: string
  /** The most rows of a tenant. */
  readonly most: number
  /** The most rows of a page, where rows are large. */
  readonly pageMax?: number
  /** What the schema cannot see: the first fault of a new or changed row. */
  readonly faultOf: (draft: Draft<M>, caller: Caller) => Refused | WriteRefused | undefined
  /**
   * A fault that only a look at other data shows, before the write. Members of a change can be undefined or invalid.
   * @param id null for a new row.
   */
  readonly foreignFault?: (
    change: Change<M>,
    caller: Caller,
    context: MessageContext,
    id: string | null,
  ) => Promise<Refused | WriteRefused | undefined>
  /** Runs in the transaction of a write, after it. `before` is null for a new row. */
  readonly written?: (tx: Transaction, row: Row<M>, before: Row<M> | null) => Promise<void>
  /** Tests whether a write failed because another row has what is unique. */
  readonly isConflict?: (error: unknown) => boolean
  /** What each audit event says of the row, and what a creation and a change add to it. */
  readonly auditOf: (row: Row<M>) => Readonly<Record<string, unknown>>
  readonly powersOf?: (row: Row<M>) => Readonly<Record<string, unknown>>
  /** What the audit event of a change says. Default: the row, and the names of the members that changed. */
  readonly auditOfChange?: (before: Row<M>, row: Row<M>) => Readonly<Record<string, unknown>>
  /** What the caches of this process hold the row by. They drop it at the commit of a write. */
  readonly forgets?: (row: Row<M>) => string
  /** After the commit of a write, for a cache of the actor. */
  readonly changed?: (tenantId: string) => void
}

type Handlers<M extends Members, Refused extends { readonly tag: string }> = {
  [K in keyof EntityProtocol<M, Refused>]: (
    message: EntityProtocol<M, Refused>[K]['message'],
    context: MessageContext,
  ) => Promise<EntityProtocol<M, Refused>[K]['reply']>
}

/** The handlers of list, read, create, update and remove. */
export function entityHandlers<M extends Members, Refused extends { readonly tag: string }>(
  needs: WriteNeeds,
  rules: EntityRules<M, Refused>,
): Handlers<M, Refused> {
  const { entity, table, most, faultOf } = rules
  const record = recorderOf(needs, rules)
  /** The unique index decides between concurrent writes. */
  const orConflict = (error: unknown) => {
    if (rules.isConflict?.(error) !== true) throw error
    return { tag: 'conflict' } as const
  }

  const inOwnTenant = <T>(
    { principal }: Caller,
    context: MessageContext,
    work: (tx: Transaction, tenantId: string) => Promise<T>,
  ): Promise<T> =>
    inTenant(needs.database, principal.tenantId, context, (tx) => work(tx, principal.tenantId))

  const changed = ({ principal }: Caller) => rules.changed?.(principal.tenantId)

  return {
    async list({ caller, limit, after }, context) {
      const shown = Math.min(limit, rules.pageMax ?? limit)
      const rows = await inOwnTenant(caller, context, (tx, tenantId) =>
        table.list(tx, tenantId, shown + 1, after),
      )
      const { items, next } = page(rows, shown)
      return { tag: 'listed', rows: items, next }
    },

    async read({ caller, id }, context) {
      if (!isUuid(id)) return UNKNOWN
      const row = await inOwnTenant(caller, context, (tx, tenantId) => table.find(tx, tenantId, id))
      return row === undefined ? UNKNOWN : { tag: 'found', row }
    },

    async create(message, context) {
      const { caller, draft } = message
      const { tenantId } = caller.principal
      const fault =
        faultOf(draft, caller) ??
        (await rules.foreignFault?.(draft as Change<M>, caller, context, null))
      if (fault) return fault
      const insert = async (tx: Transaction) => {
        if (!(await table.hasRoom(tx, tenantId, most))) return { tag: 'full', most } as const
        const now = needs.clock.now()
        const times = { createdAt: now, updatedAt: now }
        const id = rules.newId ?? needs.random.uuid()
        const row: Row<M> = { ...draft, id, tenantId, ...times }
        await table.insert(tx, row)
        await rules.written?.(tx, row, null)
        record(tx, caller, context, row, null)
        return { tag: 'created', row, replayed: false } as const
      }
      return createOnce(needs, message, context, insert)
        .catch(orConflict)
        .finally(() => changed(caller))
    },

    async update({ caller, id, change }, context) {
      if (!isUuid(id)) return UNKNOWN
      const foreign = await rules.foreignFault?.(change, caller, context, id)
      return inOwnTenant(caller, context, async (tx, tenantId) => {
        const before = await table.lock(tx, tenantId, id)
        if (before === undefined) return UNKNOWN
        const row = { ...before, ...stated(change), updatedAt: needs.clock.now() }
        const name = storedName(entity, row, before)
        if (name === null) return refusedName('/name')
        Object.assign(row, name)
        const fault = faultOf(row, caller) ?? foreign
        if (fault) return fault
        await table.update(tx, row)
        await rules.written?.(tx, row, before)
        record(tx, caller, context, row, before)
        return { tag: 'found', row } as const
      })
        .catch(orConflict)
        .finally(() => changed(caller))
    },

    async remove({ caller, id }, context) {
      if (!isUuid(id)) return UNKNOWN
      return inOwnTenant(caller, context, async (tx, tenantId) => {
        const row = await table.lock(tx, tenantId, id)
        if (row === undefined) return UNKNOWN
        await table.remove(tx, tenantId, id)
        record(tx, caller, context, null, row)
        return { tag: 'removed' } as const
      }).finally(() => changed(caller))
    },
  }
}

/**
 * Writes the audit event of a write, and has it forgotten: `before` is null for a new row, `row` for a deleted one.
 */
function recorderOf<M extends Members, Refused>(
  needs: WriteNeeds,
  { entity, auditOf, powersOf = () => ({}), auditOfChange, forgets }: EntityRules<M, Refused>,
) {
  const eventOf = (row: Row<M> | null, before: Row<M> | null) => {
    if (row === null) return ['deleted', auditOf(before!)] as const
    if (before === null) return ['created', { ...auditOf(row), ...powersOf(row) }] as const
    const changed = changedMembers(entity, before, row)
    const data = auditOfChange?.(before, row) ?? { ...auditOf(row), changed, ...powersOf(row) }
    return ['updated', data] as const
  }
  return (
    tx: Transaction,
    caller: Caller,
    context: MessageContext,
    row: Row<M> | null,
    before: Row<M> | null,
  ) => {
    const [verb, data] = eventOf(row, before)
    if (forgets !== undefined) tx.forget([forgets((row ?? before)!)])
    const type = `admin.${entity.name}.${verb}` as AuditOnlyType
    const resource = { type: entity.name, id: (row ?? before)!.id }
    recordAudit(tx, needs, caller, context, { type, resource, data })
  }
}

/** The name of a changed row as it is stored. Null if it may not be one. Empty for an entity without a name. */
function storedName<M extends Members>({ members }: Entity<M>, row: object, before: object) {
  if (members['name'] !== ChosenName) return {}
  const nameOf = (of: object) => (of as { readonly name: string }).name
  const name = changedName(nameOf(row), nameOf(before))
  return name === null ? null : { name }
}

/** The members of a change that are not undefined. */
function stated<M extends Members>(change: Change<M>): Partial<Draft<M>> {
  const members = Object.entries(change).filter(([, value]) => value !== undefined)
  return Object.fromEntries(members) as Partial<Draft<M>>
}
