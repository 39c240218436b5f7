import test from 'ava'
import {
  type ActorRef,
  ActorUnavailable,
  boundHandlers,
  defineActor,
  type Handler,
  type MessageContext,
} from '../../../runtime/kernel/actor.js'
import { heldClock } from '../../support/held-clock.js'
import { spawnInline } from '../../../runtime/kernel/inline.js'
import { address, type Ask, type Send } from '../../../runtime/kernel/protocol.js'

type GateProtocol = {
  /** Answers when the test opens the gate. */
  pass: Ask<{ lane?: string; label: string }, { tag: 'passed'; label: string }>
  note: Send<{ label: string }>
}
const gate = address<GateProtocol>('gate')

type Needs = { handle: (label: string, context: MessageContext) => Promise<void> }

const gateActor = defineActor<GateProtocol, Needs>({
  address: gate,
  asks: {},
  mailbox: { capacity: 4, inflightMax: 2 },
  lane: { pass: ({ lane }) => lane },
  create: ({ handle }) => ({
    async pass({ label }, context) {
      await handle(label, context)
      return { tag: 'passed', label }
    },
    async note({ label }, context) {
      await handle(label, context)
      return undefined
    },
  }),
})

/** Handlers that wait for the test, and the list of started messages. */
function turnstile() {
  const started: string[] = []
  const waiting = new Map<string, () => void>()
  const turns = new Map<string, MessageContext>()
  return {
    started,
    turns,
    handle: (label: string, context: MessageContext) => {
      started.push(label)
      turns.set(label, context)
      return new Promise<void>((resolve) => waiting.set(label, resolve))
    },
    open: async (label: string) => {
      waiting.get(label)!()
      await settled()
    },
  }
}

const settled = () => new Promise((resolve) => setImmediate(resolve))

const reasonOf = async (answer: Promise<unknown>) => {
  const error = await answer.then(
    () => undefined,
    (error: unknown) => error,
  )
  return error instanceof ActorUnavailable ? error.reason : error
}

test('a message that expired in the queue is not started', async (t) => {
  const { started, handle, open } = turnstile()
  const clock = heldClock(new Date(0))
  const { ref, stop } = spawnInline(gateActor, { handle }, { clock })
  const first = ref.pass({ lane: 'x', label: 'first' })
  const second = reasonOf(ref.pass({ lane: 'x', label: 'second' }, { timeoutMs: 50 }))
  clock.advance(60)
  t.is(await second, 'deadline')
  await open('first')
  await first
  await settled()
  t.deepEqual(started, ['first'])
  await stop()
})

test('a running message whose deadline passes is answered, and its signal aborted', async (t) => {
  const { handle, turns, open } = turnstile()
  const clock = heldClock(new Date(0))
  const { ref, stop } = spawnInline(gateActor, { handle }, { clock })
  const answer = reasonOf(ref.pass({ label: 'slow' }, { timeoutMs: 1000 }))
  const { signal } = turns.get('slow')!
  t.false(signal.aborted)
  clock.advance(1001)
  t.is(await answer, 'deadline')
  t.true(signal.aborted)
  await open('slow')
  await stop()
})

test('cancelling an ask cancels the asks made for it, also through a copied context', async (t) => {
  const inner = turnstile()
  const innerActor = spawnInline(gateActor, { handle: inner.handle })
  const outer: ActorRef<GateProtocol>[] = []
  const outerActor = spawnInline(gateActor, {
    handle: async (label, context) => {
      const options = label === 'copied' ? { ...context, timeoutMs: 60_000 } : context
      await innerActor.ref.pass({ label }, options)
    },
  })
  outer.push(outerActor.ref)
  for (const label of ['turn', 'copied']) {
    const cancel = new AbortController()
    const answer = reasonOf(outerActor.ref.pass({ label }, { signal: cancel.signal }))
    const { signal } = inner.turns.get(label)!
    cancel.abort()
    t.is(await answer, 'cancelled')
    t.true(signal.aborted, label)
    await inner.open(label)
  }
  await outerActor.stop()
  await innerActor.stop()
})

test('a caller that leaves cancels its asks like a signal, and has no effect after an answer', async (t) => {
  const { handle, open, turns } = turnstile()
  const actor = spawnInline(gateActor, { handle })
  const listeners = new Set<() => void>()
  const leaver = {
    hasLeft: false,
    onLeft(listener: () => void) {
      listeners.add(listener)
      return () => void listeners.delete(listener)
    },
  }
  const answered = actor.ref.pass({ label: 'answered' }, { leaver })
  t.is(listeners.size, 1)
  await open('answered')
  t.is((await answered).tag, 'passed')
  t.is(listeners.size, 0)

  const left = reasonOf(actor.ref.pass({ label: 'left' }, { leaver }))
  const { signal } = turns.get('left')!
  leaver.hasLeft = true
  for (const tell of listeners) tell()
  t.is(await left, 'cancelled')
  t.true(signal.aborted)
  t.is(listeners.size, 0)
  await open('left')
  t.is(await reasonOf(actor.ref.pass({ label: 'late' }, { leaver })), 'cancelled')
  t.false(turns.has('late'), 'it has no waiting caller: it is not started')
  await actor.stop()
})

test('bound handlers share what their instance has made, and a restarted actor makes new ones', async (t) => {
  type CountProtocol = { count: Ask<{ fails: boolean }, { tag: 'counted'; at: number }> }
  type Tools = { by: number; at: number }
  const count: Handler<Tools, CountProtocol, 'count'> = async (tools, { fails }) => {
    if (fails) throw new Error('broken')
    tools.at += tools.by
    return { tag: 'counted', at: tools.at }
  }
  const counter = defineActor<CountProtocol, { by: number }>({
    address: address<CountProtocol>('counter'),
    asks: {},
    mailbox: { capacity: 4, inflightMax: 1 },
    create: (needs) => boundHandlers<CountProtocol, Tools>({ count }, { ...needs, at: 0 }),
  })
  const actor = spawnInline(counter, { by: 2 })
  t.teardown(() => actor.stop())
  const next = async (fails = false) => (await actor.ref.count({ fails })).at
  t.deepEqual([await next(), await next()], [2, 4])
  await t.throwsAsync(next(true), { instanceOf: ActorUnavailable })
  t.is(await next(), 2)
})

test('a drain that takes too long aborts running messages', async (t) => {
  const { handle } = turnstile()
  const actor = spawnInline(gateActor, { handle })
  const answer = reasonOf(actor.ref.pass({ label: 'endless' }))
  t.false(await actor.drain(20))
  t.is(await answer, 'stopped')
})

test('messages are copied both ways where the options say so', async (t) => {
  const seen: unknown[] = []
  type EchoProtocol = { echo: Ask<{ items: number[] }, { tag: 'echo'; items: number[] }> }
  const echoActor = defineActor<EchoProtocol, Record<never, never>>({
    address: address<EchoProtocol>('echo'),
    asks: {},
    mailbox: { capacity: 1, inflightMax: 1 },
    create: () => ({
      async echo(message) {
        seen.push(message)
        return { tag: 'echo', items: message.items }
      },
    }),
  })
  const { ref, stop } = spawnInline(echoActor, {}, { cloneMessages: true })
  const message = { items: [1, 2] }
  const reply = await ref.echo(message)
  t.deepEqual(seen, [message])
  t.not(seen[0], message)
  t.not(reply.items, (seen[0] as typeof message).items)
  await t.throwsAsync(ref.echo({ items: (() => {}) as unknown as number[] }), {
    message: 'message.items is a function',
  })
  await stop()
})

test('a message is a method of the reference, and what is no message is not', async (t) => {
  const { ref, stop } = spawnInline(gateActor, { handle: async () => undefined })
  t.deepEqual(await ref.pass({ label: 'a' }), { tag: 'passed', label: 'a' })
  t.is(ref.pass, ref.pass, 'made once')
  t.is(await ref, ref, 'a reference is not a promise')
  t.is(String(ref), '[object Object]')
  await t.throwsAsync(ref.pass({ label: 'b' }, { timeoutMs: 0 }), { instanceOf: ActorUnavailable })
  await stop()
})
