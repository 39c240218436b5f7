/** What every transport offers and needs. */
import type { HttpExchangeHandler, Listener } from '../http-exchange.js'

export interface ListenOptions {
  readonly host: string
  /** 0 picks a free port. */
  readonly port: number
  readonly handler: HttpExchangeHandler
  /** How long a client may read nothing of its answer. Default: `UNREAD_MS_MAX`. */
  readonly unreadMs?: number | undefined
}

/** Response fields that may occur more than once (RFC 9110 section 5.3, RFC 6265 section 3). */
export const REPEATABLE_FIELDS: ReadonlySet<string> = new Set([
  'set-cookie',
  'link',
  'vary',
  'allow',
  'cache-control',
])

/** The listener could not be opened; the message says which address and why. */
export class ListenFailed extends Error {
  override readonly name = 'ListenFailed'
}

/** The counts a drain needs: open exchanges, and somebody waiting for none. */
export class OpenExchanges {
  private open = 0
  private readonly waiting: (() => void)[] = []

  get count(): number {
    return this.open
  }

  begin(): void {
    this.open += 1
  }

  finish(): void {
    this.open -= 1
    if (this.open > 0) return
    for (const wake of this.waiting.splice(0)) wake()
  }

  /** Resolves when no exchange is open, or with false when the time is over. */
  async none(withinMs: number): Promise<boolean> {
    if (this.open === 0) return true
    return new Promise<boolean>((resolve) => {
      const timer = setTimeout(() => resolve(false), withinMs)
      this.waiting.push(() => {
        clearTimeout(timer)
        resolve(true)
      })
    })
  }
}

/** `http://[::1]:8080`: brackets where the address needs them, a name one can call for 0.0.0.0. */
export function urlOf(scheme: 'http' | 'https', host: string, port: number): string {
  const callable = host === '0.0.0.0' ? '127.0.0.1' : host === '::' ? '::1' : host
  const name = callable.includes(':') ? `[${callable}]` : callable
  return `${scheme}://${name}:${port}`
}

export type { Listener }
