/** The schema as Markdown: one table for each section. */
import type { Assembly } from './assemble.js'
import { tomlLiteral } from './print.js'
import { type Leaf, leaves, type Node, treeOf } from './tree.js'

export function referenceTables(assembly: Assembly): string {
  return [...treeOf(assembly).children].map(([name, node]) => sectionText(name, node)).join('\n\n')
}

function sectionText(name: string, node: Node): string {
  const heading = node.kind === 'list' ? `### [[${name}]]` : `### [${name}]`
  const rows = [...leaves(node)].map(({ path, leaf }) => row(path, leaf))
  const table = ['| Key | Default | Valid values | Meaning |', '|---|---|---|---|', ...rows]
  return [heading, '', node.about, '', ...table].join('\n')
}

function row(path: readonly string[], leaf: Leaf): string {
  const key = path.filter((segment) => segment !== '*').join('.')
  const about = leaf.secret ? `${leaf.about} Secret.` : leaf.about
  return `| \`${key}\` | ${defaultCell(leaf)} | ${cell(leaf.words)} | ${cell(about)} |`
}

function defaultCell({ defaultValue, fallback }: Leaf): string {
  if (defaultValue !== undefined) return `\`${tomlLiteral(defaultValue)}\``
  return fallback === undefined ? 'unset' : `from ${fallback}`
}

function cell(text: string): string {
  return text.replaceAll('|', '\\|')
}
