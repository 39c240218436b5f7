/** The form of an API operation, from the schema of its body: fields, limits, and the JSON that a sent form means. */
import { z } from 'zod'
import type { FormFields, Route } from '../../route.js'
import { isItem, type Item } from './declaration.js'

type FieldKind =
  | 'text'
  | 'secret'
  | 'number'
  | 'boolean'
  | 'choice'
  /** One value per line. */
  | 'lines'
  /** JSON text. */
  | 'json'

export type Field = {
  /** The member of the body. A member of an object within it is `branding.color`. */
  readonly name: string
  readonly kind: FieldKind
  readonly required: boolean
  readonly nullable: boolean
  readonly options: readonly string[]
  readonly longest: number | undefined
  readonly least: number | undefined
  readonly most: number | undefined
  /** From the OpenAPI document, in English. */
  readonly description: string | undefined
}

type Schema = {
  readonly type?: string | undefined
  readonly properties?: Readonly<Record<string, Schema>> | undefined
  readonly required?: readonly string[] | undefined
  readonly items?: Schema | undefined
  readonly anyOf?: readonly Schema[] | undefined
  readonly oneOf?: readonly Schema[] | undefined
  readonly enum?: readonly unknown[] | undefined
  readonly not?: object | undefined
  readonly maxLength?: number | undefined
  readonly minimum?: number | undefined
  readonly maximum?: number | undefined
  readonly description?: string | undefined
  readonly $ref?: string | undefined
  readonly $defs?: Readonly<Record<string, Schema>> | undefined
}

const SECRETS = new Set(['secret', 'client_secret', 'password'])
const fieldsOf = new WeakMap<Route, readonly Field[]>()

/** The fields of an operation. Empty if it has no body. */
export function formOf(route: Route): readonly Field[] {
  const known = fieldsOf.get(route)
  if (known !== undefined) return known
  const { body } = route
  const fields = body?.kind === 'json' ? fieldsIn(schemaOf(body.schema)) : []
  fieldsOf.set(route, fields)
  return fields
}

function schemaOf(type: z.ZodType): Schema {
  return z.toJSONSchema(type, { io: 'input', unrepresentable: 'any' }) as Schema
}

function fieldsIn(root: Schema): readonly Field[] {
  const resolved = (schema: Schema): Schema => {
    const name = schema.$ref?.split('/').at(-1)
    return name === undefined ? schema : { ...root.$defs?.[name], ...schema, $ref: undefined }
  }
  const { members, required } = membersOf(resolved(root), resolved)
  return members.flatMap(([name, schema]) =>
    membersAt(name, resolved(schema), required.has(name), resolved),
  )
}

/** The members of an object, or of all alternatives. What one alternative lacks is not required. */
function membersOf(schema: Schema, resolved: (schema: Schema) => Schema) {
  const ways = (schema.anyOf ?? schema.oneOf ?? [schema]).map(resolved)
  const members = new Map<string, Schema>()
  // `not` is a member that this alternative excludes.
  for (const way of ways)
    for (const [name, member] of Object.entries(way.properties ?? {}))
      if (!members.has(name) && member.not === undefined) members.set(name, member)
  const required = [...members.keys()].filter((name) =>
    ways.every((way) => way.required?.includes(name)),
  )
  return { members: [...members], required: new Set(required) }
}

function membersAt(
  name: string,
  schema: Schema,
  required: boolean,
  resolved: (schema: Schema) => Schema,
): readonly Field[] {
  const some = (schema.anyOf ?? schema.oneOf ?? []).map(resolved)
  const nullable = some.some(({ type }) => type === 'null')
  const others = some.filter(({ type }) => type !== 'null')
  const one: Schema =
    others.length === 1 ? { ...others[0], ...described(schema.description) } : schema
  // An object with known members, such as branding, has a field for each of them.
  if (one.type === 'object' && one.properties !== undefined && !nullable && !name.includes('.'))
    return Object.entries(one.properties).flatMap(([member, of]) =>
      membersAt(`${name}.${member}`, resolved(of), false, resolved),
    )
  return [
    {
      name,
      kind: kindOf(name, one, resolved),
      required,
      nullable,
      options: (one.enum ?? []).map(String),
      longest: one.maxLength,
      least: one.minimum,
      most: one.maximum,
      description: one.description,
    },
  ]
}

const described = (description: string | undefined) =>
  description === undefined ? {} : { description }

function kindOf(name: string, schema: Schema, resolved: (schema: Schema) => Schema): FieldKind {
  if (schema.enum !== undefined) return 'choice'
  switch (schema.type) {
    case 'string':
      return SECRETS.has(name) ? 'secret' : 'text'
    case 'integer':
    case 'number':
      return 'number'
    case 'boolean':
      return 'boolean'
    case 'array':
      return schema.items !== undefined && resolved(schema.items).type === 'string'
        ? 'lines'
        : 'json'
    default:
      return 'json'
  }
}

/** The text of a value in its field. */
export function shownIn({ kind }: Pick<Field, 'kind'>, value: unknown): string {
  if (value === undefined || value === null) return ''
  if (kind === 'lines' && Array.isArray(value)) return value.join('\n')
  if (kind === 'json') return JSON.stringify(value, null, 2)
  return String(value)
}

type FormFault = { readonly field: string }

/** What was typed, by field. */
export function typedIn(
  fields: readonly Field[],
  sent: FormFields,
): Readonly<Record<string, string>> {
  const bySent = new Map(sent)
  return Object.fromEntries(fields.map(({ name }) => [name, bySent.get(name) ?? '']))
}

/**
 * The body that a sent form means.
 * @param before the object for a change of single members (PATCH): members that are as before are left out, and a
 *   cleared member is null where the API accepts it.
 * @returns the body, or the field whose JSON or number is malformed.
 */
export function bodyOf(
  fields: readonly Field[],
  typed: Readonly<Record<string, string>>,
  before: Item | null,
): { readonly body: Item } | FormFault {
  const body: Record<string, unknown> = {}
  const groups = new Map<string, { values: Record<string, unknown>; changed: boolean }>()
  for (const field of fields) {
    const [group = '', member] = field.name.split('.')
    const text = (typed[field.name] ?? '').replaceAll('\r\n', '\n')
    const meant = meantBy(field, text)
    if ('field' in meant) return meant
    const holder = member === undefined ? before : before?.[group]
    const old = isItem(holder) ? holder[member ?? group] : undefined
    const isSame = shownIn(field, old) === text.trim()
    if (member !== undefined) {
      const known = groups.get(group) ?? { values: {}, changed: false }
      if (meant.value !== undefined) known.values[member] = meant.value
      if (!isSame) known.changed = true
      groups.set(group, known)
    } else if (before !== null && isSame) continue
    else if (before !== null && meant.value === undefined) {
      const cleared = clearedOf(field)
      if (cleared !== undefined) body[field.name] = cleared
    } else if (meant.value !== undefined) body[field.name] = meant.value
  }
  for (const [group, { values, changed }] of groups)
    if (changed || (before === null && Object.keys(values).length > 0)) body[group] = values
  return { body }
}

/** What a cleared field means. Undefined: the member cannot be cleared. */
function clearedOf({ kind, nullable }: Field): unknown {
  if (nullable) return null
  if (kind === 'lines') return []
  return kind === 'text' ? '' : undefined
}

function meantBy(
  { name, kind, required }: Field,
  text: string,
): { readonly value: unknown } | FormFault {
  const trimmed = text.trim()
  if (kind === 'lines') {
    const lines = trimmed.split('\n').map((line) => line.trim())
    const values = lines.filter((line) => line !== '')
    return { value: values.length === 0 && !required ? undefined : values }
  }
  if (trimmed === '') return { value: required && kind === 'text' ? '' : undefined }
  if (kind === 'number') {
    const value = Number(trimmed)
    return Number.isFinite(value) ? { value } : { field: name }
  }
  if (kind === 'boolean') return { value: trimmed === 'true' }
  if (kind === 'json') {
    try {
      return { value: JSON.parse(trimmed) as unknown }
    } catch {
      return { field: name }
    }
  }
  // A secret may begin or end with a space.
  return { value: kind === 'secret' ? text : trimmed }
}

/** A body for the curl line before the form is sent: its required members with a word for the value. */
export function exampleOf(fields: readonly Field[]): Item {
  const shown = fields.filter(({ required }) => required)
  return Object.fromEntries(
    shown.map(({ name, kind, options }) => [
      name,
      kind === 'lines' ? [`<${name}>`] : (options[0] ?? `<${name}>`),
    ]),
  )
}

/** The body without its secrets, for the curl line. */
export function withoutSecrets(body: Item): Item {
  return Object.fromEntries(
    Object.entries(body).map(([name, value]) => [name, SECRETS.has(name) ? `<${name}>` : value]),
  )
}

/** The field of a JSON pointer such as `#/redirect_uris/0`, or null. */
export function fieldAt(fields: readonly Field[], pointer: string): string | null {
  const [first = '', second = ''] = pointer.replace(/^#?\//, '').split('/')
  const names = fields.map(({ name }) => name)
  return [`${first}.${second}`, first].find((name) => names.includes(name)) ?? null
}
