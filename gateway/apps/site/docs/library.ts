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

/**
 * The navigation, in the order of reading: groups, folders, and the pages of a folder that are read first. The others of the
 * folder follow by name. A page is in the first group that names it.
 */
const GROUPS: readonly (readonly [title: string, ...places: (readonly [string, string])[]])[] = [
  [
    'Get started',
    ['get-started/', 'application-developer api-developer agent-developer operator'],
    ['examples/', ''],
  ],
  ['Concepts', ['concepts/', 'tokens comparison threat-model']],
  ['Migrate', ['guides/migrate/', 'keycloak auth0 zitadel']],
  [
    'Identity',
    [
      'guides/identity/',
      'organizations-tenants-users sign-in-and-sign-up hosted-pages passkeys phone guests sign-out single-sign-on scim',
    ],
  ],
  [
    'OAuth',
    [
      'guides/oauth/',
      'authorization-code refresh-tokens client-authentication client-credentials device-flow api-resources resource-server-kit',
    ],
  ],
  ['Agents', ['guides/agents/', 'agents delegation agent-client agent-documents']],
  [
    'Vault',
    [
      'guides/vault/',
      'vault egress-proxy oauth-credentials connected-accounts svc-run ssh-certificates',
    ],
  ],
  ['Commerce', ['guides/commerce/', 'payments x402 wallets']],
  ['Webhooks', ['guides/webhooks/', 'webhooks webhook-receivers shared-signals']],
  [
    'Operations',
    [
      'guides/operations/',
      'production containers kubernetes systemd console apply mail monitoring runbooks backup upgrade doctor trace',
    ],
  ],
  ['Reference', ['reference/', 'http errors limits configuration commands oauth identity agents']],
]
/** Pages of folders above that only contributors need. */
const OF_CONTRIBUTORS: ReadonlySet<string> = new Set([
  ...'walks architecture actor-runtime gateway storage delivery-and-retention-workers dependencies ends decision-records'
    .split(' ')
    .map((name) => `concepts/${name}.md`),
  ...'planes runtime page-design long-run performance-compared'
    .split(' ')
    .map((name) => `reference/${name}.md`),
])
const CONTRIBUTORS = 'For contributors'

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
  const all = [...pages].filter(({ file }) => file !== INDEX)
  const rest = all.filter(({ file }) => !OF_CONTRIBUTORS.has(file))
  const groups = GROUPS.map(([title, ...places]) => ({
    title,
    pages: places.flatMap(([folder, first]) => inOrder(rest, folder, first.split(' '))),
  }))
  const placed = new Set(groups.flatMap((group) => group.pages))
  const inner = [...OF_CONTRIBUTORS].flatMap((name) => all.filter(({ file }) => file === name))
  const others = rest.filter((page) => !placed.has(page))
  return [
    ...groups,
    { title: 'More', pages: others },
    { title: CONTRIBUTORS, pages: inner },
  ].filter((group) => group.pages.length > 0)
}

function inOrder(
  pages: readonly DocsPage[],
  folder: string,
  first: readonly string[],
): readonly DocsPage[] {
  const rank = ({ file }: DocsPage) => {
    const at = first.indexOf(file.slice(folder.length, -'.md'.length))
    return at < 0 ? first.length : at
  }
  return pages
    .filter(({ file }) => file.startsWith(folder))
    .toSorted((one, other) => rank(one) - rank(other))
}

/** How much a page counts in the search: people look for guides first. */
export function weightOf({ file }: DocsPage): number {
  if (OF_CONTRIBUTORS.has(file)) return 0.5
  return /^(?:guides|get-started)\//.test(file) ? 2 : 1
}

/** The first heading, without marks of code and emphasis. */
function titleOf(file: string): string {
  const heading = /^# (.+)$/m.exec(readDocsFile(file))?.[1] ?? file
  return heading.replaceAll(/[`*_]/g, '')
}
