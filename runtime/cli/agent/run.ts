/** The context of the sub-commands of `svc agent`. */
import type { Clock } from '../../kernel/clock.js'
import type { CommandHost } from '../output.js'

/** What the command needs of the process. */
export interface AgentCommandHost extends CommandHost {
  /** The default address of the service. */
  readonly baseUrl: () => string | Promise<string>
  /** The default path of the identity file. */
  readonly file: string
  /** Whether `err` is a terminal, where a progress line can be overwritten. */
  readonly terminal: boolean
  readonly clock: Clock
  readonly signal: AbortSignal
}

/** The host, and the options that all sub-commands share. */
export type Run = AgentCommandHost & { readonly json: boolean }
