/** The schema as a tree of tables, lists of tables and leaves. All readers and printers use it. */
import { z } from 'zod'
import { type AnySection, type Assembly, fallbackSource } from './assemble.js'
import { type Note, notes } from './kinds.js'

/** How the text of an environment variable is read. */
export type Wanted = 'string' | 'strings' | 'numbers' | 'literal'

export interface Leaf {
  readonly kind: 'leaf'
  readonly schema: z.ZodType
  readonly wants: Wanted
  readonly about: string
  /** What a valid value is, as a continuation of "must be". */
  readonly words: string
  readonly secret: boolean
  /** True for the path of a file that the service reads. */
  readonly isRead: boolean
  /** Undefined when there is no default. */
  readonly defaultValue: unknown
  readonly example: unknown
  /** True when the key must be given or taken from a fallback. */
  readonly required: boolean
  /** Where the value comes from when it is not given. Undefined when there is no fallback. */
  readonly fallback: string | undefined
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

/** An assembly never changes, and a process reads its tree several times. */
const trees = new WeakMap<Assembly, Table>()

/** The whole configuration; its children are the sections. */
export function treeOf(assembly: Assembly): Table {
  let tree = trees.get(assembly)
  if (tree === undefined) {
    tree = builtTree(assembly)
    trees.set(assembly, tree)
  }
  return tree
}

function builtTree({ sections, fallbacks }: Assembly): Table {
  const from = new Map(fallbacks.map((one) => [one.key, fallbackSource(one)] as const))
  const children = new Map(sections.map((one) => [one.name, sectionNode(one, from)] as const))
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

type Fallbacks = ReadonlyMap<string, string>

function sectionNode({ name, about, shape, presence }: AnySection, fallbacks: Fallbacks): Node {
  const table = tableNode(shape, about, presence === 'when_set', name, fallbacks)
  return presence === 'list' ? { kind: 'list', about, item: table } : table
}

function tableNode(
  shape: Readonly<Record<string, z.ZodType>>,
  about: string,
  whenSet: boolean,
  name: string,
  fallbacks: Fallbacks,
): Table {
  const nodes = Object.entries(shape).map(
    ([key, schema]) => [key, nodeOf(schema, `${name}.${key}`, fallbacks)] as const,
  )
  return { kind: 'table', about, whenSet, children: new Map(nodes) }
}

function nodeOf(schema: z.ZodType, name: string, fallbacks: Fallbacks): Node {
  const { core, layers } = unwrap(schema)
  const about = layers.map((layer) => layer.description).find((text) => text !== undefined) ?? ''
  if (core instanceof z.ZodObject) {
    return tableNode(core.shape, about, layers.length > 1, name, fallbacks)
  }
  const note = noteOf(layers)
  const absent = schema.safeParse(undefined)
  return {
    kind: 'leaf',
    schema,
    wants: wanted(core),
    about,
    // Only documents and failures need them, and they cost more than the rest of the tree.
    get words() {
      return note.words ?? words(core)
    },
    secret: note.secret === true,
    isRead: note.isRead === true,
    defaultValue: absent.success ? absent.data : undefined,
    example: note.example,
    required: !absent.success,
    fallback: fallbacks.get(name),
  }
}

/** The outer note has precedence over the inner one. */
function noteOf(layers: readonly z.ZodType[]): Note {
  return layers.reduce<Note>((outer, layer) => ({ ...notes.get(layer), ...outer }), {})
}

/** The schema without `optional` and `default`, and all its layers from the outermost inwards. */
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

/** A description for a schema without a note: its type and range. */
function words(core: z.ZodType): string {
  if (core instanceof z.ZodArray) return listWords(core)
  const schema = z.toJSONSchema(core)
  if (schema.enum) return `one of ${schema.enum.map((value) => JSON.stringify(value)).join(', ')}`
  if (schema.type === 'boolean') return 'true or false'
  if (schema.type === 'integer') return `an integer from ${schema.minimum} to ${schema.maximum}`
  const { minLength = 0, maxLength } = schema
  if (maxLength !== undefined) return `a string of ${minLength} to ${maxLength} characters`
  return minLength > 0 ? 'a string that is not empty' : 'a string'
}

function listWords(core: z.ZodArray): string {
  const item = unwrap(core.element as z.ZodType)
  const each = noteOf(item.layers).words ?? words(item.core)
  const { minItems, maxItems } = z.toJSONSchema(core)
  const length = minItems === undefined ? '' : ` of ${minItems} to ${maxItems} items`
  return `a list${length}, each ${each}`
}
