/** What the sub-commands of `svc agent` are given. */
import type { Clock } from '../../kernel/clock.js'

/** What the command needs of the process. */
export interface AgentCommandHost {
  /** Where the service runs when nothing says so. */
  readonly baseUrl: () => string | Promise<string>
  /** Where the identity is kept when nothing says so. */
  readonly file: string
  readonly out: (text: string) => void
  readonly err: (text: string) => void
  /** Whether `err` is a terminal, where a line can be written over. */
  readonly terminal: boolean
  readonly exitWith: (code: number) => void
  readonly clock: Clock
  readonly signal: AbortSignal
}

/** With what every sub-command is told. */
export type Run = AgentCommandHost & { readonly json: boolean }
