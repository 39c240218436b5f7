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
    ([name, type]) => [name, camelCase(name), shownBy(type as z.ZodType)] as const,
  )
  return (row) => {
    const values = row as Readonly<Record<string, unknown>>
    const shown = members
      .map(([name, member, show]) => [name, show(values[member])] as const)
      .filter(([, value]) => value !== undefined)
    return Object.fromEntries(shown) as z.input<Schema>
  }
}

/** How a value of a type is shown: the members of objects inside have their names in the API too. */
function shownBy(type: z.ZodType): (value: unknown) => unknown {
  if (type instanceof z.ZodOptional || type instanceof z.ZodNullable) {
    const show = shownBy(type.unwrap() as z.ZodType)
    const absent = type instanceof z.ZodOptional ? undefined : null
    return (value) => (value === null || value === undefined ? absent : show(value))
  }
  if (type instanceof z.ZodArray) {
    const show = shownBy(type.element as z.ZodType)
    return (value) => (value as readonly unknown[]).map(show)
  }
  return type instanceof z.ZodObject
    ? (presenter(type) as (value: unknown) => unknown)
    : (value) => value
}
