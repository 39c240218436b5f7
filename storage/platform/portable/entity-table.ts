/** The statements that every entity has. A member has a column of its name. */
import { z } from 'zod'
import {
  camelCase,
  type Entity,
  type Members,
  type Row,
  storedMembers,
} from '../../../actors/domain/entities/entity.js'
import { firstRow, type Transaction } from '../sql.js'
import { type TenantRows, tenantRows } from './tenant-rows.js'

/** Values of columns that follow from the members. */
type Derived<M extends Members> = Readonly<Record<string, (row: Row<M>) => unknown>>

export type EntityTable<M extends Members> = TenantRows<Row<M>> & {
  /** What a statement selects to read a row. */
  readonly columns: string
  /** Locks the row until the transaction ends, so that changes are serialised. */
  lock: (tx: Transaction, tenantId: string, id: string) => Promise<Row<M> | undefined>
  /** True if the tenant has fewer than `most`. Holds the tenant until the transaction ends. */
  hasRoom: (tx: Transaction, tenantId: string, most: number) => Promise<boolean>
  insert: (tx: Transaction, row: Row<M>) => Promise<void>
  /** Replaces every member. */
  update: (tx: Transaction, row: Row<M>) => Promise<void>
  remove: (tx: Transaction, tenantId: string, id: string) => Promise<void>
}

/**
 * Writes the statements of an entity. Their names begin with the entity's name: `api_resource.find`. A member without a
 * column has an expression in `read`.
 * @param only SQL: which rows exist for callers. Default: all.
 */
export function entityTable<M extends Members>(
  entity: Entity<M>,
  derived: Derived<M> = {},
  read: Readonly<Record<string, string>> = {},
  only = '',
): EntityTable<M> {
  const { name, table, members } = entity
  const kept = only === '' ? '' : ` and ${only}`
  const stored = Object.keys(storedMembers(entity))
  const own = stored.filter((member) => read[member] === undefined)
  const columns = ['id', 'tenant_id', ...stored, 'created_at', 'updated_at']
    .map((member) => selected(member, read[member]))
    .join(', ')
  const written = [...own, ...Object.keys(derived)]
  const valuesOf = (row: Row<M>) => [
    row.tenantId,
    row.id,
    ...own.map((column) => {
      const value = (row as Readonly<Record<string, unknown>>)[camelCase(column)]
      return isJson(members[column]!) ? JSON.stringify(value) : value
    }),
    ...Object.values(derived).map((derive) => derive(row)),
    row.updatedAt,
  ]
  /** $1 and $2 are tenant and id. */
  const parameter = (index: number) => `$${index + 3}`
  return {
    columns,
    ...tenantRows<Row<M>>(name, table, columns, '', only),
    lock: (tx, tenantId, id) =>
      firstRow<Row<M>>(tx, {
        name: `${name}.lock`,
        text: `select ${columns} from ${table} where tenant_id = $1 and id = $2${kept} for update`,
        values: [tenantId, id],
      }),
    async hasRoom(tx, tenantId, most) {
      await tx.query({
        name: `${name}.turn`,
        text: 'select from tenants where id = $1 for no key update',
        values: [tenantId],
      })
      const { rows } = await tx.query<{ room: boolean }>({
        name: `${name}.room`,
        text: `select count(*) < $2 as room from ${table} where tenant_id = $1${kept}`,
        values: [tenantId, most],
      })
      return rows[0]!.room
    },
    async insert(tx, row) {
      const places = [...written, 'updated_at', 'created_at'].map((_, index) => parameter(index))
      await tx.query({
        name: `${name}.insert`,
        text: `insert into ${table} (tenant_id, id, ${written.join(', ')}, updated_at, created_at)
           values ($1, $2, ${places.join(', ')})`,
        values: [...valuesOf(row), row.createdAt],
      })
    },
    async update(tx, row) {
      const set = [...written, 'updated_at'].map(
        (column, index) => `${column} = ${parameter(index)}`,
      )
      await tx.query({
        name: `${name}.update`,
        text: `update ${table} set ${set.join(', ')} where tenant_id = $1 and id = $2`,
        values: valuesOf(row),
      })
    },
    async remove(tx, tenantId, id) {
      await tx.query({
        name: `${name}.delete`,
        text: `delete from ${table} where tenant_id = $1 and id = $2`,
        values: [tenantId, id],
      })
    },
  }
}

function selected(member: string, expression = member): string {
  return camelCase(member) === expression ? member : `${expression} as "${camelCase(member)}"`
}

/** Objects, and lists of them, are JSON. A list of other values is an array of PostgreSQL. */
function isJson(member: z.ZodType): boolean {
  if (member instanceof z.ZodDefault || member instanceof z.ZodNullable)
    return isJson(member.unwrap() as z.ZodType)
  if (member instanceof z.ZodArray) return isJson(member.element as z.ZodType)
  return member instanceof z.ZodObject || member instanceof z.ZodRecord
}
