/** Messages between a measured server and the bench, over the IPC channel. */
import type { Spent } from '../foreign-program.js'

export const CALLBACK = 'https://app.example/callback'

export type Peer = {
  readonly port: number
  /** The client's credentials, as fields of a form. */
  readonly credentials: Readonly<Record<string, string>>
  readonly tokenPath: string
  readonly introspectionPath: string
  readonly clientScope: string
}

/** A code with further parameters of its redemption, such as `code_verifier`. */
export type Code = Readonly<Record<string, string>>

/** Creates the codes and tokens that a timed round uses. */
export interface Mint {
  codes(count: number): Promise<readonly Code[]>
  refreshTokens(count: number): Promise<readonly string[]>
}

export type Asked =
  | { readonly ask: 'spent' }
  | { readonly ask: 'codes' | 'refreshTokens'; readonly count: number }
export type Answered = {
  readonly peer?: Peer
  readonly spent?: Spent
  readonly codes?: readonly Code[]
  readonly refreshTokens?: readonly string[]
}

/** The server side: announces itself and answers until the channel closes. */
export function answerRequests(peer: Peer, mint: Mint): void {
  const say = (answer: Answered) => process.send?.(answer)
  process.on('message', async (asked: Asked) => {
    if (asked.ask === 'spent') {
      const { user, system } = process.cpuUsage()
      const cpuSeconds = (user + system) / 1e6
      say({ spent: { cpuSeconds, rssBytes: process.memoryUsage.rss() } })
    } else if (asked.ask === 'codes') say({ codes: await mint.codes(asked.count) })
    else say({ refreshTokens: await mint.refreshTokens(asked.count) })
  })
  process.on('disconnect', () => process.exit(0))
  say({ peer })
}
