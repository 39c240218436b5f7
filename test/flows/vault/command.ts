/** The `svc` command as a process, started like an operator does. */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { notThrough } from '../../support/fleet/through.js'
import { freePort, type TestService } from '../../support/service/settings.js'
import { trustOfPrograms } from '../../support/service/trust.js'

const MAIN = fileURLToPath(new URL('../../../runtime/main.js', import.meta.url))
const READY_WITHIN_MS = 90_000
const END_WITHIN_MS = 60_000

export interface Command {
  readonly child: ChildProcess
  /** The output so far. */
  output(): string
  /** Waits for the banner. @throws with the output on an early exit or timeout. */
  ready(): Promise<void>
  /** Waits for the exit. @returns the exit code or the name of the signal. */
  ended(): Promise<number | string>
}

export interface CommandOptions {
  readonly args?: readonly string[] | undefined
  readonly environment?: Readonly<Record<string, string>> | undefined
  readonly cwd?: string | undefined
  /** Prefix of the node command, such as a program that changes the user. */
  readonly wrapper?: readonly string[] | undefined
  /** Another Node.js than the tests run on. */
  readonly node?: string | undefined
}

/** In its own process group, so that a test can signal it like a terminal. Ends with the test. */
export function svc(
  t: { teardown(end: () => void): void },
  { args = ['serve'], environment, cwd, wrapper = [], node = process.execPath }: CommandOptions,
): Command {
  if (args[0] === 'serve') notThrough('it starts its own process')
  const [program = '', ...rest] = [...wrapper, node, MAIN, ...args]
  const child = spawn(program, rest, {
    cwd: cwd ?? '/',
    env: {
      PATH: process.env['PATH'],
      HOME: '/nonexistent',
      // Another user cannot write the coverage folder.
      ...(wrapper.length > 0 ? { NODE_V8_COVERAGE: '/tmp/svc-coverage-of-others' } : {}),
      ...trustOfPrograms(),
      ...environment,
    },
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
  })
  t.teardown(() => {
    if (child.exitCode === null) child.kill('SIGKILL')
  })
  let text = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream?.setEncoding('utf8').on('data', (chunk: string) => {
      text += chunk
    })
  }
  const closed = once(child, 'close').then(() => child.exitCode ?? child.signalCode ?? 'unknown')
  const within = async <T>(ms: number, what: string, work: Promise<T>): Promise<T> => {
    let timer: NodeJS.Timeout | undefined
    const late = new Promise<never>((_, reject) => {
      timer = setTimeout(() => reject(new Error(`${what} took too long:\n${text}`)), ms)
    })
    return Promise.race([work, late]).finally(() => clearTimeout(timer))
  }
  const banner = new Promise<void>((resolve, reject) => {
    const look = () => {
      if (/svc is ready/.test(text) && /next /.test(text)) resolve()
    }
    child.stdout?.on('data', look)
    void closed.then((code) =>
      reject(new Error(`ended with ${code} before it was ready:\n${text}`)),
    )
  })
  banner.catch(() => undefined)
  return {
    child,
    output: () => text,
    ready: () => within(READY_WITHIN_MS, 'the start', banner),
    ended: () => within(END_WITHIN_MS, 'the end', closed),
  }
}

/** Another process of the deployment of a running service, when it is ready. */
export async function svcBeside(
  t: { teardown(end: () => void): void },
  { db, kms, issuer }: Pick<TestService, 'db' | 'kms' | 'issuer'>,
  environment: Readonly<Record<string, string>>,
): Promise<Command> {
  const command = svc(t, {
    environment: {
      ...kms.environment,
      DATABASE_URL: db.url,
      SVC_OIDC__ISSUER_URL: issuer,
      SVC_SERVER__PORT: String(await freePort()),
      SVC_DATABASE__MAX_CONNECTIONS: '8',
      SVC_DATABASE__MIN_CONNECTIONS: '0',
      ...environment,
    },
  })
  await command.ready()
  return command
}

/** The value the banner prints for a row. */
export function shown(output: string, row: string): string {
  return new RegExp(`^ *${row} +(\\S+)`, 'm').exec(output)?.[1] ?? ''
}

/** Living processes whose command line or environment names the folder. Zombies do not count. */
export function processesOf(folder: string): string[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid)
    .flatMap((pid) => {
      try {
        const command = readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ')
        return command.includes(folder) ? [`${pid} ${command}`] : []
      } catch {
        return []
      }
    })
}

export function isRoot(): boolean {
  return process.getuid?.() === 0
}

/** Runs a program as an ordinary user who can still read the checkout of root. */
export function asOrdinaryUser(): readonly string[] {
  return [
    'setpriv',
    '--reuid=65534',
    '--regid=65534',
    '--clear-groups',
    '--inh-caps=+dac_read_search',
    '--ambient-caps=+dac_read_search',
  ]
}

/** Gives a folder to the ordinary user. */
export function giveAway(folder: string): void {
  execFileSync('chown', ['65534:65534', folder])
}
