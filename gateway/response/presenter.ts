/** Answers that describe a row: each member of a schema is the member of the row with that name in TypeScript. */
import { z } from 'zod'
import { type Camel, camelCase } from '../../actors/domain/entities/entity.js'

type RowOf<Schema extends z.ZodObject> = {
  readonly [K in keyof z.input<Schema> as K extends string ? Camel<K> : never]: unknown
}

/** A member that may be absent is left out while it is null. JSON has dates in RFC 3339. */
export function presenter<Schema extends z.ZodObject>(
  schema: Schema,
): (row: RowOf<Schema>) => z.input<Schema> {
  const members = Object.entries(schema.shape).map(
    ([name, type]) => [name, camelCase(name), type instanceof z.ZodOptional] as const,
  )
  return (row) => {
    const values = row as Readonly<Record<string, unknown>>
    const shown = members
      .filter(([, member, isOptional]) => !isOptional || values[member] !== null)
      .map(([name, member]) => [name, values[member]])
    return Object.fromEntries(shown) as z.input<Schema>
  }
}
