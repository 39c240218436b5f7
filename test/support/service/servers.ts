/** Temporary Redis, memcached and NATS servers on free ports. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { freePort } from './settings.js'

const UP_WITHIN_MS = 15_000

export interface Server {
  readonly port: number
  /** Kills it like a crash. */
  kill(): Promise<void>
  /** Stops it (SIGSTOP): it accepts connections and bytes, and does not answer. */
  freeze(): void
  /** Ends `freeze` (SIGCONT). */
  thaw(): void
  /** Restarts it on the same port. Redis and memcached have empty storage then. */
  restart(): Promise<void>
  stop(): Promise<void>
}

export function startRedis(path: string): Promise<Server> {
  return startServer((port, folder) =>
    spawn(
      path,
      [
        '--port',
        `${port}`,
        '--bind',
        '127.0.0.1',
        '--save',
        '',
        '--appendonly',
        'no',
        '--dir',
        folder,
      ],
      { stdio: 'ignore' },
    ),
  )
}

export function startMemcached(path: string): Promise<Server> {
  return startServer((port) =>
    // -M: an error when memory is full, instead of evictions.
    spawn(path, ['-l', '127.0.0.1', '-p', `${port}`, '-U', '0', '-M', ...asUser()], {
      stdio: 'ignore',
    }),
  )
}

/** NATS with JetStream. A restart keeps its streams. */
export function startNats(path: string, options: readonly string[] = []): Promise<Server> {
  return startServer((port, folder) =>
    spawn(path, ['-js', '-a', '127.0.0.1', '-p', `${port}`, '-sd', folder, ...options], {
      stdio: 'ignore',
    }),
  )
}

/** memcached refuses to run as root without a user name. */
function asUser(): string[] {
  return process.getuid?.() === 0 ? ['-u', 'nobody'] : []
}

async function startServer(
  launch: (port: number, folder: string) => ChildProcess,
): Promise<Server> {
  const port = await freePort()
  const folder = await mkdtemp(join(tmpdir(), 'svc-server-'))
  let child = launch(port, folder)
  const kill = async () => {
    if (child.exitCode !== null || child.signalCode !== null) return
    const gone = once(child, 'exit')
    child.kill('SIGKILL')
    await gone
  }
  await answers(port)
  return {
    port,
    kill,
    freeze: () => void child.kill('SIGSTOP'),
    thaw: () => void child.kill('SIGCONT'),
    async restart() {
      await kill()
      child = launch(port, folder)
      await answers(port)
    },
    async stop() {
      await kill()
      await rm(folder, { recursive: true, force: true })
    },
  }
}

export async function answers(port: number): Promise<void> {
  const until = performance.now() + UP_WITHIN_MS
  while (performance.now() < until) {
    const up = await new Promise<boolean>((resolve) => {
      const socket = connect(port, '127.0.0.1')
      socket.once('connect', () => resolve(true)).once('error', () => resolve(false))
      socket.once('connect', () => socket.destroy())
    })
    if (up) return
    await sleep(20)
  }
  throw new Error(`nothing answers on port ${port}`)
}
