/** The layers above the defaults: a TOML file, then the environment, with the source of each value. */
import { parse, TomlError } from 'smol-toml'
import {
  environmentName,
  environmentPath,
  environmentValue,
  type Environment,
} from './environment.js'
import type { Failure, Source } from './outcome.js'
import { printed } from './print.js'
import { lineOf, pathKey, tomlLines } from './toml-lines.js'
import { leaves, type Leaf, type Node, type Table } from './tree.js'
import { distance } from 'fastest-levenshtein'

/** The raw value that a layer has for one leaf. Later layers replace earlier ones. */
export interface Given {
  readonly path: readonly string[]
  readonly value: unknown
  readonly source: Source
}

/** `pathKey` of a leaf -> its raw value. */
export type GivenValues = Map<string, Given>

/** Names in the environment that are not `PREFIX_SECTION__KEY`. */
export interface EnvironmentNames {
  readonly prefix: string
  /** Read by other code: not a key. */
  readonly reserved: readonly string[]
  /** Name -> dotted key. A shortcut has precedence over the prefixed name of the same key. */
  readonly shortcuts: Readonly<Record<string, string>>
  /**
   * Former dotted key -> where its content is configured now. Former keys are refused in every
   * layer.
   */
  readonly moved: Readonly<Record<string, string>>
}

interface Layering {
  readonly tree: Table
  readonly names: EnvironmentNames
  readonly given: GivenValues
  readonly failures: Failure[]
}

/** Deeper than any setting: bounds the recursion on hostile input. */
const TOML_DEPTH_MAX = 32

/** The number of a list element in the environment, at most 99. */
const LIST_INDEX = /^[0-9]{1,2}$/

/** Takes the values of a TOML document. Messages use `path` as the name of the file. */
export function takeFile(layering: Layering, path: string, text: string): void {
  let document: Record<string, unknown>
  try {
    document = parse(text, { maxDepth: TOML_DEPTH_MAX })
  } catch (error) {
    layering.failures.push(notToml(path, error))
    return
  }
  const lines = tomlLines(text)
  const source = (at: readonly string[]) =>
    ({ kind: 'file', path, line: lineOf(lines, at) }) as const
  takeTable(layering, layering.tree, [], document, source)
}

/** Takes the values of the environment: prefixed names, then shortcuts. */
export function takeEnvironment(layering: Layering, environment: Environment): void {
  const { prefix, reserved, shortcuts } = layering.names
  // Sorted, so that SVC_CHAINS precedes SVC_CHAINS__0__ID, and failures have a stable order.
  for (const name of Object.keys(environment).sort()) {
    const text = environment[name]
    if (text === undefined || !name.startsWith(prefix) || reserved.includes(name)) continue
    takeVariable(layering, name, text)
  }
  for (const [name, key] of Object.entries(shortcuts)) {
    const text = environment[name]
    if (text === undefined) continue
    const path = key.split('.')
    layering.given.set(pathKey(path), { path, value: text, source: { kind: 'environment', name } })
  }
}

function takeVariable(layering: Layering, name: string, text: string): void {
  const path = environmentPath(layering.names.prefix, name)
  const found = path && descend(layering.tree, path)
  const source = { kind: 'environment', name } as const
  if (path === undefined || found === undefined) {
    layering.failures.push(unknownVariable(layering, name, path))
    return
  }
  const value = environmentValue(text, found.kind === 'leaf' ? found.wants : 'literal')
  takeNode(layering, found, path, value, () => source)
}

/** The node that a path of the environment names. List elements are named by their number. */
function descend(tree: Table, path: readonly string[]): Node | undefined {
  let node: Node = tree
  for (const segment of path) {
    if (node.kind === 'leaf') return undefined
    if (node.kind === 'list') {
      if (!LIST_INDEX.test(segment)) return undefined
      node = node.item
      continue
    }
    const child = node.children.get(segment)
    if (child === undefined) return undefined
    node = child
  }
  return node
}

type SourceAt = (path: readonly string[]) => Source

function takeNode(
  layering: Layering,
  node: Node,
  path: readonly string[],
  value: unknown,
  source: SourceAt,
): void {
  if (node.kind === 'leaf') {
    layering.given.set(pathKey(path), { path, value, source: source(path) })
  } else if (node.kind === 'table') {
    if (isTable(value)) takeTable(layering, node, path, value, source)
    // What can be turned on and off may be written as its switch.
    else if (typeof value === 'boolean' && node.children.get('enabled')?.kind === 'leaf')
      takeTable(layering, node, path, { enabled: value }, source)
    else layering.failures.push(wrongShape(path, 'a table', source))
  } else if (Array.isArray(value) && value.every(isTable)) {
    forgetBelow(layering.given, path)
    for (const [index, item] of value.entries()) {
      takeTable(layering, node.item, [...path, String(index)], item, source)
    }
  } else layering.failures.push(wrongShape(path, 'an array of tables', source))
}

function takeTable(
  layering: Layering,
  table: Table,
  path: readonly string[],
  values: Readonly<Record<string, unknown>>,
  source: SourceAt,
): void {
  for (const [key, value] of Object.entries(values)) {
    const child = table.children.get(key)
    const at = [...path, key]
    if (child === undefined) layering.failures.push(unknownKey(layering, at, source(at)))
    else takeNode(layering, child, at, value, source)
  }
}

/** A list that is given again replaces the earlier one as a whole. */
function forgetBelow(given: GivenValues, path: readonly string[]): void {
  for (const [key, one] of given) {
    if (path.every((segment, index) => one.path[index] === segment)) given.delete(key)
  }
}

function isTable(value: unknown): value is Record<string, unknown> {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false
  const prototype: unknown = Object.getPrototypeOf(value)
  return prototype === Object.prototype || prototype === null
}

function unknownKey(layering: Layering, path: readonly string[], source: Source): Failure {
  const key = path.join('.')
  const moved = movedTo(layering.names, key)
  if (moved !== undefined) return { key, source, rule: 'is no longer a setting', fix: moved }
  const known = [...knownKeys(layering.tree)]
  const elsewhere = known.find((name) => name.endsWith(`.${path.at(-1)}`))
  const sections = path.length === 1 ? layering.tree.children.keys() : []
  const close = nearest(key, sections) ?? nearest(key, known) ?? elsewhere
  return { key, source, rule: 'is not a setting', fix: advice(close) }
}

function unknownVariable(
  layering: Layering,
  name: string,
  path: readonly string[] | undefined,
): Failure {
  const { names, tree } = layering
  const source = { kind: 'environment', name } as const
  const moved = path && movedTo(names, path.join('.'))
  if (moved !== undefined) return { key: name, source, rule: 'is no longer read', fix: moved }
  const known = [...leaves(tree)].map(({ path }) => environmentName(names.prefix, path))
  const close = nearest(name.toUpperCase(), [...known, ...names.reserved])
  return { key: name, source, rule: 'does not name a setting', fix: advice(close) }
}

function movedTo(names: EnvironmentNames, key: string): string | undefined {
  return Object.hasOwn(names.moved, key) ? names.moved[key] : undefined
}

function advice(close: string | undefined): string {
  const list = '`svc config example` lists what there is'
  return close === undefined ? `remove it; ${list}` : `did you mean ${close}? ${list}`
}

function* knownKeys(tree: Table): Generator<string> {
  for (const { path } of leaves(tree)) yield path.join('.')
}

function wrongShape(path: readonly string[], shape: string, source: SourceAt): Failure {
  return {
    key: path.join('.'),
    source: source(path),
    rule: `must be ${shape}`,
    fix: `give ${path.join('.')} as ${shape}`,
  }
}

/** The parser's message quotes the document after its first line. That part may contain secrets. */
function notToml(path: string, error: unknown): Failure {
  if (!(error instanceof TomlError)) {
    const source = { kind: 'file', path, line: 1 } as const
    return { key: path, source, rule: 'cannot be read as TOML', fix: 'correct the file' }
  }
  const [message = ''] = error.message.split('\n')
  return {
    key: path,
    source: { kind: 'file', path, line: error.line },
    rule: `is not TOML: ${message.replace(/^Invalid TOML document: /, '')}`,
    fix: `correct line ${error.line}, column ${error.column}`,
  }
}

/** A failure of one leaf. */
export function invalidLeaf(leaf: Leaf, { path, value, source }: Given): Failure {
  const key = path.join('.')
  return {
    key,
    value: printed(leaf, value),
    source,
    rule: `must be ${leaf.words}`,
    fix: leaf.required ? `set ${key} to such a value` : `correct ${key}, or remove it`,
  }
}

/** At most a third of a name may be wrong, and two characters of a short one (two swapped letters). */
const WRONG_FRACTION = 3
const WRONG_MIN = 2

export function nearest(name: string, known: Iterable<string>): string | undefined {
  let best: string | undefined
  let least = Math.max(WRONG_MIN, Math.floor(name.length / WRONG_FRACTION)) + 1
  for (const candidate of known) {
    if (Math.abs(candidate.length - name.length) >= least) continue
    const edits = distance(name, candidate)
    if (edits < least) [best, least] = [candidate, edits]
  }
  return best
}
