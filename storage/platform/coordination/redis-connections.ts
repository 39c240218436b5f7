/**
 * Connections to one Redis, to a Redis Cluster, and to the primary that Sentinel names. They end with the first failure
 * that is not a reply: the circuit breaker opens new ones, which finds the primary again.
 */
import { createClient, createClientPool, createCluster, ErrorReply, RESP_TYPES } from 'redis'
import type { Logger } from '../../../runtime/kernel/log.js'
import type { RedisSettings } from '../settings.js'
import { within } from './circuit.js'

export interface RedisOptions {
  readonly settings: RedisSettings
  readonly log: Logger
}

type Command = readonly (string | Uint8Array)[]

interface RedisConnections {
  /** Sends a command to the server of the key. Strings in the reply are bytes. */
  send(key: string, command: Command): Promise<unknown>
  /** Closes all connections. Pending commands fail. */
  destroy(): void
}

const RECONNECT_MS_MAX = 2_000
/** A slot that has moved costs one redirection. More happen only while slots move. */
const REDIRECTIONS_MAX = 4
/** How often Sentinel is asked for the primary: an old one that is cut off does not know that it was replaced. */
const SENTINEL_EVERY_MS = 1_000
/** The part of `command_timeout_secs` that each Sentinel has for its answer: the primary is asked after it. */
const SENTINEL_SHARE = 0.75
/** A write, so that connections to a replica do not count as usable. */
const PROBE_KEY = 'svc:start'
const PROBE_WRITE = ['SET', PROBE_KEY, '1', 'EX', '1']
const BYTES = { typeMapping: { [RESP_TYPES.BLOB_STRING]: Buffer } }

/** Replies of a server in whose place another one is or becomes the primary. */
const MISPLACED = /^(READONLY|MASTERDOWN|LOADING|CLUSTERDOWN)\b/

/** Whether an error is the reply of a server to the command, and its connections are good. */
export function isReply(error: unknown): boolean {
  return error instanceof ErrorReply && !MISPLACED.test(error.message)
}

/** Opens connections that have responded. @throws when a server does not respond, or accepts no writes. */
export async function openRedis(options: RedisOptions): Promise<RedisConnections> {
  const { settings, log } = options
  if (settings.mode === 'cluster') return openCluster(options)
  if (settings.mode === 'sentinel') return openSentinel(options)
  if (settings.url === undefined) throw new Error('redis.url is not set')
  return openPool({ url: settings.url, settings, probe: ['PING'], log })
}

async function openPool({
  url,
  settings,
  probe,
  log,
}: {
  readonly url: string
  readonly settings: RedisSettings
  readonly probe: Command
  readonly log: Logger
}): Promise<RedisConnections> {
  const commandMs = settings.command_timeout_secs * 1000
  const life = { isOpen: false }
  const pool = createClientPool(
    { url, disableOfflineQueue: true, socket: socketOf(settings, life) },
    { minimum: 1, maximum: settings.pool_size, acquireTimeout: commandMs },
  )
  pool.on('error', (error: unknown) => log.warn({ err: error }, 'redis'))
  const send = (command: Command) => pool.sendCommand(wordsOf(command), BYTES)
  try {
    await within(commandMs, async () => {
      await pool.connect()
      await send(probe)
    })
  } catch (error) {
    pool.destroy()
    throw error
  }
  life.isOpen = true
  return { send: (_, command) => send(command), destroy: () => pool.destroy() }
}

/** One connection to each primary. */
async function openCluster({ settings, log }: RedisOptions): Promise<RedisConnections> {
  const { username, password, tls } = settings
  const life = { isOpen: false }
  const socket = { ...socketOf(settings, life), ...(tls ? { tls } : {}) }
  const cluster = createCluster({
    rootNodes: settings.nodes.map((node) => ({ url: urlOf(node, settings) })),
    defaults: {
      ...(username === undefined ? {} : { username }),
      ...(password === undefined ? {} : { password }),
      disableOfflineQueue: true,
      socket,
    },
    maxCommandRedirections: REDIRECTIONS_MAX,
  })
  cluster.on('error', (error: unknown) => log.warn({ err: error }, 'redis'))
  const send = (key: string, command: Command) =>
    cluster.sendCommand(key, false, wordsOf(command), BYTES)
  try {
    await within(settings.command_timeout_secs * 1000, async () => {
      await cluster.connect()
      await send(PROBE_KEY, PROBE_WRITE)
    })
  } catch (error) {
    cluster.destroy()
    throw error
  }
  life.isOpen = true
  return { send, destroy: () => cluster.destroy() }
}

/** A pool to the primary. It is closed when Sentinel names another primary. */
async function openSentinel({ settings, log }: RedisOptions): Promise<RedisConnections> {
  const sentinels = openSentinels(settings, log)
  try {
    const primary = await sentinels.primary()
    if (primary === undefined) throw new Error('no Sentinel names the primary')
    const { send, destroy } = await openPool({
      url: urlOf(primary, settings),
      settings,
      probe: PROBE_WRITE,
      log,
    })
    let isEnded = false
    const end = () => {
      if (isEnded) return
      isEnded = true
      clearInterval(watch)
      sentinels.destroy()
      destroy()
    }
    const watch = setInterval(() => {
      void sentinels.primary().then((named) => {
        if (named === undefined || named === primary) return
        log.warn({ primary, named }, 'redis: Sentinel names another primary')
        end()
      })
    }, SENTINEL_EVERY_MS).unref()
    return { send, destroy: end }
  } catch (error) {
    sentinels.destroy()
    throw error
  }
}

function openSentinels(settings: RedisSettings, log: Logger) {
  const { nodes, master_name, sentinel_username, sentinel_password, tls } = settings
  const limitMs = settings.command_timeout_secs * 1000 * SENTINEL_SHARE
  const account = { username: sentinel_username, password: sentinel_password, tls }
  const asking = nodes.map((node) => {
    const client = createClient({
      url: urlOf(node, account),
      disableOfflineQueue: true,
      socket: socketOf(settings, { isOpen: true }),
    })
    client.on('error', (error: unknown) => log.debug({ err: error, node }, 'redis sentinel'))
    const connected = client.connect().catch(() => undefined)
    return { client, connected }
  })
  const nameOf = async ({ client, connected }: (typeof asking)[number]) => {
    await connected
    const reply = await client.sendCommand(['SENTINEL', 'GET-MASTER-ADDR-BY-NAME', master_name])
    if (!Array.isArray(reply)) return undefined
    const [host = '', port = ''] = reply.map(String)
    return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`
  }
  return {
    /** What a majority names, else what most of those name that answer in time. Undefined if none does. */
    async primary(): Promise<string | undefined> {
      const votes = new Map<string, number>()
      return new Promise((resolve) => {
        const answers = asking.map(async (one) => {
          const named = await within(limitMs, () => nameOf(one)).catch(() => undefined)
          if (named === undefined) return
          const count = (votes.get(named) ?? 0) + 1
          votes.set(named, count)
          if (count > asking.length / 2) resolve(named)
        })
        void Promise.all(answers).then(() =>
          resolve([...votes].toSorted(([, a], [, b]) => b - a)[0]?.[0]),
        )
      })
    },
    destroy() {
      for (const { client } of asking) {
        if (client.isOpen) client.destroy()
      }
    },
  }
}

/** Replaces connections that the server closed. Before the first response, a failure ends the start. */
function socketOf(settings: RedisSettings, life: { readonly isOpen: boolean }) {
  return {
    connectTimeout: settings.connect_timeout_secs * 1000,
    reconnectStrategy: (tries: number, cause: Error) =>
      life.isOpen ? Math.min(50 * 2 ** tries, RECONNECT_MS_MAX) : cause,
  }
}

function urlOf(
  node: string,
  { username, password, tls }: Pick<RedisSettings, 'username' | 'password' | 'tls'>,
): string {
  const url = new URL(`${tls ? 'rediss' : 'redis'}://${node}`)
  url.username = encodeURIComponent(username ?? '')
  url.password = encodeURIComponent(password ?? '')
  return url.href
}

function wordsOf(command: Command): (string | Buffer)[] {
  return command.map((word) => (typeof word === 'string' ? word : Buffer.from(word)))
}
