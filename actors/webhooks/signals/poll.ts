/** Polls (RFC 8936): a receiver acknowledges events, and gets the next ones. */
import type { MessageContext } from '../../../runtime/kernel/actor.js'
import { isRefused } from '../../../runtime/kernel/fairness/fair-share.js'
import {
  firstSignalEvents,
  removeSignalEvents,
  type SignalEvent,
} from '../../../storage/webhooks/signal-events.js'
import { findSignalStream, type StreamKey } from '../../../storage/webhooks/signal-streams.js'
import { isUuid } from '../../domain/ids.js'
import { inTenant } from '../../platform/in-tenant.js'
import type { SignalsHandler, SignalsTools } from './needs.js'
import {
  EVENTS_MAX,
  type EventsPolled,
  type KeysUnavailable,
  type SigningBusy,
} from './protocol.js'
import { setClaims, signedSet } from './set.js'
import { keyOf, UNKNOWN } from './streams.js'

/** Polls that one process keeps waiting, of one tenant, and of one stream. */
export const WAITS = { total: 512, tenant: 64, stream: 2 } as const
/** Events that one process signs at the same time for polls, of one tenant, and of one stream. */
export const SIGNING = { total: 1_000, tenant: 200, stream: EVENTS_MAX } as const
/** Refused events that the log names. */
const LOGGED_MAX = 5
/** What is left of the time of a request when its poll gives up waiting. */
const ANSWER_MS = 2_000

export const pollSignalEvents: SignalsHandler<'pollSignalEvents'> = async (
  tools,
  message,
  context,
) => {
  const { database } = tools
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
    found = await waited(tools, key, untilMs, context, look)
  }
  const sets = await setsOf(tools, key, found.slice(0, most), context)
  return 'tag' in sets ? sets : { tag: 'polled', ...sets, moreAvailable: found.length > most }
}

/** The tokens of events. Signs those that were not signed in the last minute, within the share of the tenant. */
async function setsOf(
  { keys, issuer, kept, signing, groups }: SignalsTools,
  { tenantId, id, receiver }: StreamKey,
  events: readonly SignalEvent[],
  context: MessageContext,
): Promise<Pick<EventsPolled, 'sets'> | KeysUnavailable | SigningBusy> {
  const missing = events.filter((event) => kept.get(event.id) === undefined).length
  const held = signing.tryAcquire([tenantId, id], missing, { groups: groups.known(tenantId) })
  if (isRefused(held)) return { tag: 'busy' }
  try {
    const sets: Record<string, string> = {}
    for (const event of events) {
      let token = kept.get(event.id)
      if (token === undefined) {
        token = await signedSet(keys, setClaims(event, issuer, receiver), context)
        if (token === undefined) return { tag: 'keys_unavailable' }
        kept.put(event.id, token)
      }
      sets[event.id] = token
    }
    return { sets }
  } finally {
    held()
  }
}

/** Looks when there is an event; none when the time is over, or there is no place to wait. */
async function waited(
  { waits, waiting, groups, clock }: SignalsTools,
  key: StreamKey,
  untilMs: number,
  context: MessageContext,
  look: () => Promise<readonly SignalEvent[]>,
): Promise<readonly SignalEvent[]> {
  const over = new AbortController()
  const leave = () => over.abort()
  const giveUp = () => {
    leave()
    return true
  }
  const levels = [key.tenantId, key.id]
  const place = waits.tryAcquire(levels, 1, { groups: groups.known(key.tenantId), giveUp })
  if (isRefused(place)) return []
  const timer = setTimeout(leave, untilMs - clock.monotonicMs())
  context.signal.addEventListener('abort', leave, { once: true })
  try {
    let found: readonly SignalEvent[] = []
    // The event that woke this poll may have gone to another one of the stream.
    while (found.length === 0 && !over.signal.aborted) {
      await waiting.event(key, over.signal)
      if (!context.signal.aborted) found = await look()
    }
    return found
  } finally {
    clearTimeout(timer)
    context.signal.removeEventListener('abort', leave)
    place()
  }
}
