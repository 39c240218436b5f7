/**
 * Every key of the configuration is read by some code: an operator would rely on a key that is accepted and never
 * read.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import test from 'ava'
import { assembly } from '../../../runtime/process/configuration/assembly.js'
import { leaves, treeOf } from '../../../runtime/kernel/config/tree.js'

const FOLDERS = ['actors', 'gateway', 'runtime', 'storage', 'migrations']
/**
 * Files that declare settings. A production requirement is an effect, so `production.ts` counts as
 * a reader.
 */
const DECLARES = /^runtime\/configuration\/deployment\.ts$|kernel\/config\//

const texts = FOLDERS.flatMap((folder) =>
  readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .map((name) => join(folder, name))
    .filter((path) => path.endsWith('.ts') && !DECLARES.test(path))
    .map((path) => afterDeclaration(path, readFileSync(path, 'utf8'))),
)

/**
 * The part of a settings.ts after its declarations: some of these files also read their settings.
 */
function afterDeclaration(path: string, text: string): string {
  // A rule between sections is an effect, as a production requirement is.
  if (path.endsWith('configuration/assembly.ts')) return text.slice(text.indexOf('\n  rules: ['))
  if (!path.endsWith('/settings.ts')) return text
  return text.slice(text.lastIndexOf('= SettingsOf<'))
}

const paths = [...leaves(treeOf(assembly))].map(({ path }) => path)
const camel = (name: string) => name.replaceAll(/_([a-z])/g, (_, letter) => letter.toUpperCase())

/**
 * The key's name occurs in code. Where several tables have the name, the table's name must occur
 * too.
 */
function isRead(path: readonly string[]): boolean {
  const name = path.at(-1)!
  const table = path.slice(0, -1).findLast((part) => part !== '*')!
  const named = new RegExp(`\\b${name}\\b`)
  const isShared = paths.filter((other) => other.at(-1) === name).length > 1
  const tables = new RegExp(`\\b(?:${table}|${camel(table)})`, 'i')
  return texts.some((text) => named.test(text) && (!isShared || tables.test(text)))
}

for (const path of paths) {
  const key = path.filter((part) => part !== '*').join('.')
  if (key.endsWith('.enabled')) continue
  test(`${key} is read`, (t) => t.true(isRead(path)))
}
