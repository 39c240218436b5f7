/** The files of the embedded database: their location, owner and creation. */
import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { chmod, chown, lstat, mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { type Account, canEnter, SYSTEM_HOME } from './account.js'
import { ownerOf, type Programs, pathDigest } from './binaries.js'

const CLUSTER_FOLDER = 'postgres'
/** Holds the cluster's location when the cluster cannot be inside of the data directory. */
const POINTER_FILE = 'postgres-location'
const PASSWORD_FILE = 'postgres-passwords.json'
const SOCKET_NAME = '.s.PGSQL.5432'
/** sun_path holds 104 bytes on macOS and 108 on Linux. */
const SOCKET_PATH_BYTES_MAX = 100

export interface Cluster {
  readonly folder: string
  readonly socketFolder: string
  /** The account that runs the server. Undefined when it is this process's user. */
  readonly account: Account | undefined
  readonly passwords: Passwords
}

interface Passwords {
  /** The password of `postgres`, which only creates the role and the database of the service. */
  readonly superuser: string
  /** The password of `svc`. */
  readonly service: string
}

/** Finds the cluster of a data directory, or chooses its location. Creates no cluster. */
export async function locateCluster(
  dataDir: string,
  account: Account | undefined,
): Promise<Cluster> {
  const folder = await clusterFolder(dataDir, account)
  const runner = account && (await ownerAsAccount(folder, account))
  return {
    folder,
    account: runner,
    socketFolder: await socketFolder(folder, runner),
    passwords: await readOrMakePasswords(dataDir),
  }
}

async function clusterFolder(dataDir: string, account: Account | undefined): Promise<string> {
  const pointer = join(dataDir, POINTER_FILE)
  const pointed = await readFile(pointer, 'utf8').catch(() => undefined)
  if (pointed !== undefined) return pointed.trim()
  const inside = join(dataDir, CLUSTER_FOLDER)
  if (account === undefined) return inside
  if (await isCluster(inside)) {
    const runner = await ownerAsAccount(inside, account)
    if (canEnter(runner, inside)) return inside
    throw new Error(
      `the database in ${inside} belongs to ${runner.name} (uid ${runner.uid}), who cannot reach it ` +
        'any more: open the folders above it (chmod o+x), or start svc as the user it belongs to',
    )
  }
  if (canEnter(account, dataDir)) return inside
  // A parent folder is closed to the server's user, such as /root. Its own home is accessible. The
  // name is random: a new data directory must not find the cluster of a removed one with the same
  // path.
  const outside = join(SYSTEM_HOME, randomBytes(8).toString('hex'))
  await mkdir(SYSTEM_HOME, { recursive: true, mode: 0o755 })
  await writeFile(pointer, `${outside}\n`, { mode: 0o600 })
  return outside
}

/** The owner of an existing cluster runs it: PostgreSQL requires that. */
async function ownerAsAccount(folder: string, account: Account): Promise<Account> {
  const owner = await ownerOf(folder)
  if (owner === undefined || owner.uid === 0 || owner.uid === account.uid) return account
  return { name: `uid ${owner.uid}`, uid: owner.uid, gid: owner.gid }
}

async function isCluster(folder: string): Promise<boolean> {
  return (await ownerOf(join(folder, 'PG_VERSION'))) !== undefined
}

/**
 * The socket is in the cluster, which is closed to other users. Where that path is too long for a
 * socket, it is in a closed folder below the temporary folder.
 */
async function socketFolder(cluster: string, account: Account | undefined): Promise<string> {
  if (Buffer.byteLength(join(cluster, SOCKET_NAME)) < SOCKET_PATH_BYTES_MAX) return cluster
  const uid = account?.uid ?? process.getuid?.() ?? 0
  const short = join(tmpdir(), `svc-${uid}-${pathDigest(cluster)}`)
  const folder =
    Buffer.byteLength(join(short, SOCKET_NAME)) < SOCKET_PATH_BYTES_MAX
      ? short
      : join('/tmp', `svc-${uid}-${pathDigest(cluster)}`)
  const made = await mkdir(folder, { mode: 0o700 }).then(
    () => true,
    (error: NodeJS.ErrnoException) => {
      if (error.code === 'EEXIST') return false
      throw error
    },
  )
  if (made && account) await chown(folder, account.uid, account.gid)
  // The temporary folder is world-writable: another user may have created this name first.
  const found = await lstat(folder)
  if (!found.isDirectory() || found.uid !== uid || (found.mode & 0o077) !== 0) {
    throw new Error(`${folder} was not created by svc: remove it, or use a shorter SVC_DATA_DIR`)
  }
  return folder
}

async function readOrMakePasswords(dataDir: string): Promise<Passwords> {
  const path = join(dataDir, PASSWORD_FILE)
  const text = await readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined
    throw error
  })
  if (text !== undefined) return JSON.parse(text) as Passwords
  const passwords = { superuser: newPassword(), service: newPassword() }
  const draft = `${path}.${randomBytes(6).toString('hex')}`
  await writeFile(draft, `${JSON.stringify(passwords)}\n`, { mode: 0o600 })
  await rename(draft, path)
  return passwords
}

function newPassword(): string {
  return randomBytes(24).toString('base64url')
}

/**
 * Creates the cluster unless it exists. It is built under another name and renamed at the end, so
 * that a kill leaves nothing that looks like a database.
 */
export async function createCluster(
  programs: Programs,
  cluster: Cluster,
  durable: boolean,
): Promise<boolean> {
  if (await isCluster(cluster.folder)) return false
  await mkdir(dirname(cluster.folder), { recursive: true, mode: 0o755 })
  const draft = `${cluster.folder}.${randomBytes(6).toString('hex')}`
  const passwordFile = `${draft}.password`
  try {
    await mkdir(draft, { mode: 0o700 })
    await writeFile(passwordFile, `${cluster.passwords.superuser}\n`, { mode: 0o600 })
    if (cluster.account) {
      await chown(draft, cluster.account.uid, cluster.account.gid)
      await chown(passwordFile, cluster.account.uid, cluster.account.gid)
    }
    await runInitdb(programs, draft, passwordFile, cluster.account, durable)
    await chmod(draft, 0o700)
    await rename(draft, cluster.folder)
    return true
  } finally {
    await rm(passwordFile, { force: true })
    await rm(draft, { recursive: true, force: true })
  }
}

async function runInitdb(
  programs: Programs,
  folder: string,
  passwordFile: string,
  account: Account | undefined,
  durable: boolean,
): Promise<void> {
  const child = spawn(
    programs.initdb,
    [
      `--pgdata=${folder}`,
      '--username=postgres',
      `--pwfile=${passwordFile}`,
      '--auth=scram-sha-256',
      '--encoding=UTF8',
      // A sort order that does not depend on the machine's C library, in case the folder is moved.
      '--locale-provider=builtin',
      '--builtin-locale=C.UTF-8',
      '--locale=C',
      '--no-instructions',
      ...(durable ? [] : ['--no-sync']),
    ],
    { ...processOptions(account), stdio: ['ignore', 'pipe', 'pipe'] },
  )
  let output = ''
  child.stdout.on('data', (chunk: Buffer) => (output += chunk.toString()))
  child.stderr.on('data', (chunk: Buffer) => (output += chunk.toString()))
  const code = await new Promise<number | null>((resolve, reject) => {
    child.once('error', reject)
    child.once('close', resolve)
  })
  if (code !== 0) throw new Error(`initdb failed (exit code ${code}):\n${output.slice(-2000)}`)
}

/**
 * How the server's programs are started: as their own user, with their own environment (without our
 * PGDATA or PGOPTIONS), and detached, so that Ctrl-C reaches only this process.
 */
export function processOptions(account: Account | undefined) {
  return {
    cwd: '/',
    detached: true,
    env: { PATH: '/usr/local/bin:/usr/bin:/bin', LC_ALL: 'C', TZ: 'UTC' },
    ...(account && { uid: account.uid, gid: account.gid }),
  }
}
