/** The schema as an example file: every key, commented out, with its default and its meaning. */
import type { Assembly } from './assemble.js'
import { tomlLiteral } from './print.js'
import { type Leaf, type Node, type Table, treeOf } from './tree.js'

const LINE_CHARACTERS_MAX = 96

/** A TOML file in which every key is commented out. `heading` becomes its first comment. */
export function exampleFile(assembly: Assembly, heading: readonly string[]): string {
  const blocks = [comment(heading.join(' '))]
  for (const [name, node] of treeOf(assembly).children) blocks.push(...tableBlocks([name], node))
  return `${blocks.join('\n\n')}\n`
}

/** One block for the table and one for each table inside of it. */
function tableBlocks(path: readonly string[], node: Node): string[] {
  if (node.kind === 'leaf') return []
  const isList = node.kind === 'list'
  const table = isList ? node.item : node
  const name = path.join('.')
  const heading = [comment(node.about), isList ? `# [[${name}]]` : `[${name}]`]
  const lines = [...heading.filter((line) => line !== ''), ...leafLines(table)]
  const inner = [...table.children].flatMap(([key, child]) => tableBlocks([...path, key], child))
  return [lines.join('\n'), ...inner]
}

function leafLines(table: Table): string[] {
  return [...table.children].flatMap(([key, child]) =>
    child.kind === 'leaf'
      ? ['', ...comment(meaning(child)).split('\n'), `# ${pair(key, child)}`]
      : [],
  )
}

function pair(key: string, leaf: Leaf): string {
  const value = leaf.defaultValue ?? leaf.example
  return `${key} = ${value === undefined ? '""' : tomlLiteral(value)}`
}

function meaning({ about, words, defaultValue, fallback }: Leaf): string {
  const otherwise = fallback === undefined ? 'Not set by default.' : `Default: from ${fallback}.`
  return `${about} Value: ${words}.${defaultValue === undefined ? ` ${otherwise}` : ''}`
}

/** Comment lines, wrapped between words. */
function comment(text: string): string {
  if (text === '') return ''
  const lines: string[] = []
  for (const word of text.split(' ')) {
    const last = lines.at(-1)
    if (last === undefined || last.length + word.length >= LINE_CHARACTERS_MAX) {
      lines.push(`# ${word}`)
    } else lines[lines.length - 1] = `${last} ${word}`
  }
  return lines.join('\n')
}
