/**
 * Webhook deliveries to receivers on loopback over TLS, compared with bare undici requests to the
 * same receiver. Once the sender alone, once everything from the outbox on: events committed,
 * fanned out, leased, signed, sent, and every attempt stored.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { Pool } from 'undici'
import { systemClock as clock } from '../../runtime/kernel/clock.js'
import { appendEvents } from '../../storage/platform/outbox.js'
import { compare, publish, saturate } from '../harness.js'
import { LOCALHOST_CERT } from './loopback-tls.js'
import { openWebhookStage } from './webhook-stage.js'

const IN_FLIGHT = 64
/** Limits the backlog to what the worker sends in a moment. */
const AHEAD_MAX = 4_000
const SUBSCRIPTIONS = 32
const TYPE = 'commerce.statement.created'

const stage = await openWebhookStage()
const { database, tenantId, origin, random } = stage
const bare = new Pool(origin, {
  connections: IN_FLIGHT,
  pipelining: 1,
  connect: { ca: LOCALHOST_CERT },
})

for (let at = 0; at < SUBSCRIPTIONS; at += 1) await stage.subscribe(`${origin}/`, TYPE)

const data = { charge_id: random.uuid(), note: 'x'.repeat(400) }
const body = JSON.stringify({ event_id: random.uuid(), type: TYPE, data })

async function request(): Promise<void> {
  const answer = await bare.request({ method: 'POST', path: '/', body })
  await answer.body.dump()
}

async function send(): Promise<void> {
  const outgoing = { url: `${origin}/`, eventType: TYPE, body, deliveryId: random.uuid() }
  const { error } = await stage.send(outgoing)
  if (error !== null) throw new Error(error)
}

const storedAttempts = () =>
  database.tenant(tenantId, async (tx) => {
    const text = 'select count(*)::int as count from webhook_attempts'
    const { rows } = await tx.query<{ count: number }>({ name: 'bench.attempts', text })
    return rows[0]!.count
  })

/** Commits events until the time is over and waits until the last attempt is stored. */
async function deliver(ms: number) {
  const before = stage.attempts
  const endMs = performance.now() + ms
  let written = 0
  while (performance.now() < endMs) {
    const events = Array.from({ length: 20 }, () => ({
      id: random.uuid(),
      tenantId,
      type: TYPE,
      data,
      occurredAt: clock.now(),
    }))
    await database.tenant(tenantId, (tx) => appendEvents(tx, events))
    written += events.length * SUBSCRIPTIONS
    while (written - (stage.attempts - before) > AHEAD_MAX) await sleep(5)
  }
  while (stage.attempts - before < written) await sleep(5)
  return { operations: written }
}

try {
  await publish(
    await compare({
      name: 'webhook deliveries to loopback over TLS',
      reference: {
        name: 'undici request, bare',
        run: (ms) => saturate(ms, IN_FLIGHT, request),
      },
      contenders: [
        {
          name: 'signed and sent, no database',
          target: 0.4,
          run: (ms) => saturate(ms, IN_FLIGHT, send),
        },
        {
          name: 'from the outbox, every attempt stored',
          target: 0.12,
          setUp: async () => stage.work(),
          run: deliver,
        },
      ],
    }),
  )
  const stored = await storedAttempts()
  if (stored !== stage.attempts) throw new Error(`${stored} of ${stage.attempts} attempts stored`)
} finally {
  await bare.close()
  await stage.end()
}
