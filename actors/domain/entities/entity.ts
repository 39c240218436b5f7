/**
 * An entity is an object that a tenant creates, reads, changes, lists and deletes. It states its members once, with the
 * names of the API. Their types, the columns of the table (storage/platform/portable/entity-table.ts), the bodies and answers of
 * the operations, and the OpenAPI schemas come from that statement.
 */
import { z } from 'zod'
import { ChangedName, ChosenName } from './names.js'

export type Members = Readonly<Record<string, z.ZodType>>

/** `allowed_clients` as `allowedClients`. */
export type Camel<Name> = Name extends `${infer Head}_${infer Tail}`
  ? `${Head}${Capitalize<Camel<Tail>>}`
  : Name

type Frozen<T> = T extends readonly (infer Item)[]
  ? readonly Frozen<Item>[]
  : T extends object
    ? { readonly [K in keyof T]: Frozen<T[K]> }
    : T

/** The members of a new object, in the names of TypeScript. */
export type Draft<M extends Members> = {
  readonly [K in keyof M as Camel<K>]: Frozen<z.output<M[K]>>
}
/** Undefined members stay unchanged. */
export type Change<M extends Members> = {
  readonly [K in keyof M as Camel<K>]: Frozen<z.output<M[K]>> | undefined
}
/** A stored object. */
export type Row<M extends Members> = Draft<M> & {
  readonly id: string
  readonly tenantId: string
  readonly createdAt: Date
  readonly updatedAt: Date
}
/** The members of a body or an answer. */
type Wire<M extends Members> = { [K in keyof M]: z.output<M[K]> }
type Answer<M extends Members> = Wire<M> & {
  id: string
  tenant_id?: string
  created_at: string
  updated_at: string
}

type Stated<M extends Members> = {
  /** Singular, `api_resource`: the prefix of its statements and audit actions. */
  readonly name: string
  readonly table: string
  /** Name in the OpenAPI document, `ApiResource`. */
  readonly schema: string
  readonly members: M
  /** Members that an answer leaves out while they are null. */
  readonly omitted?: readonly (keyof M & string)[]
  /** Members of requests that are not stored. */
  readonly unstored?: readonly (keyof M & string)[]
  /** Members that only answers have. The statements of the entity do not write their columns. */
  readonly shown?: Members
  /** `as requested`: answers name no tenant, and their schema has the bounds of requests. */
  readonly answers?: 'as requested'
}

export type Entity<M extends Members> = Stated<M> & {
  /** The body of a creation: members with a default may be absent. */
  readonly create: z.ZodObject & z.ZodType<Wire<M>>
  /** The body of a change: every member may be absent. */
  readonly update: z.ZodObject & z.ZodType<Partial<Wire<M>>>
  readonly answer: z.ZodType<Answer<M>, Answer<M>>
}

/** Derives the schemas of an entity from its members. */
export function entity<const M extends Members>(stated: Stated<M>): Entity<M> {
  const { schema, members, omitted = [] } = stated
  const isAsRequested = stated.answers === 'as requested'
  const stored = mapped(storedMembers(stated), (member, name) => {
    const type = isAsRequested ? withoutDefault(member) : typeOf(member)
    return omitted.includes(name) ? (type as z.ZodNullable<z.ZodType>).unwrap().optional() : type
  })
  const answer = z.object({
    id: z.uuid(),
    ...(isAsRequested ? {} : { tenant_id: z.uuid() }),
    ...stored,
    ...stated.shown,
    created_at: z.iso.datetime(),
    updated_at: z.iso.datetime(),
  })
  return {
    ...stated,
    create: z.object(members).meta({ id: `Create${schema}` }) as never,
    update: z
      .object(mapped(members, changed))
      .partial()
      .meta({ id: `Update${schema}` }) as never,
    answer: answer.meta({ id: schema }) as never,
  }
}

/** `allowed_clients` as `allowedClients`. */
export function camelCase(name: string): string {
  return name.replaceAll(/_([a-z])/g, (_, letter: string) => letter.toUpperCase())
}

/** A body in the names of TypeScript. */
export function camelMembers<Body extends object>(
  body: Body,
): { [K in keyof Body as Camel<K>]: Body[K] } {
  const named = Object.entries(body).map(([name, value]) => [camelCase(name), value])
  return Object.fromEntries(named) as { [K in keyof Body as Camel<K>]: Body[K] }
}

/** The members of a body, in the names of TypeScript. Absent members are undefined. */
export function draftOf<M extends Members>(entity: Entity<M>, body: Wire<M>): Draft<M>
export function draftOf<M extends Members>(entity: Entity<M>, body: Partial<Wire<M>>): Change<M>
export function draftOf<M extends Members>({ members }: Entity<M>, body: Partial<Wire<M>>) {
  const named = Object.keys(members).map((name) => [camelCase(name), body[name]])
  return Object.fromEntries(named) as Draft<M>
}

/** The members with a column, or with an expression to read them. */
export function storedMembers<M extends Members>({ members, unstored = [] }: Stated<M>): Members {
  return Object.fromEntries(Object.entries(members).filter(([name]) => !unstored.includes(name)))
}

/** The answer that describes a row. */
export function answerOf<M extends Members>(entity: Entity<M>, row: Row<M>): Answer<M> {
  const { omitted = [], answers } = entity
  const values = row as Readonly<Record<string, unknown>>
  const shown = [...Object.keys(storedMembers(entity)), ...Object.keys(entity.shown ?? {})]
    .map((name): [string, unknown] => [name, values[camelCase(name)]])
    .filter(([name, value]) => value !== null || !omitted.includes(name))
  return {
    id: row.id,
    ...(answers === 'as requested' ? {} : { tenant_id: row.tenantId }),
    ...(Object.fromEntries(shown) as Wire<M>),
    created_at: row.createdAt.toISOString(),
    updated_at: row.updatedAt.toISOString(),
  }
}

/** The names of the members in which two rows differ. */
export function changedMembers<M extends Members>(
  entity: Entity<M>,
  before: Row<M>,
  after: Row<M>,
): readonly string[] {
  const textOf = (row: Row<M>, name: string) =>
    JSON.stringify((row as Readonly<Record<string, unknown>>)[camelCase(name)])
  return Object.keys(storedMembers(entity)).filter(
    (name) => textOf(before, name) !== textOf(after, name),
  )
}

function mapped(
  members: Members,
  map: (member: z.ZodType, name: string) => z.ZodType,
): Record<string, z.ZodType> {
  return Object.fromEntries(
    Object.entries(members).map(([name, member]) => [name, map(member, name)]),
  )
}

function changed(member: z.ZodType): z.ZodType {
  return member === ChosenName ? ChangedName : withoutDefault(member)
}

function withoutDefault(member: z.ZodType): z.ZodType {
  return member instanceof z.ZodDefault ? (member.unwrap() as z.ZodType) : member
}

/** The type of a stored value, without the bounds of new ones: it may be older than they are. */
function typeOf(member: z.ZodType): z.ZodType {
  if (member instanceof z.ZodDefault) return typeOf(member.unwrap() as z.ZodType)
  if (member instanceof z.ZodNullable) return typeOf(member.unwrap() as z.ZodType).nullable()
  if (member instanceof z.ZodArray) return z.array(typeOf(member.element as z.ZodType))
  if (member instanceof z.ZodObject) return z.object(mapped(member.shape as Members, typeOf))
  if (member instanceof z.ZodUnion) return typeOf(member.options[0] as z.ZodType)
  if (member instanceof z.ZodNumber) return z.int()
  return member instanceof z.ZodString ? z.string() : member
}
