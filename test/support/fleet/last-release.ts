/** The release before this one, compiled from the history of the repository. */
import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const ROOT = new URL('../../../../', import.meta.url).pathname

export interface Release {
  readonly version: string
  /** The compiled tree, for `startProcess`. */
  readonly tree: string
  /** The variables that it knows: a process refuses unknown ones. */
  adapt(variables: Readonly<Record<string, string>>): Readonly<Record<string, string>>
  /** Runs `svc` of the release, such as `migrate`. @throws with its output. */
  run(words: readonly string[], environment: Readonly<Record<string, string>>): string
  remove(): void
}

/** @throws in a clone without the history. */
export function lastRelease(): Release {
  const git = (...words: readonly string[]) =>
    execFileSync('git', words, { cwd: ROOT, encoding: 'utf8', maxBuffer: 1 << 28 }).trim()
  const text = (name: string) => readFileSync(join(ROOT, name), 'utf8')
  const changelog = text('CHANGELOG.md')
  const cut = [...changelog.matchAll(/^## (\d+\.\d+\.\d+)/gm)].map(([, one = '']) => one)
  // In the commit that cuts a version, the one before it runs in deployments.
  const version = cut[/^## Unreleased/m.test(changelog) ? 0 : 1]
  if (version === undefined) throw new Error('the changelog names no earlier release')
  // The commit that put the version into the changelog.
  const [commit = ''] = git(
    'log',
    '--reverse',
    `-S## ${version} (`,
    '--format=%H',
    '--',
    'CHANGELOG.md',
  ).split('\n')
  const folder = mkdtempSync(join(tmpdir(), 'svc-release-'))
  const archive = join(folder, 'tree.tar')
  git('archive', '--output', archive, commit)
  const tree = join(folder, 'tree')
  mkdirSync(tree)
  execFileSync('tar', ['-xf', archive, '-C', tree])
  symlinkSync(join(ROOT, 'node_modules'), join(tree, 'node_modules'))
  const compiler = join(ROOT, 'node_modules/typescript/bin/tsc')
  execFileSync(process.execPath, [compiler, '-b', 'runtime'], { cwd: tree, encoding: 'utf8' })
  const example = readFileSync(join(tree, 'svc.example.toml'), 'utf8')
  return {
    version,
    tree: join(tree, 'dist'),
    adapt(variables) {
      const isKnown = (name: string) => {
        if (!name.startsWith('SVC_') || !name.includes('__')) return true
        const [section = '', ...keys] = name.slice('SVC_'.length).toLowerCase().split('__')
        const inside = example.split(
          new RegExp(`^#? ?\\[${[section, ...keys.slice(0, -1)].join('\\.')}\\]`, 'm'),
        )[1]
        return new RegExp(`^#? ?${keys.at(-1)} =`, 'm').test(inside?.split(/^#? ?\[/m)[0] ?? '')
      }
      return Object.fromEntries(Object.entries(variables).filter(([name]) => isKnown(name)))
    },
    run: (words, environment) =>
      execFileSync(process.execPath, [join(tree, 'dist/runtime/main.js'), ...words], {
        cwd: folder,
        encoding: 'utf8',
        env: { PATH: process.env['PATH'], HOME: folder, ...environment },
      }),
    remove: () => rmSync(folder, { recursive: true, force: true }),
  }
}
