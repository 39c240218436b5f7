/**
 * `npm run pack:client [-- DIR]`: builds the npm package `@svc/client` as a tarball, in dist/packages or in DIR. The package
 * has the compiled modules that its entries import, and depends only on what these import (docs/guides/operations/clients.md).
 */
import { spawnSync } from 'node:child_process'
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, relative, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'

const DIST = fileURLToPath(new URL('../../', import.meta.url))
const ROOT = dirname(DIST)
const ENTRIES = {
  '.': 'runtime/packages/client',
  './resource-server': 'runtime/resource-server/exports',
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
function closure(): { files: ReadonlySet<string>; packages: readonly string[] } {
  const files = new Set<string>()
  const packages = new Set<string>()
  const open = Object.values(ENTRIES).flatMap((name) => [`${name}.js`, `${name}.d.ts`])
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
function build(folder: string): void {
  const manifest = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as Manifest
  const { files, packages } = closure()
  for (const name of files) {
    const to = join(folder, 'lib', name)
    mkdirSync(dirname(to), { recursive: true })
    const text = readFileSync(join(DIST, name), 'utf8')
    writeFileSync(to, text.replace(/\n\/\/# sourceMappingURL=.*\s*$/, '\n'))
  }
  const exports = Object.fromEntries(
    Object.entries(ENTRIES).map(([path, name]) => [
      path,
      { types: `./lib/${name}.d.ts`, default: `./lib/${name}.js` },
    ]),
  )
  const own = {
    name: '@svc/client',
    version: manifest.version,
    description: 'Access tokens, webhooks, egress and agents of svc, for Node',
    license: 'MIT',
    type: 'module',
    sideEffects: false,
    engines: manifest.engines,
    exports,
    files: ['lib'],
    dependencies: Object.fromEntries(
      packages.map((name) => {
        const version = manifest.dependencies[name]
        if (version === undefined) throw new Error(`${name} is not a dependency of package.json`)
        return [name, `^${version}`]
      }),
    ),
  }
  writeFileSync(join(folder, 'package.json'), `${JSON.stringify(own, null, 2)}\n`)
  cpSync(join(ROOT, 'LICENSE'), join(folder, 'LICENSE'))
  const guide = join(ROOT, 'docs/guides/operations/clients.md')
  if (existsSync(guide))
    writeFileSync(join(folder, 'README.md'), readme(readFileSync(guide, 'utf8')))
}

/** The guide for readers without the repository, whose pages a running service has. */
function readme(guide: string): string {
  const text = guide.replace(/\[([^\]]+)\]\((?!https?:)[^)]*\)/g, '$1')
  return `${text.trimEnd()}\n\nOther pages that this one names are at \`/docs\` of a running service.\n`
}

/** @returns the path of the tarball. */
function pack(to: string): string {
  const folder = mkdtempSync(join(tmpdir(), 'svc-client-'))
  try {
    build(folder)
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

process.stdout.write(`${pack(resolve(process.argv[2] ?? join(DIST, 'packages')))}\n`)
