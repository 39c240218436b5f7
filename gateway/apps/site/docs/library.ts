/** The pages of docs/ with their titles and places, for the documentation site. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { DOCUMENTATION_FOLDER, documentationPages } from '../markdown.js'

/** The root of the site. */
export const DOCS = '/docs'
const INDEX = 'README.md'

export type DocsPage = {
  /** Below docs/, with slashes: `guides/oauth/dpop.md`. */
  readonly file: string
  /** Path of its HTML page. */
  readonly path: string
  readonly title: string
}

type DocsGroup = {
  readonly title: string
  readonly pages: readonly DocsPage[]
}

/** In the order of the navigation: the folder, and how it is called. */
const FOLDERS: readonly (readonly [folder: string, title: string])[] = [
  ['get-started/', 'Get started'],
  ['guides/identity/', 'Identity'],
  ['guides/oauth/', 'OAuth'],
  ['guides/agents/', 'Agents'],
  ['guides/vault/', 'Vault'],
  ['guides/commerce/', 'Commerce'],
  ['guides/webhooks/', 'Webhooks'],
  ['guides/operations/', 'Operations'],
  ['examples/', 'Examples'],
  ['reference/', 'Reference'],
  ['concepts/', 'Concepts'],
]

/** The path of the HTML page of a file: `/docs/guides/oauth/dpop`, and `/docs` for the index. */
export function docsPath(file: string): string {
  if (file === INDEX) return DOCS
  return `${DOCS}/${file.replace(/(?:\/README)?\.md$/, '')}`
}

export function readDocsFile(file: string): string {
  return readFileSync(join(DOCUMENTATION_FOLDER, file), 'utf8')
}

/** All pages by their path. Empty if the folder is not installed. */
export function docsPages(): ReadonlyMap<string, DocsPage> {
  const pages = documentationPages().map((file) => {
    const path = docsPath(file)
    return [path, { file, path, title: titleOf(file) }] as const
  })
  return new Map(pages)
}

/** The navigation: each page is in one group. */
export function docsGroups(pages: Iterable<DocsPage>): readonly DocsGroup[] {
  const rest = [...pages].filter(({ file }) => file !== INDEX)
  const groups = FOLDERS.map(([folder, title]) => ({
    title,
    pages: rest.filter(({ file }) => file.startsWith(folder)),
  }))
  const placed = new Set(groups.flatMap((group) => group.pages))
  const others = rest.filter((page) => !placed.has(page))
  return [...groups, { title: 'More', pages: others }].filter((group) => group.pages.length > 0)
}

/** The first heading, without marks of code and emphasis. */
function titleOf(file: string): string {
  const heading = /^# (.+)$/m.exec(readDocsFile(file))?.[1] ?? file
  return heading.replaceAll(/[`*_]/g, '')
}
