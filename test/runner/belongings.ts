/** What belongs to one run, and its end: folders, and processes wherever the tests started them. */
import { randomBytes } from 'node:crypto'
import {
  chmodSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { serverFolder } from '../support/storage/postgres.js'

/** Everybody may create files, as in /tmp: servers of tests run as other users. */
const FOLDER_MODE = 0o1777
const LOOK_EVERY_MS = 20
const PROCESSES = '/proc'

export interface Belongings {
  /** For data directories of servers, times and logs. */
  readonly folder: string
  /** For the processes of the run. */
  readonly environment: Readonly<Record<string, string>>
  /** The signal that interrupted the run. */
  interrupted(): NodeJS.Signals | undefined
  /** A process that leads a session: what it starts belongs to the run. */
  adopt(pid: number): void
  /** Ends the processes of tests. @returns the command of each. */
  endProcesses(): Promise<readonly string[]>
  /** Ends what is left and removes the folders. Call it when the servers of the runner have ended. */
  end(): Promise<readonly string[]>
}

export function ownBelongings(): Belongings {
  const id = randomBytes(8).toString('hex')
  // Sockets lie in these folders, and their paths are at most 100 characters.
  const folder = mkdtempSync(join(serverFolder(), 'svc-run-'))
  const temporary = mkdtempSync(join(tmpdir(), 'svc-tmp-'))
  for (const made of [folder, temporary]) chmodSync(made, FOLDER_MODE)
  const sessions = new Set<number>()
  let signal: NodeJS.Signals | undefined

  const endAll = (isOurs: (found: Found) => boolean) => {
    if (!existsSync(PROCESSES)) for (const leader of sessions) kill(-leader)
    return endThose(isOurs)
  }
  const isOfTests = ({ session, environment }: Found) =>
    sessions.has(session) || environment.includes(id)
  const isInside = ({ cwd, command }: Found) =>
    [folder, temporary].some((path) => cwd.startsWith(path) || command.includes(path))
  const onSignal = (name: NodeJS.Signals) => {
    signal ??= name
    void endAll(isOfTests)
  }
  process.on('SIGINT', onSignal)
  process.on('SIGTERM', onSignal)

  return {
    folder,
    environment: {
      TMPDIR: temporary,
      TEST_SERVER_FOLDER: folder,
      // A run inside of a test belongs to both.
      TEST_RUN: `${process.env['TEST_RUN'] ?? ''} ${id}`.trim(),
    },
    interrupted: () => signal,
    adopt: (pid) => void sessions.add(pid),
    endProcesses: () => endAll(isOfTests),
    async end() {
      const left = await endAll((found) => isOfTests(found) || isInside(found))
      for (const made of [folder, temporary]) rmSync(made, { recursive: true, force: true })
      process.removeListener('SIGINT', onSignal)
      process.removeListener('SIGTERM', onSignal)
      return left
    },
  }
}

type Found = {
  readonly pid: number
  readonly session: number
  readonly command: string
  readonly environment: string
  readonly cwd: string
}

/** Until none is left: a process can start another one while it is ended. */
async function endThose(isOurs: (found: Found) => boolean): Promise<readonly string[]> {
  const ended = new Map<number, string>()
  for (;;) {
    const found = processes().filter(isOurs)
    if (found.length === 0) return [...ended.values()]
    for (const { pid, command } of found) {
      ended.set(pid, command)
      kill(pid)
    }
    await sleep(LOOK_EVERY_MS)
  }
}

/** The processes of this machine, without this one. Empty if the system does not list them. */
function processes(): Found[] {
  if (!existsSync(PROCESSES)) return []
  return readdirSync(PROCESSES)
    .map(Number)
    .filter((pid) => pid > 0 && pid !== process.pid)
    .flatMap((pid) => look(pid) ?? [])
}

function look(pid: number): Found | undefined {
  const at = join(PROCESSES, String(pid))
  try {
    // The command in parentheses can contain spaces: state, parent, group and session follow it.
    const stat = readFileSync(join(at, 'stat'), 'utf8')
      .replace(/^.*\) /s, '')
      .split(' ')
    // A zombie has ended.
    if (stat[0] === 'Z' || stat[0] === 'X') return undefined
    return {
      pid,
      session: Number(stat[3]),
      command: readFileSync(join(at, 'cmdline'), 'utf8').replaceAll('\0', ' ').trim(),
      environment: readFileSync(join(at, 'environ'), 'utf8'),
      cwd: readlinkSync(join(at, 'cwd')),
    }
  } catch {
    // It has ended, or belongs to another user.
    return undefined
  }
}

function kill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch {
    // It has ended.
  }
}
