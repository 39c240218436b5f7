/**
 * Time from the commit of an event to its first attempt: with responsive receivers, and while a
 * fifth of the receivers accept connections and never respond. An open loop: events are committed
 * at a fixed rate, whatever their outcome.
 */
import { createServer, type Socket } from 'node:net'
import type { AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { systemClock as clock } from '../../runtime/kernel/clock.js'
import { appendEvents } from '../../storage/platform/outbox.js'
import { percentiles } from '../harness.js'
import type { Arrival } from './webhook-receiver.js'
import { openWebhookStage } from './webhook-stage.js'

const HEALTHY = 32
const DEAD = 8
const EVENTS = 100
const PER_SECOND = 5
/** Maximum wait for the last attempts. */
const SETTLE_MS = 15_000

const stage = await openWebhookStage()
const { database, receiver, tenantId, origin, random } = stage
const committedMs = new Map<string, number>()
let delays: number[] = []
receiver.on('message', ({ body, atMs }: Arrival) => {
  const { event_id: id } = JSON.parse(body) as { event_id: string }
  const from = committedMs.get(id)
  if (from !== undefined) delays.push(Math.max(0, atMs - from))
})

async function emit(type: string): Promise<void> {
  const id = random.uuid()
  const event = { id, tenantId, type, data: {}, occurredAt: clock.now() }
  // An arrival may precede this line. The time counts from the start of the commit.
  committedMs.set(id, performance.timeOrigin + performance.now())
  await database.tenant(tenantId, (tx) => appendEvents(tx, [event]))
}

/** Opens connections and prepares statements before the measurement. */
async function warm(type: string): Promise<void> {
  await emit(type)
  await sleep(2_000)
}

async function measured(title: string, type: string): Promise<void> {
  delays = []
  committedMs.clear()
  for (let at = 0; at < EVENTS; at += 1) {
    void emit(type)
    await sleep(1000 / PER_SECOND)
  }
  const endMs = performance.now() + SETTLE_MS
  while (delays.length < EVENTS * HEALTHY && performance.now() < endMs) await sleep(20)
  const { p50Ms, p99Ms, maxMs } = percentiles(delays)
  const ms = (value: number | undefined) => `${value?.toFixed(1)} ms`
  console.log(
    `${title}: p50 ${ms(p50Ms)}, p99 ${ms(p99Ms)}, at most ${ms(maxMs)}; ` +
      `${delays.length} of ${EVENTS * HEALTHY} first attempts`,
  )
}

const sockets = new Set<Socket>()
const silent = createServer((socket) => {
  sockets.add(socket.on('error', () => undefined))
})
try {
  await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve))
  const grave = `https://localhost:${(silent.address() as AddressInfo).port}/`
  for (const type of ['commerce.statement.created', 'admin.user.created']) {
    for (let at = 0; at < HEALTHY; at += 1) await stage.subscribe(`${origin}/timed`, type)
  }
  for (let at = 0; at < DEAD; at += 1) await stage.subscribe(grave, 'admin.user.created')
  stage.work()
  console.log(
    `### From commit to first attempt, ${HEALTHY} receivers, ${PER_SECOND} events a second\n`,
  )
  await warm('commerce.statement.created')
  await measured('all answer', 'commerce.statement.created')
  await measured(`with ${DEAD} that never answer`, 'admin.user.created')
} finally {
  for (const socket of sockets) socket.destroy()
  silent.close()
  await stage.end()
}
