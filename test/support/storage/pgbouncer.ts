/** A PgBouncer in front of a test database, in transaction mode. */
import { spawn } from 'node:child_process'
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { serverAccount } from '../../../runtime/embedded/account.js'
import { program } from '../service/program.js'

export interface PgBouncer {
  /** The database of the given URL, through the pooler. */
  readonly url: string
  stop(): Promise<void>
}

/**
 * @param url a database that a password opens.
 * @param settings lines of the section `[pgbouncer]`.
 */
export async function pgBouncer(
  url: string,
  port: number,
  settings: readonly string[] = [],
): Promise<PgBouncer> {
  const target = new URL(url)
  const host = target.searchParams.get('host') ?? target.hostname
  const database = target.pathname.slice(1)
  const folder = mkdtempSync(join(tmpdir(), 'svc-pgbouncer-'))
  const { username, password } = target
  const users = join(folder, 'users.txt')
  writeFileSync(users, `"${username}" "${decodeURIComponent(password)}"\n`)
  const file = join(folder, 'pgbouncer.ini')
  writeFileSync(
    file,
    [
      '[databases]',
      `${database} = host=${host} port=${target.port || 5432} dbname=${database}`,
      '[pgbouncer]',
      'listen_addr = 127.0.0.1',
      `listen_port = ${port}`,
      'unix_socket_dir =',
      'auth_type = scram-sha-256',
      `auth_file = ${users}`,
      'pool_mode = transaction',
      'max_client_conn = 400',
      'default_pool_size = 6',
      ...settings,
      '',
    ].join('\n'),
  )
  // PgBouncer refuses to run as root. Only the server's account can reach the socket of a test server.
  const account = await serverAccount()
  chmodSync(folder, 0o755)
  const child = spawn(program('pgbouncer')!, ['-q', file], {
    stdio: ['ignore', 'ignore', 'pipe'],
    ...(account === undefined ? {} : { uid: account.uid, gid: account.gid }),
  })
  const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()))
  let output = ''
  child.stderr.on('data', (chunk: Buffer) => (output += chunk.toString()))
  process.once('exit', () => child.kill('SIGKILL'))
  for (let step = 0; !(await answers(port)); step += 1) {
    if (step > 100 || child.exitCode !== null) throw new Error(`PgBouncer did not start: ${output}`)
    await sleep(50)
  }
  target.searchParams.delete('host')
  target.hostname = '127.0.0.1'
  target.port = String(port)
  return {
    url: target.href,
    async stop() {
      child.kill('SIGKILL')
      await ended
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

function answers(port: number): Promise<boolean> {
  const socket = connect(port, '127.0.0.1')
  return new Promise((resolve) => {
    const end = (isOpen: boolean) => {
      socket.destroy()
      resolve(isOpen)
    }
    socket.once('connect', () => end(true)).once('error', () => end(false))
  })
}
