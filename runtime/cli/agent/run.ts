/** The context of the sub-commands of `svc agent`. */
import type { Clock } from '../../kernel/clock.js'

/** What the command needs of the process. */
export interface AgentCommandHost {
  /** The default address of the service. */
  readonly baseUrl: () => string | Promise<string>
  /** The default path of the identity file. */
  readonly file: string
  readonly out: (text: string) => void
  readonly err: (text: string) => void
  /** Whether `err` is a terminal, where a progress line can be overwritten. */
  readonly terminal: boolean
  readonly exitWith: (code: number) => void
  readonly clock: Clock
  readonly signal: AbortSignal
}

/** The host, and the options that all sub-commands share. */
export type Run = AgentCommandHost & { readonly json: boolean }
