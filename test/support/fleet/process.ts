/** One process of a fleet: `svc serve` with its own variables. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, openSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'
import { Client } from 'undici'
import { countStart } from '../service/started.js'
import { until } from '../service/watch.js'

/** Begins a line of the log that names an answer which the OpenAPI document does not describe. */
export const CONTRACT_FAULT = 'contract fault: '

const ENDS_WITHIN_MS = 60_000
/** A TLS handshake each time: more often would take the processor from what starts. */
const ASKED_EVERY_MS = 150

export interface ProcessOptions {
  /** For messages, such as `auth 1`. */
  readonly name: string
  /** For the count of starts. Default: the test file of this process. */
  readonly by?: string | undefined
  readonly port: number
  readonly environment: Readonly<Record<string, string>>
  /** The compiled tree. Default: the tree of the tests. */
  readonly tree?: string | undefined
  /** The CA of its certificate, where it serves HTTP/2 with TLS. */
  readonly ca?: string | undefined
  /** Receives each line of its log, at the level `debug`, without the plain notes of its start. */
  readonly onLog?: ((line: string) => void) | undefined
  /** A file that its output is added to, instead of the memory of this process. Not with `onLog`. */
  readonly logPath?: string | undefined
  /** In a process that serves again (hosts.ts): the service compares its answers with the OpenAPI document. */
  readonly isWatched?: boolean | undefined
  /** Prefix of the command, such as a program that changes the clock. */
  readonly wrapper?: readonly string[] | undefined
}

export interface FleetProcess {
  readonly name: string
  readonly port: number
  readonly pid: number
  readonly logPath: string | undefined
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
  countStart('service', options.by)
  const { name, port, environment, tree = TREE, ca, onLog, logPath, wrapper = [] } = options
  const [command = '', ...words] = [
    ...wrapper,
    process.execPath,
    join(tree, 'runtime/main.js'),
    'serve',
    ...(onLog === undefined ? [] : ['--log-level', 'debug']),
  ]
  const log = logPath === undefined ? 'pipe' : openSync(logPath, 'a')
  const child: ChildProcess = spawn(command, words, {
    cwd: '/',
    stdio: ['ignore', log, log],
    env: { PATH: process.env['PATH'], HOME: '/nonexistent', ...environment },
  })
  if (typeof log === 'number') closeSync(log)
  let text = ''
  const output = () => (logPath === undefined ? text : readFileSync(logPath, 'utf8'))
  for (const stream of [child.stdout, child.stderr]) {
    if (stream === null) continue
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
  const status = () => statusOf(port, ca)
  return {
    name,
    port,
    pid: child.pid!,
    logPath,
    output,
    status,
    async ready() {
      await until(`the start of ${name}`, async () => {
        if (isOver()) throw new Error(`${name} ended:\n${output()}`)
        if ((await status()) === 200) return true
        await sleep(ASKED_EVERY_MS)
        return false
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

/** Of /health/ready, or 0 where nothing answers. @param ca where it serves with TLS */
export async function statusOf(port: number, ca: string | undefined): Promise<number> {
  const address = `${ca === undefined ? 'http' : 'https'}://localhost:${port}`
  const client = new Client(address, { allowH2: true, connect: ca === undefined ? {} : { ca } })
  try {
    const { statusCode, body } = await client.request({ method: 'GET', path: PATH })
    await body.dump()
    return statusCode
  } catch {
    return 0
  } finally {
    await client.destroy()
  }
}
