/** What a notification wakes immediately, long before anything is looked for again. */
import test from 'ava'
import { silentLogger as log } from '../../../../runtime/kernel/log.js'
import { systemClock } from '../../../../runtime/kernel/clock.js'
import type { Subscription } from '../../../../storage/platform/listen.js'
import { CAUSES_CHANNEL } from '../../../../storage/platform/event-numbers.js'
import type { Database, Transaction } from '../../../../storage/platform/sql.js'
import { SIGNALS_CHANNEL } from '../../../../storage/webhooks/signal-pushes.js'
import { deliverOutgoing, type OutgoingWork } from '../../../../actors/platform/outgoing-queue.js'
import { WaitingStreams } from '../../../../actors/webhooks/signals/waiting-streams.js'
import { sharedApi } from '../../../support/service.js'
import { until } from '../../../support/service/watch.js'

const NEVER_MS = 2 ** 31 - 1

function listening() {
  const subscribed = new Map<string, Subscription>()
  const listen = (channel: string, subscription: Subscription) => {
    subscribed.set(channel, subscription)
    return Promise.resolve(() => void subscribed.delete(channel))
  }
  const listener = { listen, connected: true, close: () => Promise.resolve() }
  return {
    listener,
    subscribed,
    notify: (channel: string) => subscribed.get(channel)?.notified(''),
  }
}

test('a queue prepares when it is notified, and its first look is at its start', async (t) => {
  const { listener, subscribed, notify } = listening()
  let prepared = 0
  const stop = new AbortController()
  const work: OutgoingWork<never, never> = {
    name: 'test',
    resource: 'test',
    channel: 'due',
    preparesAt: { channel: 'causes', spacingMs: 50 },
    level: { name: 'test', max: 1 },
    levelKeyOf: () => '',
    pollMs: NEVER_MS,
    prepare() {
      prepared += 1
      return Promise.resolve(false)
    },
    claim: () => Promise.resolve([]),
    nextMs: () => Promise.resolve(NEVER_MS),
    deliver: () => Promise.resolve(undefined),
    record: () => Promise.resolve(),
    postpone: () => Promise.resolve(),
    close: () => Promise.resolve(),
  }
  const system: Database['system'] = async (run) => run({} as Transaction)
  const database = { system, tenant: () => Promise.reject(new Error('unused')), listener }
  const loop = () => ({ succeeded: () => undefined, failed: () => undefined })
  const run = deliverOutgoing(
    work,
    { database, clock: systemClock, settled: () => undefined },
    { signal: stop.signal, log, loop, failed: (error) => t.fail(String(error)) },
  )
  await until('the first look', () => prepared === 1 && subscribed.size === 2)
  notify('causes')
  await until('a look after the notification', () => prepared === 2)
  notify('due')
  notify('causes')
  await until('the next one', () => prepared === 3)
  stop.abort()
  await run
  t.is(subscribed.size, 0)
})

test('a poll that waits looks when it begins, and when events are written', async (t) => {
  const { listener, subscribed, notify } = listening()
  const stream = { tenantId: 'tenant', id: 'stream' }
  let looks = 0
  let found: readonly (typeof stream)[] = []
  const system = (() => {
    looks += 1
    return Promise.resolve(found)
  }) as Database['system']
  const waiting = new WaitingStreams({ database: { system }, listener }, NEVER_MS)
  const over = new AbortController()
  const event = waiting.event(stream, over.signal)
  await until('the first look', () => looks === 1)
  t.true(subscribed.has(SIGNALS_CHANNEL))
  found = [stream]
  notify(SIGNALS_CHANNEL)
  await event
  t.is(looks, 2)
  t.false(over.signal.aborted)
})

test('what a tenant with a stream records wakes the worker that writes events', async (t) => {
  const { api, running } = await sharedApi('plain')
  t.teardown(() => api.end())
  const { token } = await api.workspace()
  await api.post('/ssf/streams', token, {}).gives(201)
  let notified = 0
  const leave = await running.db.database.listener.listen(CAUSES_CHANNEL, {
    notified: () => void (notified += 1),
  })
  t.teardown(leave)
  const draft = { name: 'Own', grant_types: ['client_credentials'], response_types: [] }
  await api.post('/api/v1/applications', token, draft).gives(201)
  await until('the notification', () => notified > 0)
  t.true(notified > 0)
})
