/** Options and helpers that all transports share. */
import type { HttpExchangeHandler, Listener } from '../http-exchange.js'
import type { ConnectionBounds } from './bounds.js'

export interface ListenOptions {
  /** Bounds of what connections hold, shared by the listeners of a gateway. */
  readonly bounds?: ConnectionBounds | undefined
  readonly host: string
  /** 0 picks a free port. */
  readonly port: number
  readonly handler: HttpExchangeHandler
  /** Several threads listen on the port, and the kernel divides the connections between them (SO_REUSEPORT). */
  readonly isShared?: boolean | undefined
  /** Time that a client may leave its answer unread. Default: `UNREAD_MS_MAX`. */
  readonly unreadMs?: number | undefined
  /** Milliseconds after which an idle connection is closed: `server.keep_alive_secs`. The native parser has its own. */
  readonly idleMs?: number | undefined
  /**
   * Milliseconds at most in which a drain leaves idle connections to their clients after the port is closed. A proxy
   * that sends a request on a kept connection still gets an answer, which closes the connection. Default: 0.
   */
  readonly lingerMs?: number | undefined
}

/** Default of `server.keep_alive_secs`, longer than load balancers keep connections (60 s). */
export const IDLE_MS = 75_000

/** uWebSockets closes idle connections after this time, whatever the settings say. */
export const NATIVE_KEEP_ALIVE_SECS = 10

/** Response fields that may occur more than once (RFC 9110 section 5.3, RFC 6265 section 3). */
export const REPEATABLE_FIELDS: ReadonlySet<string> = new Set([
  'set-cookie',
  'link',
  'vary',
  'allow',
  'cache-control',
])

/** SO_REUSEPORT, from Node 22.12. The type definitions of older versions lack it. */
export const REUSE_PORT = { reusePort: true }

/** The listener could not be opened. The message names the address and the reason. */
export class ListenFailed extends Error {
  override readonly name = 'ListenFailed'
}

/** Counts open exchanges, for the drain. */
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

  /** Resolves with true when no exchange is open, or with false after `withinMs`. */
  async none(withinMs: number): Promise<boolean> {
    if (this.open === 0) return true
    if (withinMs <= 0) return false
    return new Promise<boolean>((resolve) => {
      const timer = setTimeout(() => resolve(false), withinMs)
      this.waiting.push(() => {
        clearTimeout(timer)
        resolve(true)
      })
    })
  }
}

/** The URL of a listener, with brackets for IPv6 and a loopback address for 0.0.0.0 and `::`. */
export function urlOf(scheme: 'http' | 'https', host: string, port: number): string {
  const callable = host === '0.0.0.0' ? '127.0.0.1' : host === '::' ? '::1' : host
  const name = callable.includes(':') ? `[${callable}]` : callable
  return `${scheme}://${name}:${port}`
}

export type { Listener }
