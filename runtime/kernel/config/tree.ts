/** The schema as a tree of tables, lists of tables and leaves: what all readers and printers walk. */
import { z } from 'zod'
import type { AnySection, Assembly } from './assemble.js'
import { notes } from './kinds.js'

/** How the text of an environment variable is read. */
export type Wanted = 'string' | 'strings' | 'numbers' | 'literal'

export interface Leaf {
  readonly kind: 'leaf'
  readonly schema: z.ZodType
  readonly wants: Wanted
  readonly about: string
  /** What a valid value is, as it follows "must be". */
  readonly words: string
  readonly secret: boolean
  /** Undefined where there is none. */
  readonly defaultValue: unknown
  readonly example: unknown
  /** True when the key must be given or taken from a fallback. */
  readonly required: boolean
}

export interface Table {
  readonly kind: 'table'
  readonly about: string
  /** A `when_set` table is undefined until one of its keys is given. */
  readonly whenSet: boolean
  readonly children: ReadonlyMap<string, Node>
}

export interface List {
  readonly kind: 'list'
  readonly about: string
  readonly item: Table
}

export type Node = Leaf | Table | List

/** The whole configuration; its children are the sections. */
export function treeOf(assembly: Assembly): Table {
  const children = new Map(assembly.sections.map((one) => [one.name, sectionNode(one)] as const))
  return { kind: 'table', about: '', whenSet: false, children }
}

/** Every leaf below a node with its path; elements of lists are the segment `*`. */
export function* leaves(
  node: Node,
  path: readonly string[] = [],
): Generator<{ path: readonly string[]; leaf: Leaf }> {
  if (node.kind === 'leaf') yield { path, leaf: node }
  else if (node.kind === 'list') yield* leaves(node.item, [...path, '*'])
  else for (const [key, child] of node.children) yield* leaves(child, [...path, key])
}

function sectionNode(section: AnySection): Node {
  const { about, shape, presence } = section
  const table = tableNode(shape, about, presence === 'when_set')
  return presence === 'list' ? { kind: 'list', about, item: table } : table
}

function tableNode(shape: Readonly<Record<string, z.ZodType>>, about: string, whenSet: boolean) {
  const children = new Map(Object.entries(shape).map(([key, schema]) => [key, nodeOf(schema)]))
  return { kind: 'table', about, whenSet, children } as const
}

function nodeOf(schema: z.ZodType): Node {
  const { core, layers } = unwrap(schema)
  const about = layers.map((layer) => layer.description).find((text) => text !== undefined) ?? ''
  if (core instanceof z.ZodObject) return tableNode(core.shape, about, layers.length > 1)
  const note = Object.assign({}, ...layers.map((layer) => notes.get(layer) ?? {}).reverse())
  const absent = schema.safeParse(undefined)
  return {
    kind: 'leaf',
    schema,
    wants: wanted(core),
    about,
    words: note.words ?? words(z.toJSONSchema(core)),
    secret: note.secret === true,
    defaultValue: absent.success ? absent.data : undefined,
    example: note.example,
    required: !absent.success,
  }
}

/** The schema without `optional` and `default`, and all layers from the outermost in. */
function unwrap(schema: z.ZodType): { core: z.ZodType; layers: z.ZodType[] } {
  const layers = [schema]
  let core = schema
  while (core instanceof z.ZodOptional || core instanceof z.ZodDefault) {
    core = core.unwrap() as z.ZodType
    layers.push(core)
  }
  return { core, layers }
}

function wanted(core: z.ZodType): Wanted {
  if (core instanceof z.ZodString || core instanceof z.ZodEnum) return 'string'
  if (core instanceof z.ZodArray) {
    return unwrap(core.element as z.ZodType).core instanceof z.ZodString ? 'strings' : 'numbers'
  }
  return 'literal'
}

type JsonSchema = z.core.JSONSchema.BaseSchema

/** Words for a schema that has no note: its type and range. */
function words(schema: JsonSchema): string {
  if (schema.enum) return `one of ${schema.enum.map((value) => JSON.stringify(value)).join(', ')}`
  if (schema.type === 'boolean') return 'true or false'
  if (schema.type === 'integer') return integerWords(schema)
  if (schema.type === 'array') return listWords(schema)
  const { minLength = 0, maxLength } = schema
  if (maxLength !== undefined) return `a string of ${minLength} to ${maxLength} characters`
  return minLength > 0 ? 'a string that is not empty' : 'a string'
}

function integerWords({ minimum, maximum }: JsonSchema): string {
  return `an integer from ${minimum} to ${maximum}`
}

function listWords({ items, minItems }: JsonSchema): string {
  const least = minItems === undefined ? '' : ', not empty'
  const item = items as JsonSchema
  if (item.type === 'integer')
    return `a list of integers from ${item.minimum} to ${item.maximum}${least}`
  return `a list of strings${least}`
}
