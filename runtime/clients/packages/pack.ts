/**
 * `npm run pack:client` and `npm run pack:resource-server`, each with `[-- DIR] [--scope @acme]`: builds an npm package as a
 * tarball, in dist/packages or in DIR. It has the compiled modules that its entries import, and depends only on what these
 * import (docs/guides/operations/clients.md).
 */
import { spawnSync } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, relative, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'

const DIST = fileURLToPath(new URL('../../../', import.meta.url))
const ROOT = dirname(DIST)
const OUR_SCOPE = '@svc'

type Package = {
  readonly description: string
  /** Has the README. */
  readonly folder: string
  readonly entries: Readonly<Record<string, string>>
}

const RESOURCE_SERVER = 'runtime/clients/resource-server/exports'
const PACKAGES: Readonly<Record<string, Package>> = {
  client: {
    description: 'Access tokens, webhooks, egress and agents of svc, for Node',
    folder: 'runtime/clients/client',
    entries: { '.': 'runtime/clients/packages/client', './resource-server': RESOURCE_SERVER },
  },
  'resource-server': {
    description: 'Protects an API or MCP server with access tokens of svc, for Node',
    folder: 'runtime/clients/resource-server',
    entries: { '.': RESOURCE_SERVER },
  },
}
/** Imports, exports from, dynamic imports, and threads (`new URL('./x.js', import.meta.url)`). */
const REFERENCES =
  /\b(?:from|import|import\()\s*['"](?<name>[^'"]+)['"]|new URL\(['"](?<thread>\.[^'"]+\.js)['"]/g
const COMMENTS = /\/\*[^]*?\*\//g

type Manifest = {
  readonly version: string
  readonly engines: object
  readonly dependencies: Readonly<Record<string, string>>
}

/** The files that the entries lead to, and the packages that these import. */
function closure(entries: Package['entries']): {
  files: ReadonlySet<string>
  packages: readonly string[]
} {
  const files = new Set<string>()
  const packages = new Set<string>()
  const open = Object.values(entries).flatMap((name) => [`${name}.js`, `${name}.d.ts`])
  for (let name = open.pop(); name !== undefined; name = open.pop()) {
    if (files.has(name)) continue
    files.add(name)
    const text = readFileSync(join(DIST, name), 'utf8').replaceAll(COMMENTS, '')
    for (const { groups = {} } of text.matchAll(REFERENCES)) {
      const target = groups['name'] ?? groups['thread'] ?? ''
      if (target.startsWith('node:')) continue
      if (!target.startsWith('.')) {
        packages.add(target.split('/', target.startsWith('@') ? 2 : 1).join('/'))
        continue
      }
      const next = relative(DIST, resolve(DIST, dirname(name), target))
      open.push(name.endsWith('.d.ts') ? next.replace(/\.js$/, '.d.ts') : next)
    }
  }
  return { files, packages: [...packages].toSorted() }
}

/** Writes the package to a folder. */
function build(name: string, scope: string, folder: string): void {
  const { description, folder: source, entries } = PACKAGES[name]!
  const manifest = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as Manifest
  const { files, packages } = closure(entries)
  for (const file of files) {
    const to = join(folder, 'lib', file)
    mkdirSync(dirname(to), { recursive: true })
    const text = readFileSync(join(DIST, file), 'utf8')
    writeFileSync(to, text.replace(/\n\/\/# sourceMappingURL=.*\s*$/, '\n'))
  }
  const exports = Object.fromEntries(
    Object.entries(entries).map(([path, file]) => [
      path,
      { types: `./lib/${file}.d.ts`, default: `./lib/${file}.js` },
    ]),
  )
  const own = {
    name: `${scope}/${name}`,
    version: manifest.version,
    description,
    license: 'MIT',
    type: 'module',
    sideEffects: false,
    engines: manifest.engines,
    exports,
    files: ['lib'],
    dependencies: Object.fromEntries(
      packages.map((needed) => {
        const version = manifest.dependencies[needed]
        if (version === undefined) throw new Error(`${needed} is not a dependency of package.json`)
        return [needed, `^${version}`]
      }),
    ),
  }
  writeFileSync(join(folder, 'package.json'), `${JSON.stringify(own, null, 2)}\n`)
  cpSync(join(ROOT, 'LICENSE'), join(folder, 'LICENSE'))
  const readme = readFileSync(join(ROOT, source, 'README.md'), 'utf8')
  writeFileSync(join(folder, 'README.md'), readme.replaceAll(`${OUR_SCOPE}/`, `${scope}/`))
}

/** @returns the path of the tarball. */
function pack(name: string, scope: string, to: string): string {
  const folder = mkdtempSync(join(tmpdir(), 'svc-pack-'))
  try {
    build(name, scope, folder)
    mkdirSync(to, { recursive: true })
    const { status, stdout, stderr } = spawnSync(
      'npm',
      ['pack', '--json', '--ignore-scripts', '--pack-destination', to],
      { cwd: folder, encoding: 'utf8' },
    )
    if (status !== 0) throw new Error(`npm pack failed: ${stderr}`)
    const [packed] = JSON.parse(stdout) as { filename: string }[]
    return join(to, packed!.filename)
  } finally {
    rmSync(folder, { recursive: true })
  }
}

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { scope: { type: 'string', default: OUR_SCOPE } },
})
const [name = '', to = join(DIST, 'packages')] = positionals
if (!Object.hasOwn(PACKAGES, name)) throw new Error(`not a package: ${name}`)
if (!/^@[a-z0-9][a-z0-9._-]*$/.test(values.scope)) throw new Error(`not a scope: ${values.scope}`)
process.stdout.write(`${pack(name, values.scope, resolve(to))}\n`)
