/** Answers that describe a row: each member of a schema is the member of the row with that name in TypeScript. */
import { z } from 'zod'
import { type Camel, camelCase } from '../../actors/domain/entities/entity.js'

type MembersOf<Schema extends z.ZodObject> = {
  readonly [K in keyof Schema['shape'] as K extends string ? Camel<K> : never]: Shown<
    Schema['shape'][K]
  >
}
type OptionalOf<Schema extends z.ZodObject> = {
  [K in keyof Schema['shape']]: Schema['shape'][K] extends z.ZodOptional ? K : never
}[keyof Schema['shape']]
type RowOf<Schema extends z.ZodObject> = Omit<
  MembersOf<Schema>,
  Camel<OptionalOf<Schema> & string>
> &
  Partial<Pick<MembersOf<Schema>, Camel<OptionalOf<Schema> & string> & keyof MembersOf<Schema>>>
/** Objects inside have all members, with their names in TypeScript: one that is presented twice does not compile. */
type Shown<Type> = Type extends z.ZodObject
  ? MembersOf<Type>
  : Type extends z.ZodArray<infer Element>
    ? readonly Shown<Element>[]
    : Type extends z.ZodOptional<infer Inner>
      ? Shown<Inner> | null | undefined
      : Type extends z.ZodNullable<infer Inner>
        ? Shown<Inner> | null
        : unknown

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
