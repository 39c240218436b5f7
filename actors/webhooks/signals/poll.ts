/** Polls (RFC 8936): a receiver acknowledges events, and gets the next ones. */
import { setTimeout as sleep } from 'node:timers/promises'
import { isRefused } from '../../../runtime/kernel/fairness/fair-share.js'
import {
  firstSignalEvents,
  removeSignalEvents,
  type SignalEvent,
} from '../../../storage/webhooks/signal-events.js'
import { findSignalStream } from '../../../storage/webhooks/signal-streams.js'
import { isUuid } from '../../domain/ids.js'
import { inTenant } from '../../platform/in-tenant.js'
import type { SignalsHandler, SignalsTools } from './needs.js'
import { EVENTS_MAX } from './protocol.js'
import { setClaims, signedSet } from './set.js'
import { keyOf, UNKNOWN } from './streams.js'

/** Polls that one process keeps waiting, of one tenant, and of one stream. */
export const WAITS = { total: 512, tenant: 64, stream: 2 } as const
const LOOK_EVERY_MS = 500
/** Refused events that the log names. */
const LOGGED_MAX = 5
/** What is left of the time of a request when its poll gives up waiting. */
const ANSWER_MS = 2_000

export const pollSignalEvents: SignalsHandler<'pollSignalEvents'> = async (
  tools,
  message,
  context,
) => {
  const { database, keys, issuer } = tools
  const key = keyOf(message)
  if (key === undefined) return UNKNOWN
  const refused = Object.keys(message.refused)
  const most = Math.min(message.most, EVENTS_MAX)
  const look = () => database.system((tx) => firstSignalEvents(tx, key, most + 1), context)
  const isKnown = await inTenant(database, key.tenantId, context, async (tx) => {
    if ((await findSignalStream(tx, key)) === undefined) return false
    const done = [...message.acknowledged, ...refused].filter(isUuid)
    if (done.length > 0) await removeSignalEvents(tx, key, done)
    return true
  })
  if (!isKnown) return UNKNOWN
  if (refused.length > 0) {
    const first = Object.fromEntries(Object.entries(message.refused).slice(0, LOGGED_MAX))
    const counted = { streamId: key.id, count: refused.length, refused: first }
    context.log.warn(counted, 'signals: events refused')
  }
  let found: readonly SignalEvent[] = await look()
  if (found.length === 0 && most > 0 && !message.returnImmediately) {
    const { settings, clock } = tools
    const untilMs = Math.min(
      clock.monotonicMs() + settings.poll_wait_secs * 1_000,
      context.deadlineMs - ANSWER_MS,
    )
    found = await waited(tools, [key.tenantId, key.id], untilMs, context.signal, look)
  }
  const sets: Record<string, string> = {}
  for (const event of found.slice(0, most)) {
    const token = await signedSet(keys, setClaims(event, issuer, key.receiver), context)
    if (token === undefined) return { tag: 'keys_unavailable' }
    sets[event.id] = token
  }
  return { tag: 'polled', sets, moreAvailable: found.length > most }
}

/** Looks again until there is an event, the time is over, or there is no place to wait. */
async function waited(
  { waits, groups, clock }: SignalsTools,
  keys: readonly [tenantId: string, streamId: string],
  untilMs: number,
  signal: AbortSignal,
  look: () => Promise<readonly SignalEvent[]>,
): Promise<readonly SignalEvent[]> {
  const over = new AbortController()
  const giveUp = () => {
    over.abort()
    return true
  }
  const place = waits.tryAcquire([...keys], 1, { groups: groups.known(keys[0]), giveUp })
  if (isRefused(place)) return []
  const leave = () => over.abort()
  signal.addEventListener('abort', leave, { once: true })
  try {
    let found: readonly SignalEvent[] = []
    while (found.length === 0 && !over.signal.aborted && clock.monotonicMs() < untilMs) {
      await sleep(LOOK_EVERY_MS, undefined, { signal: over.signal }).catch(() => undefined)
      if (!signal.aborted) found = await look()
    }
    return found
  } finally {
    signal.removeEventListener('abort', leave)
    place()
  }
}
