/** Runs a program with the terminal, signals and exit status of this process. */
import { type ChildProcess, spawn } from 'node:child_process'
import { constants } from 'node:os'
import type { Environment } from '../../kernel/config/environment.js'

/** Exit codes of shells. */
const EXIT_NOT_FOUND = 127
const EXIT_NOT_RUNNABLE = 126
const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT', 'SIGUSR2', 'SIGCONT'] as const
/** The terminal sends these to the whole process group, so the child has received them. */
const FROM_TERMINAL = new Set<NodeJS.Signals>(['SIGINT', 'SIGQUIT'])

export type ChildEnd =
  | { readonly tag: 'exited'; readonly code: number }
  | { readonly tag: 'killed'; readonly signal: NodeJS.Signals }
  | { readonly tag: 'not_started'; readonly code: number; readonly detail: string }

type ChildJob = {
  readonly command: string
  readonly args: readonly string[]
  readonly environment: Environment
  /** This process has a terminal. */
  readonly isInteractive: boolean
}

export async function runChild({
  command,
  args,
  environment,
  isInteractive,
}: ChildJob): Promise<ChildEnd> {
  let child: ChildProcess | undefined
  const pass = (signal: NodeJS.Signals) => {
    if (!isInteractive || !FROM_TERMINAL.has(signal)) child?.kill(signal)
  }
  // Before the spawn: a signal during the start must not end this process alone.
  for (const signal of SIGNALS) process.on(signal, pass)
  try {
    const started = spawn(command, args, { stdio: 'inherit', env: { ...environment } })
    child = started
    return await new Promise<ChildEnd>((resolve) => {
      started.once('error', (error: NodeJS.ErrnoException) => {
        const code = error.code === 'ENOENT' ? EXIT_NOT_FOUND : EXIT_NOT_RUNNABLE
        resolve({ tag: 'not_started', code, detail: `${command}: ${error.code ?? error.message}` })
      })
      started.once('exit', (code, signal) => {
        resolve(signal === null ? { tag: 'exited', code: code ?? 0 } : { tag: 'killed', signal })
      })
    })
  } finally {
    for (const signal of SIGNALS) process.off(signal, pass)
  }
}

/** The exit code of shells for a program killed by a signal. */
export function codeOfSignal(signal: NodeJS.Signals): number {
  return 128 + constants.signals[signal]
}
