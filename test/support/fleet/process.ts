/** One process of a fleet: `svc serve` with variables of its own. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { get as getPlain } from 'node:http'
import { connect as connectHttp2 } from 'node:http2'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { until } from '../service/watch.js'

const READY_WITHIN_MS = 120_000
const ENDS_WITHIN_MS = 60_000

export interface ProcessOptions {
  /** For messages, such as `auth 1`. */
  readonly name: string
  readonly port: number
  readonly environment: Readonly<Record<string, string>>
  /** The compiled tree. Default: that of the tests. */
  readonly tree?: string | undefined
  /** The CA of its certificate, where it serves HTTP/2 with TLS. */
  readonly ca?: string | undefined
  /** Receives each line of its log, at the level `debug`, without the plain notes of its start. */
  readonly onLog?: ((line: string) => void) | undefined
  /** Prefix of the command, such as a program that changes the clock. */
  readonly wrapper?: readonly string[] | undefined
}

export interface FleetProcess {
  readonly name: string
  readonly port: number
  readonly pid: number
  /** Everything that it has printed. */
  output(): string
  ready(): Promise<void>
  /** The status of /health/ready, or 0 where nothing answers. */
  status(): Promise<number>
  /** SIGTERM. @returns the exit code. */
  terminate(): Promise<number>
  /** SIGKILL. */
  kill(): Promise<void>
}

const TREE = new URL('../../../', import.meta.url).pathname

/** Starts it without waiting until it is ready. */
export function startProcess(options: ProcessOptions): FleetProcess {
  const { name, port, environment, tree = TREE, ca, onLog, wrapper = [] } = options
  const [command = '', ...words] = [
    ...wrapper,
    process.execPath,
    join(tree, 'runtime/main.js'),
    'serve',
    ...(onLog === undefined ? [] : ['--log-level', 'debug']),
  ]
  const child: ChildProcess = spawn(command, words, {
    cwd: '/',
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { PATH: process.env['PATH'], HOME: '/nonexistent', ...environment },
  })
  let text = ''
  for (const stream of [child.stdout!, child.stderr!]) {
    stream.setEncoding('utf8').on('data', (part: string) => (text += part))
    if (onLog !== undefined) {
      createInterface({ input: stream }).on('line', (line) => {
        if (line.startsWith('{')) onLog(line)
      })
    }
  }
  const exited = once(child, 'exit')
  const isOver = () => child.exitCode !== null || child.signalCode !== null
  const kill = async () => {
    if (!isOver()) child.kill('SIGKILL')
    await exited
  }
  const status = () => (ca === undefined ? plainStatus(port) : http2Status(port, ca))
  return {
    name,
    port,
    pid: child.pid!,
    output: () => text,
    status,
    async ready() {
      await until(`the start of ${name}`, READY_WITHIN_MS, async () => {
        if (isOver()) throw new Error(`${name} ended:\n${text}`)
        return (await status()) === 200
      })
    },
    async terminate() {
      child.kill('SIGTERM')
      const late = setTimeout(() => child.kill('SIGKILL'), ENDS_WITHIN_MS)
      await exited
      clearTimeout(late)
      return child.exitCode ?? -1
    },
    kill,
  }
}

const PATH = '/health/ready'

function plainStatus(port: number): Promise<number> {
  return new Promise((resolve) => {
    const asked = getPlain({ host: '127.0.0.1', port, path: PATH, agent: false }, (answer) => {
      answer.resume()
      resolve(answer.statusCode ?? 0)
    })
    asked.once('error', () => resolve(0))
  })
}

function http2Status(port: number, ca: string): Promise<number> {
  return new Promise((resolve) => {
    const session = connectHttp2(`https://localhost:${port}`, { ca })
    const end = (status: number) => {
      session.destroy()
      resolve(status)
    }
    session.once('error', () => end(0))
    const stream = session.request({ ':path': PATH })
    stream.once('error', () => end(0))
    stream.once('response', (head) => end(Number(head[':status'])))
    stream.resume()
  })
}
