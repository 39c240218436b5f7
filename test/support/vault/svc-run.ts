/** `svc run` and `svc egress` as processes of the built command. */
import { type ChildProcess, type ChildProcessByStdio, spawn } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Readable, Writable } from 'node:stream'
import type { EgressHouse, Setting } from './egress.js'

const MAIN = new URL('../../../runtime/main.js', import.meta.url).pathname

export type Ran = {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
  readonly out: string
  readonly err: string
}

export interface Running {
  readonly child: ChildProcess
  readonly ended: Promise<Ran>
  /** The output, once it contains the text. */
  printed(pattern: RegExp): Promise<string>
}

export interface SvcRun {
  /** The home folder of the user. */
  readonly home: string
  readonly tokenFile: string
  begin(words: readonly string[], more?: Readonly<Record<string, string>>): Running
  /** `svc run` with these options and this command. */
  run(options: readonly string[], command: readonly string[]): Promise<Ran>
  /** The same with pipes, like an MCP host; the caller ends it. */
  host(command: readonly string[]): ChildProcessByStdio<Writable, Readable, null>
  egress(...words: string[]): Promise<Ran>
  end(): Promise<void>
}

export async function svcRunOf(
  { running }: EgressHouse,
  { delegated }: Pick<Setting, 'delegated'>,
): Promise<SvcRun> {
  const home = await mkdtemp(join(tmpdir(), 'svc-svcRun-'))
  const tokenFile = join(home, 'token')
  await writeFile(tokenFile, `${delegated}\n`, { mode: 0o600 })
  const caPath = join(home, 'service-ca.pem')
  await writeFile(caPath, running.ca ?? '')
  const access = ['--url', running.baseUrl, '--token-file', tokenFile]
  const children = new Set<ChildProcess>()
  const env = {
    PATH: process.env['PATH'],
    HOME: home,
    ...(running.ca === undefined ? {} : { NODE_EXTRA_CA_CERTS: caPath }),
  }

  function begin(words: readonly string[], more: Readonly<Record<string, string>> = {}): Running {
    const child = spawn(process.execPath, [MAIN, ...words], {
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { ...env, ...more },
    })
    children.add(child)
    let [out, err] = ['', '']
    child.stdout.setEncoding('utf8').on('data', (text: string) => (out += text))
    child.stderr.setEncoding('utf8').on('data', (text: string) => (err += text))
    const ended = new Promise<Ran>((resolve, reject) => {
      child.once('error', reject)
      child.once('close', (code, signal) => {
        children.delete(child)
        resolve({ code, signal, out, err })
      })
    })
    return {
      child,
      ended,
      printed: (pattern) =>
        new Promise((resolve, reject) => {
          const look = () => {
            if (pattern.test(out)) resolve(out)
          }
          child.stdout.on('data', look)
          look()
          void ended.then(() => reject(new Error(`ended without ${pattern}:\n${out}${err}`)))
        }),
    }
  }

  return {
    home,
    tokenFile,
    begin,
    host: (command) =>
      spawn(process.execPath, [MAIN, 'run', ...access, '--', ...command], {
        stdio: ['pipe', 'pipe', 'inherit'],
        env,
      }),
    run: (options, command) => begin(['run', ...access, ...options, '--', ...command]).ended,
    egress: (...words) => begin(['egress', ...access, ...words]).ended,
    async end() {
      for (const each of children) each.kill('SIGKILL')
      await rm(home, { recursive: true, force: true })
    },
  }
}
