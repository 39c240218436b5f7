/**
 * Announcements in a table (`database.announce = "table"`), for engines and poolers without LISTEN and NOTIFY. The function
 * `svc_announce` of the schema writes them, and each process reads them every 250 ms.
 */
import type { Logger } from '../../../runtime/kernel/log.js'
import { CHANNEL, type Listener, type Subscription } from '../listen.js'
import { changedRows, type Rows, type Statement, type Transaction } from '../sql.js'

const READ_MS = 250
const ROWS_MAX = 1_000
/**
 * Ids are taken before the commit, so a smaller id can appear after a larger one. A missing id is looked for this long. It
 * exceeds the time limits of transactions (`database.background_statement_timeout_secs`, 60 by default).
 */
const MISSING_MS = 120_000
const MISSING_MAX = 1_000

/** `Database.single`. */
type Read = <Row extends object>(statement: Statement) => Promise<Rows<Row>>

interface Announced {
  readonly id: number
  readonly channel: string
  readonly payload: string
}

interface TableListenerOptions {
  readonly read: Read
  readonly log: Logger
}

export function createTableListener({ read, log }: TableListenerOptions): Listener {
  const subscriptions = new Map<string, Set<Subscription>>()
  /** Ids that were taken and not seen, with the time when they were first missed. */
  const missing = new Map<number, number>()
  let last = 0
  let connected = false
  let starting: Promise<void> | undefined
  let reading: Promise<void> | undefined
  let timer: NodeJS.Timeout | undefined
  let closed = false

  function miss(id: number): void {
    missing.set(id, performance.now())
    if (missing.size > MISSING_MAX) missing.delete(missing.keys().next().value!)
  }

  /** Remembers a new id and the ids that it skips. @returns false if it was seen before. */
  function isNew(id: number): boolean {
    if (id <= last) return missing.delete(id)
    for (let skipped = Math.max(last + 1, id - MISSING_MAX); skipped < id; skipped += 1) {
      miss(skipped)
    }
    last = id
    return true
  }

  /** Begins after the newest announcement. */
  async function begin(): Promise<void> {
    const { rows } = await read<Announced>({
      name: 'announcement.newest',
      text: `select id from announcements order by id desc limit $1`,
      values: [MISSING_MAX],
    })
    missing.clear()
    last = (rows.at(-1)?.id ?? 1) - 1
    for (const { id } of rows.toReversed()) isNew(id)
    connected = true
  }

  async function next(): Promise<void> {
    const beforeMs = performance.now() - MISSING_MS
    for (const [id, sinceMs] of missing) if (sinceMs < beforeMs) missing.delete(id)
    for (;;) {
      const { rows } = await read<Announced>({
        name: 'announcement.next',
        text: `select id, channel, payload from announcements
               where id > $1 or id = any($2::bigint[]) order by id limit $3`,
        values: [last, [...missing.keys()], ROWS_MAX],
      })
      for (const { id, channel, payload } of rows) {
        if (!isNew(id)) continue
        for (const { notified } of subscriptions.get(channel) ?? []) notified(payload)
      }
      if (rows.length < ROWS_MAX) return
    }
  }

  async function round(): Promise<void> {
    try {
      if (connected) return await next()
      await begin()
      log.info('announcements are read again')
      for (const channel of subscriptions.values()) for (const { caughtUp } of channel) caughtUp?.()
    } catch (error) {
      if (connected) log.warn({ err: error }, 'announcements cannot be read')
      connected = false
    }
  }

  function readLater(): void {
    if (closed) return
    timer = setTimeout(() => {
      reading = round().then(readLater)
    }, READ_MS).unref()
  }

  return {
    get connected() {
      return connected
    },
    async listen(channel, subscription) {
      if (!CHANNEL.test(channel)) throw new Error(`${channel} is not a valid channel name`)
      if (closed) throw new Error('the listener is closed')
      const subscribed = subscriptions.get(channel) ?? new Set()
      subscriptions.set(channel, subscribed.add(subscription))
      const leave = () => {
        subscribed.delete(subscription)
      }
      starting ??= begin().then(readLater)
      await starting.catch((error: unknown) => {
        starting = undefined
        leave()
        throw error
      })
      subscription.caughtUp?.()
      return leave
    },
    async close() {
      closed = true
      clearTimeout(timer)
      await reading
    },
  }
}

/** Removes announcements that every process has read. @returns how many. */
export const sweepAnnouncements = (tx: Transaction, before: Date, limit: number) =>
  changedRows(tx, {
    name: 'announcement.sweep',
    text: `delete from announcements where id in (
             select id from announcements where at < $1 order by id limit $2)`,
    values: [before, limit],
  })
