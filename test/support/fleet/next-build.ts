/** This build with one more migration, as the next release would have it. */
import { execFileSync } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { addLater } from '../storage/later-migrations.js'

const ROOT = new URL('../../../../', import.meta.url).pathname
/** What `svc` reads, besides `node_modules`. */
const FOLDERS = ['actors', 'gateway', 'runtime', 'storage']
const PARTS = [
  ...FOLDERS,
  ...[...FOLDERS, 'migrations', 'pages'].map((name) => `dist/${name}`),
  'package.json',
]

export interface NextBuild {
  /** The compiled tree, for `startProcess`. */
  readonly tree: string
  /** Runs its `svc migrate`. @returns what it printed. */
  migrate(url: string): string
  remove(): void
}

export function nextBuild(): NextBuild {
  const folder = mkdtempSync(join(tmpdir(), 'svc-next-'))
  for (const part of PARTS) cpSync(join(ROOT, part), join(folder, part), { recursive: true })
  mkdirSync(join(folder, 'migrations'))
  addLater(join(folder, 'migrations'))
  symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'))
  const tree = join(folder, 'dist')
  return {
    tree,
    migrate: (url) =>
      execFileSync(process.execPath, [join(tree, 'runtime/main.js'), 'migrate'], {
        cwd: folder,
        encoding: 'utf8',
        env: { PATH: process.env['PATH'], HOME: folder, DATABASE_URL: url },
      }),
    remove: () => rmSync(folder, { recursive: true, force: true }),
  }
}
