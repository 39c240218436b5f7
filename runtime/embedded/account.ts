/** The system user who runs the server. PostgreSQL refuses to run as root. */
import { execFile, spawnSync } from 'node:child_process'
import { promisify } from 'node:util'

const run = promisify(execFile)

/** The folder for files of a root process that the server's user must reach. */
export const SYSTEM_HOME = '/var/lib/svc-postgres'
const SYSTEM_USER = 'svc-postgres'

export interface Account {
  readonly name: string
  readonly uid: number
  readonly gid: number
}

/**
 * The account that runs the server for a root process. Undefined for an ordinary user, who runs the
 * server directly.
 */
export async function serverAccount(): Promise<Account | undefined> {
  if (process.getuid?.() !== 0) return undefined
  const found = await lookUp(SYSTEM_USER)
  if (found !== undefined) return found
  await run('useradd', [
    '--system',
    '--user-group',
    '--no-create-home',
    '--home-dir',
    SYSTEM_HOME,
    '--shell',
    '/usr/sbin/nologin',
    SYSTEM_USER,
  ]).catch(() => undefined)
  const account = (await lookUp(SYSTEM_USER)) ?? (await lookUp('nobody'))
  if (account === undefined) {
    throw new Error(
      'PostgreSQL does not run as root, and this machine has neither useradd nor a user "nobody"' +
        ': start svc as an ordinary user or set DATABASE_URL to your own server',
    )
  }
  return account
}

async function lookUp(name: string): Promise<Account | undefined> {
  try {
    const [uid, gid] = await Promise.all([
      run('id', ['-u', name]).then(({ stdout }) => Number(stdout)),
      run('id', ['-g', name]).then(({ stdout }) => Number(stdout)),
    ])
    return { name, uid, gid }
  } catch {
    return undefined
  }
}

/** Whether the account can enter a folder through all its parents: tried, not computed. */
export function canEnter(account: Account, folder: string): boolean {
  const { status } = spawnSync('/bin/sh', ['-c', 'cd -- "$1"', 'sh', folder], {
    uid: account.uid,
    gid: account.gid,
    cwd: '/',
    env: {},
    stdio: 'ignore',
  })
  return status === 0
}
