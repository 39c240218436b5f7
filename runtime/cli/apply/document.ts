/** The file of `svc apply`: read, checked against the schemas of the API, with the line of every fault. */
import { readFileSync } from 'node:fs'
import { extname } from 'node:path'
import { parse as parseToml } from 'smol-toml'
import type { z } from 'zod'
import type { Environment } from '../../kernel/config/environment.js'
import { nearest } from '../../kernel/config/layers.js'
import { lineOf, type TomlLines, tomlLines } from '../../kernel/config/toml-lines.js'
import { type Kind, KINDS, type Members } from './kinds.js'

const FILE_BYTES_MAX = 4 * 1024 * 1024
const RESOURCES_MAX = 10_000

/** A resource of the file. */
export type Wanted = {
  readonly kind: Kind
  /** The value of the key. Empty for a kind with one resource. */
  readonly name: string
  /** The members that the file names, with the defaults of inner objects. */
  readonly members: Members
  readonly secret: string | undefined
  /** Where it is in the file. */
  readonly path: readonly string[]
}

export type Document = {
  readonly resources: readonly Wanted[]
  /** The kinds that the file has, also with an empty list. */
  readonly kinds: readonly Kind[]
  readonly place: (path: readonly string[]) => string
}

/** All faults of a file, one a line. */
export class InvalidFile extends Error {
  readonly faults: readonly string[]
  constructor(faults: readonly string[]) {
    super(faults.join('\n'))
    this.faults = faults
  }
}

/**
 * @param file a path ending in .toml or .json, or - for standard input.
 * @throws InvalidFile with every fault.
 */
export function readDocument(file: string, environment: Environment): Document {
  const text = readFileSync(file === '-' ? 0 : file, 'utf8')
  if (Buffer.byteLength(text) > FILE_BYTES_MAX)
    throw new InvalidFile([`${file} has more than ${FILE_BYTES_MAX} bytes`])
  return documentOf(file, text, environment)
}

/** As `readDocument`, from the text. @throws InvalidFile with every fault. */
export function documentOf(file: string, text: string, environment: Environment): Document {
  const { value, lines } = parsed(file, text)
  const place = (path: readonly string[]) => {
    const words = path.reduce(
      (before, part) =>
        /^\d+$/.test(part) ? `${before}[${part}]` : `${before}${before && '.'}${part}`,
      '',
    )
    return lines === undefined ? words : `line ${lineOf(lines, path)}: ${words}`
  }
  const faults: string[] = []
  const resources: Wanted[] = []
  const kinds: Kind[] = []
  for (const [section, content] of Object.entries(value)) {
    const kind = KINDS.find((each) => each.section === section)
    if (kind === undefined) {
      faults.push(
        unknown(
          place([section]),
          section,
          KINDS.map((each) => each.section),
        ),
      )
      continue
    }
    kinds.push(kind)
    const isList = kind.key !== null
    if (Array.isArray(content) !== isList) {
      faults.push(`${place([section])}: must be ${isList ? `a list, [[${section}]]` : 'a table'}`)
      continue
    }
    const entries = (isList ? content : [content]) as readonly unknown[]
    for (const [index, entry] of entries.entries()) {
      const path = isList ? [section, String(index)] : [section]
      const found = wantedOf(kind, entry, path, place, environment)
      if (Array.isArray(found)) faults.push(...found)
      else resources.push(found as Wanted)
    }
  }
  if (resources.length > RESOURCES_MAX) faults.push(`more than ${RESOURCES_MAX} resources`)
  const seen = new Map<string, Wanted>()
  for (const each of resources) {
    const key = JSON.stringify([each.kind.section, each.name])
    const first = seen.get(key)
    if (first === undefined) seen.set(key, each)
    else
      faults.push(
        `${place(each.path)}: ${each.kind.key} ${JSON.stringify(each.name)} is also at ${place(first.path)}`,
      )
  }
  if (faults.length > 0) throw new InvalidFile(faults)
  return { resources, kinds, place }
}

function parsed(
  file: string,
  text: string,
): { readonly value: Members; readonly lines: TomlLines | undefined } {
  const isJson = extname(file) === '.json' || (file === '-' && text.trimStart().startsWith('{'))
  if (!isJson && file !== '-' && extname(file) !== '.toml')
    throw new InvalidFile([`${file}: the name must end in .toml or .json`])
  let value: unknown
  try {
    value = isJson ? (JSON.parse(text) as unknown) : parseToml(text)
  } catch (error) {
    const [reason] = (error as Error).message.split('\n')
    const { line } = error as { line?: number }
    throw new InvalidFile([`${line === undefined ? file : `line ${line}`}: ${reason}`])
  }
  if (!isTable(value)) throw new InvalidFile([`${file}: must be an object`])
  return { value, lines: isJson ? undefined : tomlLines(text) }
}

/** The resource of an entry, or its faults. */
function wantedOf(
  kind: Kind,
  entry: unknown,
  path: readonly string[],
  place: Document['place'],
  environment: Environment,
): Wanted | readonly string[] {
  if (!isTable(entry)) return [`${place(path)}: must be a table`]
  const faults: string[] = unknownKeys(kind.schema, entry, path, place)
  let members: Members = entry
  let secret: string | undefined
  if (kind.secret !== undefined && Object.hasOwn(entry, kind.secret)) {
    try {
      secret = secretOf(entry[kind.secret], environment)
      members = { ...entry, [kind.secret]: secret }
    } catch (error) {
      return [`${place([...path, kind.secret])}: ${(error as Error).message}`]
    }
  }
  const result = kind.schema.safeParse(withReferences(members))
  if (!result.success) {
    // The schemas of secrets say nothing about their values.
    for (const { path: inner, message } of result.error.issues)
      faults.push(`${place([...path, ...inner.map(String)])}: ${message}`)
  }
  if (faults.length > 0 || !result.success) return faults
  const stated = Object.keys(entry).filter((member) => member !== kind.secret)
  return {
    kind,
    name: kind.key === null ? '' : String(result.data[kind.key]),
    members: Object.fromEntries(stated.map((member) => [member, result.data[member]])),
    secret,
    path,
  }
}

/** Stands for the client_id of an application of the file, until it exists. */
export const REFERENCE = 'application:'

/** `{ application = "Shop" }` in `client_ids` names an application of the file or of the tenant. */
function withReferences(members: Members): Members {
  const ids = members['client_ids']
  if (!Array.isArray(ids)) return members
  return {
    ...members,
    client_ids: ids.map((id: unknown) =>
      isTable(id) && Object.keys(id).join() === 'application'
        ? `${REFERENCE}${String(id['application'])}`
        : id,
    ),
  }
}

/** Secrets are never in the file, which belongs into version control. @throws without a value. */
function secretOf(value: unknown, environment: Environment): string {
  if (isTable(value) && Object.keys(value).length === 1) {
    const { env, file } = value
    if (typeof env === 'string') {
      const found = environment[env]
      if (found === undefined || found === '') throw new Error(`the variable ${env} is not set`)
      return found
    }
    if (typeof file === 'string') return readFileSync(file, 'utf8').replace(/\r?\n$/, '')
  }
  throw new Error('must be { env = "NAME" } or { file = "PATH" }, never the secret itself')
}

function unknownKeys(
  schema: z.ZodType,
  value: unknown,
  path: readonly string[],
  place: Document['place'],
): string[] {
  const { def } = inner(schema)
  if (def.type === 'array' && Array.isArray(value)) {
    const { element } = def as z.core.$ZodArrayDef<z.ZodType>
    return value.flatMap((item, index) =>
      unknownKeys(element, item, [...path, String(index)], place),
    )
  }
  if (!isTable(value)) return []
  if (def.type === 'record') {
    const { valueType } = def as z.core.$ZodRecordDef<z.core.$ZodRecordKey, z.ZodType>
    return Object.entries(value).flatMap(([key, item]) =>
      unknownKeys(valueType, item, [...path, key], place),
    )
  }
  if (def.type !== 'object') return []
  const { shape } = def as z.core.$ZodObjectDef<Record<string, z.ZodType>>
  return Object.entries(value).flatMap(([key, item]) => {
    const member = Object.hasOwn(shape, key) ? shape[key] : undefined
    if (member === undefined) return [unknown(place([...path, key]), key, Object.keys(shape))]
    return unknownKeys(member, item, [...path, key], place)
  })
}

/** A schema without its wrappers: default, optional, nullable. */
function inner(schema: z.ZodType): z.ZodType {
  const def = schema.def as { type: string; innerType?: z.ZodType; in?: z.ZodType }
  if (def.innerType !== undefined) return inner(def.innerType)
  return def.type === 'pipe' && def.in !== undefined ? inner(def.in) : schema
}

function unknown(where: string, name: string, known: readonly string[]): string {
  const close = nearest(name, known)
  const help = close === undefined ? `Known: ${known.join(', ')}` : `Did you mean ${close}?`
  return `${where}: unknown member. ${help}`
}

function isTable(value: unknown): value is Members {
  return (
    typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof Date)
  )
}
