/** The statements that every entity has. A member has a column of its name. */
import { z } from 'zod'
import {
  camelCase,
  type Entity,
  type Members,
  type Row,
  storedMembers,
} from '../../../actors/domain/entities/entity.js'
import type { Transaction } from '../sql.js'

/** Values of columns that follow from the members. */
type Derived<M extends Members> = Readonly<Record<string, (row: Row<M>) => unknown>>

export type EntityTable<M extends Members> = {
  /** What a statement selects to read a row. */
  readonly columns: string
  find: (tx: Transaction, tenantId: string, id: string) => Promise<Row<M> | undefined>
  /** Locks the row until the transaction ends, so that changes are serialised. */
  lock: (tx: Transaction, tenantId: string, id: string) => Promise<Row<M> | undefined>
  /** Up to `limit` rows, newest first, after the row of `createdAt` and `id`. */
  list: (
    tx: Transaction,
    tenantId: string,
    limit: number,
    after: { readonly createdAt: Date; readonly id: string } | null,
  ) => Promise<Row<M>[]>
  /** True if the tenant has fewer than `most`. Holds the tenant until the transaction ends. */
  hasRoom: (tx: Transaction, tenantId: string, most: number) => Promise<boolean>
  insert: (tx: Transaction, row: Row<M>) => Promise<void>
  /** Replaces every member. */
  update: (tx: Transaction, row: Row<M>) => Promise<void>
  remove: (tx: Transaction, tenantId: string, id: string) => Promise<void>
}

/**
 * Writes the statements of an entity. Their names begin with that of the entity: `api_resource.find`. A member without a
 * column has an expression in `read`.
 */
export function entityTable<M extends Members>(
  entity: Entity<M>,
  derived: Derived<M> = {},
  read: Readonly<Record<string, string>> = {},
): EntityTable<M> {
  const { name, table, members } = entity
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
  const one = async (tx: Transaction, verb: string, tail: string, values: readonly unknown[]) => {
    const text = `select ${columns} from ${table} where tenant_id = $1 and id = $2${tail}`
    const { rows } = await tx.query<Row<M>>({ name: `${name}.${verb}`, text, values })
    return rows[0]
  }
  return {
    columns,
    find: (tx, tenantId, id) => one(tx, 'find', '', [tenantId, id]),
    lock: (tx, tenantId, id) => one(tx, 'lock', ' for update', [tenantId, id]),
    async list(tx, tenantId, limit, after) {
      const { rows } = await tx.query<Row<M>>({
        name: `${name}.list`,
        text: `select ${columns} from ${table}
           where tenant_id = $1 and ($3::timestamptz is null or (created_at, id) < ($3, $4::uuid))
           order by created_at desc, id desc limit $2`,
        values: [tenantId, limit, after?.createdAt ?? null, after?.id ?? null],
      })
      return rows
    },
    async hasRoom(tx, tenantId, most) {
      await tx.query({
        name: `${name}.turn`,
        text: 'select from tenants where id = $1 for no key update',
        values: [tenantId],
      })
      const { rows } = await tx.query<{ room: boolean }>({
        name: `${name}.room`,
        text: `select count(*) < $2 as room from ${table} where tenant_id = $1`,
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
