/** The form of an API operation, from the schema of its body: fields, limits, and the JSON that a sent form means. */
import { z } from 'zod'
import type { FormFields, Route } from '../../route.js'
import { isItem, type Item } from './declaration.js'
import { type Schema, schemaOf, variantsOf } from './schemas.js'

type FieldKind =
  | 'text'
  | 'secret'
  /** A secret of several lines, such as a private key. */
  | 'key'
  /** A text of several lines. */
  | 'texts'
  | 'number'
  | 'boolean'
  | 'choice'
  | 'time'
  /** One value per line. */
  | 'lines'
  /** Some of a few known values. */
  | 'choices'
  /** Objects of an array or a map. Each is a row of fields. */
  | 'rows'

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
  /** The fields of a row. The row of a map begins with `key`; a map of texts has `key` and `value`. */
  readonly columns: readonly Field[]
  readonly isMap: boolean
}

/** What was typed, by the name of its input. Several values of one name are lines. */
export type Typed = Readonly<Record<string, string>>

const SECRETS = new Set([
  'secret',
  'client_secret',
  'password',
  'refresh_token',
  'secret_access_key',
  'session_token',
])
/** Members of documents, where a name alone does not say what they are. */
const IN_DOCUMENTS: Readonly<Record<string, FieldKind>> = {
  'secret.key': 'secret',
  'secret.string': 'texts',
}
/** The members of a public key (RFC 7517 section 4), whose schema names none. */
const KEY_MEMBERS = ['kid', 'kty', 'crv', 'x', 'y', 'n', 'e', 'alg', 'use']
const KEY = 'key'
const VALUE = 'value'
/** Indexes of rows that a form may send. */
const ROWS_MAX = 200
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

/** The fields of a member with another schema: of each member of a document, or the one of a plain value. */
export function memberFields(type: z.ZodType, { name: member, required }: Field): readonly Field[] {
  const { root, resolved } = schemaOf(type)
  if (resolved(root).type !== 'object') return fieldsAt(member, resolved(root), required, resolved)
  return fieldsIn({ root, resolved }).map((field) => {
    const name = `${member}.${field.name}`
    return { ...field, name, kind: IN_DOCUMENTS[name] ?? field.kind }
  })
}

/** True for a field whose value is not shown again. */
export const isHidden = ({ kind }: Pick<Field, 'kind'>): boolean =>
  kind === 'secret' || kind === 'key'

/** The field of a member of the query of an operation. */
export function queryField(route: Route, member: string): Partial<Field> {
  if (route.query === undefined) return {}
  const { resolved, root } = schemaOf(route.query as z.ZodType)
  const schema = resolved(root).properties?.[member]
  return schema === undefined ? {} : (fieldsAt(member, resolved(schema), false, resolved)[0] ?? {})
}

type Schemas = ReturnType<typeof schemaOf>

function fieldsIn({ root, resolved }: Schemas): readonly Field[] {
  const { members, required } = membersOf(resolved(root), resolved)
  return members.flatMap(([name, schema]) =>
    fieldsAt(name, resolved(schema), required.has(name), resolved),
  )
}

/** The members of an object, or of all alternatives. What one alternative lacks is not required. */
function membersOf(schema: Schema, resolved: Schemas['resolved']) {
  const ways = variantsOf(schema, resolved)
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

function fieldsAt(
  name: string,
  schema: Schema,
  required: boolean,
  resolved: Schemas['resolved'],
): readonly Field[] {
  const some = schema.anyOf ?? schema.oneOf ?? []
  const nullable = some.some((one) => resolved(one).type === 'null')
  const others = some.map(resolved).filter(({ type }) => type !== 'null')
  const one: Schema =
    others.length === 1
      ? { ...others[0], ...(schema.description ? { description: schema.description } : {}) }
      : schema
  // An object with known members, such as branding, has a field for each of them.
  if (one.type === 'object' && one.properties !== undefined)
    return Object.entries(one.properties).flatMap(([member, of]) =>
      fieldsAt(`${name}.${member}`, resolved(of), false, resolved),
    )
  const { kind, columns = [], options = [] } = kindOf(name, one, resolved)
  return [
    {
      name,
      kind,
      required,
      nullable,
      options,
      longest: one.maxLength,
      least: one.minimum,
      most: one.maximum,
      description: one.description,
      columns,
      isMap: kind === 'rows' && one.type !== 'array',
    },
  ]
}

type Kind = { kind: FieldKind; columns?: readonly Field[]; options?: readonly string[] }

function kindOf(name: string, schema: Schema, resolved: Schemas['resolved']): Kind {
  if (schema.enum !== undefined) return { kind: 'choice', options: schema.enum.map(String) }
  if (schema.type === 'array') return listKind(schema, resolved)
  switch (schema.type) {
    case 'integer':
    case 'number':
      return { kind: 'number' }
    case 'boolean':
      return { kind: 'boolean' }
    case 'object':
      return mapKind(schema, resolved)
    default:
      if (SECRETS.has(name)) return { kind: 'secret' }
      if (name === 'private_key') return { kind: 'key' }
      return { kind: schema.format === 'date-time' ? 'time' : 'text' }
  }
}

function listKind(schema: Schema, resolved: Schemas['resolved']): Kind {
  const items = resolved(schema.items ?? {})
  if (items.enum !== undefined) return { kind: 'choices', options: items.enum.map(String) }
  if (items.type !== 'object') return { kind: 'lines' }
  const of = items.properties === undefined ? objectOf(KEY_MEMBERS) : items
  return { kind: 'rows', columns: columnsOf(of, resolved) }
}

function mapKind(schema: Schema, resolved: Schemas['resolved']): Kind {
  const { propertyNames = {}, additionalProperties = {} } = schema
  const value = resolved(additionalProperties)
  const [key] = columnsOf({ ...objectOf([KEY]), properties: { [KEY]: propertyNames } }, resolved)
  const of = value.properties === undefined ? objectOf([VALUE]) : value
  return { kind: 'rows', columns: [key!, ...columnsOf(of, resolved)] }
}

const objectOf = (names: readonly string[]): Schema => ({
  type: 'object',
  properties: Object.fromEntries(names.map((name) => [name, { type: 'string' }])),
})

/** The fields of a row. Rows have no rows. */
const columnsOf = (schema: Schema, resolved: Schemas['resolved']) =>
  fieldsIn({ root: schema, resolved }).filter(({ kind }) => kind !== 'rows')

/** The inputs of a value with their texts. */
export function inputsOf(field: Field, value: unknown): Typed {
  const { name, kind, columns, isMap } = field
  if (kind !== 'rows') return { [name]: shownIn(field, value) }
  const rows = Array.isArray(value) ? value : isItem(value) ? Object.entries(value) : []
  return Object.fromEntries(
    rows.flatMap((row: unknown, index) => {
      const [key, of] = (isMap ? row : ['', row]) as [string, unknown]
      return columns.flatMap((column, at) => {
        const member = isItem(of) ? memberAt(of, column.name) : of
        const text = isMap && at === 0 ? key : shownIn(column, member)
        return text === '' ? [] : [[`${name}.${index}.${column.name}`, text]]
      })
    }),
  )
}

/** The text of a value in its field. */
export function shownIn({ kind }: Pick<Field, 'kind'>, value: unknown): string {
  if (value === undefined || value === null) return ''
  if (kind === 'lines' || kind === 'choices') return Array.isArray(value) ? value.join('\n') : ''
  if (kind === 'time') return String(value).replace(/(?::00)?(?:\.000)?Z$/, '')
  return typeof value === 'object' ? '' : String(value)
}

/** How many rows of a field were typed. */
export function rowsTyped({ name }: Field, typed: Typed): number {
  const indexes = Object.keys(typed)
    .filter((key) => key.startsWith(`${name}.`))
    .map((key) => Number(key.slice(name.length + 1).split('.')[0]))
    .filter((index) => index >= 0 && index < ROWS_MAX)
  return Math.max(0, ...indexes.map((index) => index + 1))
}

type FormFault = { readonly field: string }

/** What was typed, by input. */
export function typedIn(fields: readonly Field[], sent: FormFields): Typed {
  const typed: Record<string, string> = Object.fromEntries(fields.map(({ name }) => [name, '']))
  for (const [name, text] of sent) {
    if (!fields.some((field) => name === field.name || name.startsWith(`${field.name}.`))) continue
    const before = typed[name]
    typed[name] = before === undefined || before === '' ? text : `${before}\n${text}`
  }
  return typed
}

/**
 * The body that a sent form means.
 * @param old the object before the change. Members that no field shows stay as they are.
 * @param partial for a change of single members (PATCH): members that are as before are left out, and a cleared member
 *   is null where the API accepts it.
 * @returns the body, or the input whose text is malformed.
 */
export function bodyOf(
  fields: readonly Field[],
  typed: Typed,
  old: Item | null,
  partial: boolean,
): { readonly body: Item } | FormFault {
  const body: Record<string, unknown> = {}
  const groups = new Map<string, { values: Record<string, unknown>; changed: boolean }>()
  for (const field of fields) {
    const [group = '', ...below] = field.name.split('.')
    const before = memberAt(old ?? {}, field.name)
    const meant = meantBy(field, typed, before)
    if ('field' in meant) return meant
    const isSame = sameInputs(field, typed, before)
    if (below.length > 0) {
      const known = groups.get(group) ?? { values: {}, changed: false }
      if (meant.value !== undefined) put(known.values, below, meant.value)
      if (!isSame) known.changed = true
      groups.set(group, known)
    } else if (partial && isSame) continue
    else if (partial && meant.value === undefined) {
      const cleared = clearedOf(field)
      if (cleared !== undefined) body[field.name] = cleared
    } else if (meant.value !== undefined) body[field.name] = meant.value
  }
  for (const [group, { values, changed }] of groups) {
    const isEmpty = Object.keys(values).length === 0
    if (partial ? changed : !isEmpty) body[group] = isEmpty && old?.[group] === null ? null : values
  }
  return { body }
}

function put(values: Record<string, unknown>, path: readonly string[], value: unknown): void {
  const [name = '', ...below] = path
  if (below.length === 0) values[name] = value
  else put((values[name] ??= {}) as Record<string, unknown>, below, value)
}

const memberAt = (item: Item, path: string): unknown =>
  path.split('.').reduce<unknown>((at, name) => (isItem(at) ? at[name] : undefined), item)

function sameInputs(field: Field, typed: Typed, before: unknown): boolean {
  const shown = inputsOf(field, before)
  if (field.kind !== 'rows') return shown[field.name] === (typed[field.name] ?? '').trim()
  const sent = Object.entries(typed).filter(
    ([name, text]) => name.startsWith(`${field.name}.`) && text.trim() !== '',
  )
  return (
    sent.length === Object.keys(shown).length &&
    sent.every(([name, text]) => shown[name] === text.trim())
  )
}

/** What a cleared field means. Undefined: the member cannot be cleared. */
function clearedOf({ kind, nullable, isMap }: Field): unknown {
  if (nullable) return null
  if (kind === 'rows') return isMap ? {} : []
  if (kind === 'lines' || kind === 'choices') return []
  return kind === 'text' ? '' : undefined
}

type Meant = { readonly value: unknown } | FormFault

function meantBy(field: Field, typed: Typed, before: unknown): Meant {
  if (field.kind === 'rows') return rowsMeant(field, typed, before)
  return meantByText(field, field.name, typed[field.name] ?? '', before)
}

function rowsMeant(field: Field, typed: Typed, before: unknown): Meant {
  const { name, columns, isMap, required } = field
  const list: unknown[] = []
  const map: [string, unknown][] = []
  for (let index = 0; index < rowsTyped(field, typed); index += 1) {
    const input = (column: Field) => `${name}.${index}.${column.name}`
    if (columns.every((column) => (typed[input(column)] ?? '').trim() === '')) continue
    const key = (typed[input(columns[0]!)] ?? '').trim()
    if (isMap && key === '') return { field: input(columns[0]!) }
    const old = Array.isArray(before) ? before[index] : isItem(before) ? before[key] : undefined
    const row: Record<string, unknown> = isItem(old) ? { ...old } : {}
    for (const column of isMap ? columns.slice(1) : columns) {
      const member = column.name === VALUE && isMap ? old : isItem(old) ? old[column.name] : old
      const meant = meantByText(column, input(column), typed[input(column)] ?? '', member)
      if ('field' in meant) return meant
      if (meant.value === undefined) delete row[column.name]
      else put(row, column.name.split('.'), meant.value)
    }
    const isValue = isMap && columns[1]?.name === VALUE
    list.push(row)
    map.push([key, isValue ? keptType(typed[input(columns[1]!)] ?? '', old) : row])
  }
  if (list.length === 0 && !required) return { value: undefined }
  return { value: isMap ? Object.fromEntries(map) : list }
}

/** The text, or the value that is shown as this text. What no field shows stays. */
function keptType(text: string, old: unknown): unknown {
  const isHidden = typeof old === 'object' && old !== null && text.trim() === ''
  return isHidden || (old !== undefined && String(old) === text.trim()) ? old : text.trim()
}

function meantByText(
  { kind, required }: Field,
  input: string,
  sent: string,
  before: unknown,
): Meant {
  const text = sent.replaceAll('\r\n', '\n')
  const trimmed = text.trim()
  if (kind === 'lines' || kind === 'choices') {
    const values = trimmed.split('\n').map((line) => line.trim())
    const some = values.filter((line) => line !== '')
    return { value: some.length === 0 && !required ? undefined : some }
  }
  if (trimmed === '') return { value: required && kind === 'text' ? '' : undefined }
  if (kind === 'number') {
    const value = Number(trimmed)
    return Number.isFinite(value) ? { value } : { field: input }
  }
  if (kind === 'boolean') return { value: trimmed === 'true' }
  if (kind === 'time')
    return { value: shownIn({ kind }, before) === trimmed ? before : asTime(trimmed) }
  // A secret may begin or end with a space, and what is signed with a line break.
  return { value: kind === 'secret' || kind === 'texts' ? text : trimmed }
}

/** A time as browsers send it is in UTC. Other text stays as it is. */
export function asTime(text: string): string {
  if (!/^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}/.test(text) || /Z$|[+-]\d{2}:\d{2}$/.test(text)) return text
  return `${text.length === 16 ? `${text}:00` : text}Z`
}

/** A body for the curl line before the form is sent: its required members with a word for the value. */
export function exampleOf(fields: readonly Field[]): Item {
  const body: Record<string, unknown> = {}
  for (const { name, kind, options, columns, isMap } of fields.filter(({ required }) => required)) {
    const path = name.split('.')
    const word = options[0] ?? `<${path.at(-1)}>`
    const isList = kind === 'lines' || kind === 'choices'
    const rows = isMap ? {} : [exampleOf(columns)]
    put(body, path, isList ? [word] : kind === 'rows' ? rows : word)
  }
  return body
}

/** The body without its secrets, for the curl line. */
export function withoutSecrets(body: Item): Item {
  return Object.fromEntries(
    Object.entries(body).map(([name, value]) => [name, SECRETS.has(name) ? `<${name}>` : value]),
  )
}

/** The input of a JSON pointer such as `#/redirect_uris/0`, or null. */
export function fieldAt(fields: readonly Field[], pointer: string): string | null {
  const parts = pointer.replace(/^#?\//, '').split('/')
  const path = parts.join('.')
  const field = fields
    .filter(({ name }) => path === name || path.startsWith(`${name}.`))
    .toSorted((a, b) => b.name.length - a.name.length)[0]
  if (field === undefined) return null
  const [, column] = path.slice(field.name.length + 1).split('.')
  const isInput = !field.isMap && field.columns.some(({ name }) => name === column)
  return isInput ? path : field.name
}
