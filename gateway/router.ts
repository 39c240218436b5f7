/** Finds the route of a path and method: a map for literal paths, a tree for paths with parameters. */

import { asId } from '../actors/domain/ids.js'

export type Resource<T> = {
  /** The declared path with its `{name}` parameters, which is the route label of metrics. */
  readonly path: string
  readonly methods: ReadonlyMap<string, T>
  /** For the Allow header, including HEAD and OPTIONS. */
  readonly allow: string
}

type Match<T> = {
  readonly resource: Resource<T>
  /** Undecoded path parameters, see `decodeParams`. */
  readonly params: Readonly<Record<string, string>>
}

type Entry<T> = { path: string; methods: Map<string, T>; allow: string }
type Node<T> = {
  readonly literals: Map<string, Node<T>>
  param: Node<T> | null
  end: { readonly entry: Entry<T>; readonly names: readonly string[] } | null
}

const NO_PARAMS: Readonly<Record<string, string>> = Object.freeze({})
const PARAM = /^\{([a-z][a-z0-9_]*)\}$/

export class Router<T> {
  private readonly literals = new Map<string, Match<T>>()
  private readonly root: Node<T> = emptyNode()

  /** @throws if the method and path are declared already, or the path is invalid. */
  add(method: string, path: string, value: T): void {
    const entry = this.entry(path)
    if (entry.methods.has(method)) throw new Error(`${method} ${path} is declared twice`)
    entry.methods.set(method, value)
    entry.allow = allowOf(entry.methods)
  }

  match(path: string): Match<T> | null {
    const literal = this.literals.get(path)
    if (literal !== undefined) return literal
    const values: string[] = []
    const end = path.startsWith('/') ? descend(this.root, path, 1, values) : null
    if (end === null) return null
    const params: Record<string, string> = {}
    // Not by an iterator: it would cost a third of the whole match.
    for (let index = 0; index < values.length; index += 1)
      params[end.names[index]!] = values[index]!
    return { resource: end.entry, params }
  }

  private entry(path: string): Entry<T> {
    if (!path.startsWith('/')) throw new Error(`a path must begin with "/": ${path}`)
    if (!path.includes('{')) {
      const known = this.literals.get(path)
      if (known !== undefined) return known.resource as Entry<T>
      const entry: Entry<T> = { path, methods: new Map(), allow: '' }
      this.literals.set(path, { resource: entry, params: NO_PARAMS })
      return entry
    }
    const names: string[] = []
    let node = this.root
    for (const segment of path.split('/').slice(1)) {
      const name = PARAM.exec(segment)?.[1]
      if (name === undefined) {
        if (/[{}]/.test(segment)) throw new Error(`a parameter must be a whole segment: ${path}`)
        let next = node.literals.get(segment)
        if (next === undefined) node.literals.set(segment, (next = emptyNode()))
        node = next
      } else {
        names.push(name)
        node.param ??= emptyNode()
        node = node.param
      }
    }
    if (node.end !== null && node.end.entry.path !== path) {
      throw new Error(`${path} and ${node.end.entry.path} are ambiguous`)
    }
    node.end ??= { entry: { path, methods: new Map(), allow: '' }, names }
    return node.end.entry
  }
}

function emptyNode<T>(): Node<T> {
  return { literals: new Map(), param: null, end: null }
}

/** Literal segments win over parameters; a dead end returns to the last choice. `from` is behind a slash. */
function descend<T>(node: Node<T>, path: string, from: number, values: string[]): Node<T>['end'] {
  if (from > path.length) return node.end
  const slash = path.indexOf('/', from)
  const next = slash < 0 ? path.length : slash
  const segment = path.slice(from, next)
  const literal = node.literals.get(segment)
  if (literal !== undefined) {
    const end = descend(literal, path, next + 1, values)
    if (end !== null) return end
  }
  if (node.param === null || segment === '') return null
  values.push(segment)
  const end = descend(node.param, path, next + 1, values)
  if (end === null) values.pop()
  return end
}

function allowOf(methods: ReadonlyMap<string, unknown>): string {
  const names = [...methods.keys()]
  if (methods.has('GET')) names.push('HEAD')
  return [...names, 'OPTIONS'].join(', ')
}

/** Decodes percent escapes once and lower-cases ids. Null if an escape is invalid or encodes a control character or slash. */
export function decodeParams(
  params: Readonly<Record<string, string>>,
): Readonly<Record<string, string>> | null {
  const decoded: Record<string, string> = {}
  for (const name in params) {
    const value = decodeSegment(params[name]!)
    if (value === null) return null
    decoded[name] = asId(value)
  }
  return decoded
}

function decodeSegment(segment: string): string | null {
  if (!segment.includes('%')) return segment
  try {
    const value = decodeURIComponent(segment)
    // oxlint-disable-next-line no-control-regex
    return /[\u0000-\u001f\u007f/]/.test(value) ? null : value
  } catch {
    return null
  }
}
