/** Which test files a change can break: by the imports of the compiled modules, and from the service on by area. */
import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { basename, dirname, extname, join, normalize } from 'node:path'

/** Every test runs with these. */
const OF_ALL =
  /^(?:(?:test\/tools\/)?package(?:-lock)?\.json|tsconfig.*\.json|ava\.config\.js|test\/run\.ts)$/
const LOADED_BY_ALL = 'dist/test/support/seed.js'
/** They import the whole service: past them the area of a changed module decides. */
const SERVICE = ['dist/runtime/process/startup.js', 'dist/runtime/main.js']
/** Tests of the whole tree, and of all routes. */
const OF_TREE = /^dist\/test\/(?:[^/]+|contract\/.+)\.test\.js$/
/** Schema of every test database. */
const MIGRATION = /^migrations\/.+\.sql$/
const DATABASE = 'dist/test/support/storage/database.js'
const IMPORT = /(?:\bfrom |\bimport |\bimport\(|new URL\()\s*['"](\.[^'"]+\.js)['"]/g
/** A command that runs the service. */
const COMMAND = /runtime\/(?:main\.js|svc\.cjs|launch\.mjs)/
/** A shorter name, such as `index.md`, names more than one file. */
const NAME_CHARACTERS_MIN = 8

export type Tree = {
  /** The text of a compiled module, by its path from the root. Undefined without one. */
  read(path: string): string | undefined
  readonly areas: readonly string[]
}

export function treeOf(root: string, areas: readonly string[]): Tree {
  return {
    areas,
    read(path) {
      const whole = join(root, path)
      return existsSync(whole) ? readFileSync(whole, 'utf8') : undefined
    },
  }
}

/** The paths that differ from `base`, including the working tree. @throws where git does not know it. */
export function changedPaths(root: string, base: string | undefined): string[] {
  const git = (...words: string[]) =>
    execFileSync('git', words, { cwd: root, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] })
  const from = git('merge-base', 'HEAD', base ?? defaultBase(git)).trim()
  const lists = [
    git('diff', '--name-only', from),
    git('ls-files', '--others', '--exclude-standard'),
  ]
  return [...new Set(lists.join('\n').split('\n'))].filter((path) => path !== '')
}

/** On main the commit before; on a branch where it left main. */
function defaultBase(git: (...words: string[]) => string): string {
  const hasMain = git('branch', '--list', 'main').trim() !== ''
  const isMain = git('rev-parse', '--abbrev-ref', 'HEAD').trim() === 'main'
  return hasMain && !isMain ? 'main' : 'HEAD~1'
}

/** The `files` that the change can break. @param files compiled test files. */
export function changedTests(
  files: readonly string[],
  changed: readonly string[],
  tree: Tree,
): string[] {
  const modules = modulesOf(tree)
  const compiled = new Set(changed.filter((path) => path.endsWith('.ts')).map(compiledOf))
  const others = changed.filter((path) => !path.endsWith('.ts'))
  const isHit = (reached: ReadonlySet<string>) => [...compiled].some((path) => reached.has(path))
  const isOfAll = changed.some((path) => OF_ALL.test(path))
  if (isOfAll || isHit(modules.reached(LOADED_BY_ALL, []))) return [...files]
  const served = new Set(SERVICE.flatMap((root) => [...modules.reached(root, [])]))
  const servedAreas = [...compiled].filter((path) => served.has(path)).map(areaIn(tree.areas))
  return files.filter((file) => {
    if (compiled.has(file)) return true
    if (changed.length > 0 && OF_TREE.test(file)) return true
    const reached = modules.reached(file, SERVICE)
    if (isHit(reached)) return true
    if (reached.has(DATABASE) && others.some((path) => MIGRATION.test(path))) return true
    const parts = file.split('/')
    const hasService = SERVICE.some((root) => reached.has(root))
    if (hasService && servedAreas.some((area) => area === undefined || parts.includes(area))) {
      return true
    }
    return others.some((path) => modules.names(reached, path))
  })
}

/** The area of a module. Undefined: every area can use it. */
function areaIn(areas: readonly string[]): (path: string) => string | undefined {
  return (path) => path.split('/').find((part) => areas.includes(part))
}

function compiledOf(source: string): string {
  return join('dist', source.replace(/\.ts$/, '.js'))
}

function modulesOf(tree: Tree) {
  const texts = new Map<string, string>()
  const nexts = new Map<string, readonly string[]>()
  const textOf = (path: string) => {
    const text = texts.get(path) ?? tree.read(path) ?? ''
    texts.set(path, text)
    return text
  }
  const nextOf = (path: string) => {
    const known = nexts.get(path)
    if (known !== undefined) return known
    const text = textOf(path)
    const found = [...text.matchAll(IMPORT)].map(([, to]) =>
      normalize(join(dirname(path), to ?? '')),
    )
    if (path.startsWith('dist/test/') && COMMAND.test(text)) found.push(SERVICE[1]!)
    nexts.set(path, found)
    return found
  }
  return {
    /** A module and all that it imports. @param ends modules whose own imports do not count. */
    reached(path: string, ends: readonly string[]): ReadonlySet<string> {
      const reached = new Set<string>()
      const waiting = [path]
      for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
        if (reached.has(next)) continue
        reached.add(next)
        if (!ends.includes(next)) waiting.push(...nextOf(next))
      }
      return reached
    },
    /** Whether test code names a file that no module imports, such as a page of the documentation. */
    names(reached: ReadonlySet<string>, path: string): boolean {
      const bare = path.slice(0, path.length - extname(path).length)
      const name = basename(path)
      const words = [path, bare, bare.replace(/^docs\//, '')]
      if (name.length >= NAME_CHARACTERS_MIN) words.push(name)
      return [...reached]
        .filter((module) => module.startsWith('dist/test/'))
        .some((module) => words.some((word) => textOf(module).includes(word)))
    },
  }
}
