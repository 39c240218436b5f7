/** Loads all layers into an assembly: settings with their sources, or all failures. */
import {
  type Assembly,
  type Fallback,
  fallbackSource,
  type SettingsOfAssembly,
} from './assemble.js'
import type { Environment } from './environment.js'
import {
  type EnvironmentNames,
  type Given,
  type GivenValues,
  invalidLeaf,
  takeEnvironment,
  takeFile,
} from './layers.js'
import type { Failure, Loaded, Partially, Source, Sources } from './outcome.js'
import { printed } from './print.js'
import type { SectionRule } from './section.js'
import { pathKey } from './toml-lines.js'
import { type Leaf, type List, type Node, type Table, treeOf } from './tree.js'

interface LoadInput {
  readonly environment: Environment
  readonly names: EnvironmentNames
  /** The TOML file, if there is one. Messages use `path` as its name. */
  readonly file?: { readonly path: string; readonly text: string } | undefined
}

/** Never throws: every error in the input is a listed failure. */
export function load<A extends Assembly>(
  assembly: A,
  { environment, names, file }: LoadInput,
): Loaded<SettingsOfAssembly<A>> {
  const tree = treeOf(assembly)
  const given: GivenValues = new Map()
  const failures: Failure[] = []
  const layering = { tree, names, given, failures }
  if (file) takeFile(layering, file.path, file.text)
  takeEnvironment(layering, environment)

  const reading = new Reading(given, failures)
  const settings = reading.table(tree, [])
  for (const fallback of assembly.fallbacks) reading.fallBack(tree, settings, fallback)
  reading.refuseMissing()
  failures.push(...brokenRules(rulesOf(assembly), settings, reading.sources, reading.failed, tree))
  if (failures.length > 0) {
    const partial = frozen(settings) as Partially<SettingsOfAssembly<A>>
    return { tag: 'refused', failures, partial }
  }
  const { sources } = reading
  return { tag: 'loaded', settings: frozen(settings) as SettingsOfAssembly<A>, sources }
}

type Branch = Record<string, unknown>

class Reading {
  readonly sources = new Map<string, Source>()
  /** Dotted keys without a valid value. */
  readonly failed = new Set<string>()
  /** Required leaves without a value: `pathKey` -> the failure if no fallback fills them. */
  private readonly missing = new Map<string, Failure>()
  private readonly given: GivenValues
  private readonly failures: Failure[]

  constructor(given: GivenValues, failures: Failure[]) {
    this.given = given
    this.failures = failures
  }

  table(table: Table, path: readonly string[]): Branch {
    const branch: Branch = {}
    for (const [key, child] of table.children) branch[key] = this.node(child, [...path, key])
    return branch
  }

  private node(node: Node, path: readonly string[]): unknown {
    if (node.kind === 'leaf') return this.leaf(node, path)
    if (node.kind === 'list') return this.list(node, path)
    return node.whenSet && !this.anyBelow(path) ? undefined : this.table(node, path)
  }

  /** Elements are numbered from 0. An element after a gap is refused, not moved. */
  private list({ item }: List, path: readonly string[]): unknown {
    const given = [...this.below(path)]
    const indexes = new Set(given.map((one) => Number(one.path[path.length])))
    const astray = given.find((one) => Number(one.path[path.length]) >= indexes.size)
    if (astray === undefined) {
      return Array.from(indexes, (_, index) => this.table(item, [...path, String(index)]))
    }
    const key = astray.path.slice(0, path.length + 1).join('.')
    const rule = `must follow ${path.join('.')}.${Number(astray.path[path.length]) - 1}`
    const fix = `number the elements of ${path.join('.')} from 0 without gaps`
    this.failures.push({ key, source: astray.source, rule, fix })
    this.failed.add(path.join('.'))
    return []
  }

  private leaf(leaf: Leaf, path: readonly string[]): unknown {
    const one = this.given.get(pathKey(path))
    if (one === undefined) return this.absent(leaf, path)
    this.sources.set(path.join('.'), one.source)
    const parsed = leaf.schema.safeParse(one.value)
    if (parsed.success) return parsed.data
    this.failures.push(invalidLeaf(leaf, one))
    this.failed.add(path.join('.'))
    return undefined
  }

  private absent(leaf: Leaf, path: readonly string[]): unknown {
    const key = path.join('.')
    this.sources.set(key, { kind: 'default' })
    if (!leaf.required) return leaf.defaultValue
    const fix = `set ${key} to ${leaf.words}`
    this.failed.add(key)
    this.missing.set(key, { key, source: { kind: 'default' }, rule: 'must be set', fix })
    return undefined
  }

  /** Fills one key that has no value. An invalid value leaves the key without one. */
  fallBack(tree: Table, settings: Branch, fallback: Fallback<never>): void {
    const { key, reads } = fallback
    const path = key.split('.')
    const leaf = path.reduce<Node | undefined>(childOf, tree)
    const holder = path.slice(0, -1).reduce<unknown>(member, settings)
    if (leaf?.kind !== 'leaf' || !isBranch(holder)) return
    if (this.given.has(pathKey(path)) || holder[path.at(-1)!] !== undefined) return
    if (reads.some((one) => this.failed.has(one))) {
      // A key that the fallback reads is invalid and already listed: the consequence is not
      // reported.
      this.missing.delete(key)
      return
    }
    const value = (fallback.value as (settings: unknown) => unknown)(settings)
    const parsed = leaf.schema.safeParse(value)
    if (value === undefined || !parsed.success) return
    holder[path.at(-1)!] = parsed.data
    this.sources.set(key, { kind: 'fallback', from: fallbackSource(fallback) })
    this.missing.delete(key)
    this.failed.delete(key)
  }

  refuseMissing(): void {
    this.failures.push(...this.missing.values())
  }

  private anyBelow(path: readonly string[]): boolean {
    return [...this.below(path)].length > 0
  }

  private *below(path: readonly string[]): Generator<Given> {
    for (const one of this.given.values()) {
      if (path.every((segment, index) => one.path[index] === segment)) yield one
    }
  }
}

/** Every rule of the assembly, with its keys dotted from the root. */
function rulesOf(assembly: Assembly): readonly SectionRule<never>[] {
  const ofSections = assembly.sections.flatMap(({ name, rules }) =>
    rules.map((rule) => ({
      ...rule,
      keys: rule.keys.map((key) => `${name}.${key}`) as [string, ...string[]],
      holds: (settings: never) => {
        const own = member(settings, name)
        return own === undefined || (rule.holds as (own: unknown) => boolean)(own)
      },
    })),
  )
  return [...ofSections, ...assembly.rules]
}

/**
 * The rules that do not hold. A rule that reads an invalid key is skipped, because its result would
 * mean nothing.
 */
export function brokenRules(
  rules: readonly SectionRule<never>[],
  settings: unknown,
  sources: Sources,
  failed: ReadonlySet<string>,
  tree: Table,
): Failure[] {
  const touches = (key: string) =>
    [...failed].some((other) => other === key || other.startsWith(`${key}.`))
  return rules
    .filter(({ keys }) => !keys.some(touches))
    .filter(({ holds }) => !(holds as (settings: unknown) => boolean)(settings))
    .map(({ keys: [key], rule, fix }) => {
      const path = key.split('.')
      const node = path.reduce<Node | undefined>(childOf, tree)
      const value = path.reduce<unknown>(member, settings)
      const shownValue =
        node?.kind === 'leaf' && value !== undefined ? { value: printed(node, value) } : {}
      const source = sources.get(key) ?? { kind: 'default' as const }
      return { key, ...shownValue, source, rule: `must ${rule}`, fix }
    })
}

function childOf(node: Node | undefined, segment: string): Node | undefined {
  if (node?.kind === 'table') return node.children.get(segment)
  return node?.kind === 'list' ? node.item : undefined
}

function member(branch: unknown, name: string): unknown {
  return isBranch(branch) && Object.hasOwn(branch, name) ? branch[name] : undefined
}

function isBranch(value: unknown): value is Branch {
  return typeof value === 'object' && value !== null
}

function frozen<T>(value: T): T {
  if (isBranch(value)) {
    for (const item of Object.values(value)) frozen(item)
    Object.freeze(value)
  }
  return value
}
