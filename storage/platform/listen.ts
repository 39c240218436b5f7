/**
 * LISTEN on a separate connection. Notifications that are sent while the connection is down are lost, so they are
 * only hints, and subscribers also get a call when they have to read the current state.
 */
import { Client, type ClientConfig } from 'pg'
import type { Logger } from '../../runtime/kernel/log.js'

const RECONNECT_MS_MIN = 100
const RECONNECT_MS_MAX = 10_000
/** Interval of statements that detect a dead connection. */
const HEARTBEAT_MS = 15_000
const HEARTBEAT_LIMIT_MS = 5_000

/** Valid channel names, which need no quoting in statements. */
export const CHANNEL = /^[a-z_][a-z0-9_]{0,62}$/

export interface Subscription {
  /** Called for each notification, in order. */
  readonly notified: (payload: string) => void
  /**
   * Called when listening has started, also after a reconnect, because earlier notifications may be lost. A query
   * that starts in this call sees all transactions that committed before.
   */
  readonly caughtUp?: (() => void) | undefined
}

export interface Listener {
  /**
   * Resolves when the server listens, or immediately during a reconnect. The returned function ends the subscription.
   * @throws if the first connection fails.
   */
  listen(channel: string, subscription: Subscription): Promise<() => void>
  readonly connected: boolean
  close(): Promise<void>
}

interface ListenerOptions {
  readonly options: ClientConfig
  readonly log: Logger
}

export function createListener({ options, log }: ListenerOptions): Listener {
  const subscriptions = new Map<string, Set<Subscription>>()
  let client: Client | undefined
  let connecting: Promise<void> | undefined
  /** Failures before the first connection are thrown to the caller. Later ones lead to a reconnect. */
  let started = false
  /** One statement at a time. */
  let lastStatement: Promise<unknown> = Promise.resolve()
  let retry: NodeJS.Timeout | undefined
  let heartbeat: NodeJS.Timeout | undefined
  let delayMs = RECONNECT_MS_MIN
  let closed = false

  async function connect(): Promise<void> {
    const next = new Client(options)
    next.on('error', () => undefined)
    next.on('notification', ({ channel, payload }) => {
      for (const { notified } of subscriptions.get(channel) ?? []) notified(payload ?? '')
    })
    try {
      await next.connect()
      for (const channel of subscriptions.keys()) await next.query(`listen ${channel}`)
    } catch (error) {
      next.end().catch(() => undefined)
      throw error
    }
    if (closed) return next.end()
    client = next
    started = true
    delayMs = RECONNECT_MS_MIN
    next.once('end', () => lost(next))
    heartbeat = setInterval(() => beat(next), HEARTBEAT_MS).unref()
    for (const channelSubscriptions of subscriptions.values())
      for (const subscription of channelSubscriptions) subscription.caughtUp?.()
  }

  function execute(current: Client, text: string): Promise<unknown> {
    const mine = lastStatement.then(() => current.query(text))
    lastStatement = mine.catch(() => undefined)
    return mine
  }

  function beat(current: Client): void {
    const stream = (current as unknown as { connection: { stream: { destroy(): void } } })
      .connection.stream
    const timer = setTimeout(() => stream.destroy(), HEARTBEAT_LIMIT_MS)
    const stop = () => clearTimeout(timer)
    execute(current, 'select 1').then(stop, stop)
  }

  function lost(current: Client): void {
    if (client !== current) return
    client = undefined
    clearInterval(heartbeat)
    if (closed) return
    log.warn('the LISTEN connection was lost')
    reconnectLater()
  }

  function reconnectLater(): void {
    if (closed || retry) return
    retry = setTimeout(() => {
      retry = undefined
      connecting = connect()
      connecting.then(
        () => log.info('listening again'),
        (error: unknown) => {
          log.warn({ err: error, delayMs }, 'cannot listen')
          reconnectLater()
        },
      )
    }, delayMs)
    delayMs = Math.min(delayMs * 2, RECONNECT_MS_MAX)
  }

  return {
    get connected() {
      return client !== undefined
    },
    async listen(channel, subscription) {
      if (!CHANNEL.test(channel)) throw new Error(`${channel} is not a valid channel name`)
      if (closed) throw new Error('the listener is closed')
      const channelSubscriptions = subscriptions.get(channel) ?? new Set()
      subscriptions.set(channel, channelSubscriptions.add(subscription))
      const leave = () => {
        if (!channelSubscriptions.delete(subscription) || channelSubscriptions.size > 0) return
        subscriptions.delete(channel)
        if (client) execute(client, `unlisten ${channel}`).catch(() => undefined)
      }
      if (client) {
        const current = client
        // If the connection dies, the next one listens on all channels.
        await execute(current, `listen ${channel}`).catch(() => undefined)
        if (client === current) subscription.caughtUp?.()
      } else if (!started) {
        connecting ??= connect()
        await connecting.catch((error: unknown) => {
          connecting = undefined
          leave()
          throw error
        })
      }
      return leave
    },
    async close() {
      closed = true
      clearTimeout(retry)
      clearInterval(heartbeat)
      await connecting?.catch(() => undefined)
      await client?.end().catch(() => undefined)
    },
  }
}
