/** The effective settings with their sources: for `svc config show`, and for the log of a start. */
import { readFileSync } from 'node:fs'
import type { Failure, Source } from '../../kernel/config/outcome.js'
import { printed, printedSource, shown } from '../../kernel/config/print.js'
import { type Leaf, type Node, treeOf } from '../../kernel/config/tree.js'
import { assembly } from './assembly.js'
import type { LoadedSettings } from './load-settings.js'

/** One effective value. `source` is where it comes from, in words. */
type Effective = { key: string; leaf: Leaf; value: unknown; source: string }

/** Every effective value, in the order of the schema. */
export function effective({
  settings,
  sources,
}: Pick<LoadedSettings, 'settings' | 'sources'>): Effective[] {
  const sourceOf = (key: string): Source => sources.get(key) ?? { kind: 'default' }
  return [...walk(treeOf(assembly), settings, [])].map(({ path, leaf, value }) => {
    const key = path.join('.')
    return { key, leaf, value, source: printedSource(sourceOf(key)) }
  })
}

/** Every effective leaf, in the order of the schema. */
function* walk(
  node: Node,
  value: unknown,
  path: readonly string[],
): Generator<{ path: readonly string[]; leaf: Leaf; value: unknown }> {
  if (node.kind === 'leaf') {
    yield { path, leaf: node, value }
  } else if (node.kind === 'list') {
    for (const [index, item] of (value as readonly unknown[]).entries()) {
      yield* walk(node.item, item, [...path, String(index)])
    }
  } else {
    const branch = (value ?? {}) as Readonly<Record<string, unknown>>
    for (const [key, child] of node.children) yield* walk(child, branch[key], [...path, key])
  }
}

/** The files that settings name and that this process cannot read. */
export function unreadableFiles(
  loaded: Pick<LoadedSettings, 'settings' | 'sources'>,
): readonly Failure[] {
  return effective(loaded).flatMap(({ key, leaf, value }) => {
    if (!leaf.isRead || typeof value !== 'string') return []
    try {
      readFileSync(value)
      return []
    } catch (error) {
      const { code = 'unknown error' } = error as NodeJS.ErrnoException
      const source = loaded.sources.get(key) ?? { kind: 'default' }
      const rule = `must be a file that this process can read (${code})`
      return [
        {
          key,
          value: printed(leaf, value),
          source,
          rule,
          fix: 'correct the path, or make the file readable',
        },
      ]
    }
  })
}

/** The settings that are not defaults, with their sources, and the number of the others. Secrets are hidden. */
export function settingsReport(loaded: Pick<LoadedSettings, 'settings' | 'sources'>): {
  readonly set: Readonly<Record<string, { readonly value: unknown; readonly source: string }>>
  readonly defaults: number
} {
  const all = effective(loaded)
  const set = all.filter(({ source }) => source !== 'default')
  return {
    set: Object.fromEntries(
      set.map(({ key, leaf, value, source }) => [key, { value: shown(leaf, value), source }]),
    ),
    defaults: all.length - set.length,
  }
}
