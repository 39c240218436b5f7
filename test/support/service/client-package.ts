/** The package `@svc/client`, packed and installed into an empty folder without a network. */
import { execFile } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

const run = promisify(execFile)
const ROOT = fileURLToPath(new URL('../../../../', import.meta.url))
const PACK = fileURLToPath(new URL('../../../runtime/clients/packages/pack.js', import.meta.url))

export interface ClientPackage {
  /** A folder in which programs find the package. */
  readonly folder: string
  readonly tarballBytes: number
  /** Copies a folder of docs/examples next to the installed packages. */
  example(name: string): string
  remove(): void
}

/** The packages that the tarball names. Their copies come from this project. */
export const CLIENT_DEPENDENCIES = ['jose', 'multiformats', 'undici'] as const

/** @returns the tarball of `@svc/client` or `@svc/resource-server`, or of the same package in another scope. */
export async function packedPackage(
  name: 'client' | 'resource-server',
  to: string,
  ...options: readonly string[]
): Promise<string> {
  const { stdout } = await run(process.execPath, [PACK, name, to, ...options])
  return stdout.trim()
}

export async function installClientPackage(): Promise<ClientPackage> {
  const folder = mkdtempSync(join(tmpdir(), 'svc-package-'))
  const packed = join(folder, 'packed')
  mkdirSync(packed)
  const tarball = await packedPackage('client', packed)
  const sources = CLIENT_DEPENDENCIES.map((name) => join(ROOT, 'node_modules', name))
  for (const source of sources)
    await run('npm', ['pack', '--ignore-scripts', '--pack-destination', packed], { cwd: source })
  const { stdout: names } = await run('ls', [packed])
  const fileOf = (name: string) =>
    names.split('\n').find((file) => file.startsWith(`${name.replace('/', '-')}-`))
  const wanted = Object.fromEntries(
    CLIENT_DEPENDENCIES.map((name) => [name, `file:packed/${fileOf(name)}`]),
  )
  const manifest = {
    private: true,
    type: 'module',
    dependencies: { ...wanted, '@svc/client': `file:${tarball}` },
  }
  writeFileSync(join(folder, 'package.json'), JSON.stringify(manifest))
  await run('npm', ['install', '--offline', '--ignore-scripts', '--no-audit', '--no-fund'], {
    cwd: folder,
  })
  return {
    folder,
    tarballBytes: statSync(tarball).size,
    example(name) {
      const to = join(folder, name)
      cpSync(join(ROOT, 'docs/examples', name), to, { recursive: true })
      return to
    },
    remove: () => rmSync(folder, { recursive: true, force: true }),
  }
}
