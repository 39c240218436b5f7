/**
 * LISTEN on a connection of its own. A notification wakes; it carries nothing that must not be
 * lost, because those sent while the connection was down are. So whoever subscribes is also told
 * when it has to look for itself.
 */
import { Client, type ClientConfig } from 'pg'
import type { Logger } from '../../runtime/kernel/log.js'

const RECONNECT_MS_MIN = 100
const RECONNECT_MS_MAX = 10_000
/** A silent connection may be dead on the way: say something now and then. */
const HEARTBEAT_MS = 15_000
const HEARTBEAT_LIMIT_MS = 5_000

/** Channels are names of ours: they stand in the statement as they are. */
const CHANNEL = /^[a-z_][a-z0-9_]{0,62}$/

export interface Subscription {
  /** Called for each notification, in order. */
  readonly notified: (payload: string) => void
  /**
   * Called each time listening has begun, the first time and after every reconnect: something may
   * have happened before. What has committed by now is visible to a query started from here.
   */
  readonly caughtUp?: (() => void) | undefined
}

export interface Listener {
  /**
   * Resolves once the server listens, or at once while the connection is being made again. The
   * returned function ends the subscription.
   * @throws when the first connection cannot be made.
   */
  listen(channel: string, subscription: Subscription): Promise<() => void>
  readonly connected: boolean
  close(): Promise<void>
}

export interface ListenerOptions {
  readonly options: ClientConfig
  readonly log: Logger
}

export function createListener({ options, log }: ListenerOptions): Listener {
  const subscriptions = new Map<string, Set<Subscription>>()
  let client: Client | undefined
  let connecting: Promise<void> | undefined
  /** Until the first connection stands, its failures are the caller's; later ones are ours. */
  let started = false
  /** One statement at a time. */
  let said: Promise<unknown> = Promise.resolve()
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
    for (const held of subscriptions.values()) for (const one of held) one.caughtUp?.()
  }

  function say(current: Client, text: string): Promise<unknown> {
    const mine = said.then(() => current.query(text))
    said = mine.catch(() => undefined)
    return mine
  }

  function beat(current: Client): void {
    const stream = (current as unknown as { connection: { stream: { destroy(): void } } })
      .connection.stream
    const timer = setTimeout(() => stream.destroy(), HEARTBEAT_LIMIT_MS)
    const stop = () => clearTimeout(timer)
    say(current, 'select 1').then(stop, stop)
  }

  function lost(current: Client): void {
    if (client !== current) return
    client = undefined
    clearInterval(heartbeat)
    if (closed) return
    log.warn('the listening connection was lost')
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
      if (!CHANNEL.test(channel)) throw new Error(`${channel} is not the name of a channel`)
      if (closed) throw new Error('the listener is closed')
      const held = subscriptions.get(channel) ?? new Set()
      subscriptions.set(channel, held.add(subscription))
      const leave = () => {
        if (!held.delete(subscription) || held.size > 0) return
        subscriptions.delete(channel)
        if (client) say(client, `unlisten ${channel}`).catch(() => undefined)
      }
      if (client) {
        const current = client
        // When the connection dies under it, the next one listens to everything.
        await say(current, `listen ${channel}`).catch(() => undefined)
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
