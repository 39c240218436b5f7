/** Small parts of threads: buffers, slots, links. They share a process. */
import { EventEmitter } from 'node:events'
import { setImmediate as context } from 'node:timers/promises'
import { MessageChannel, type MessagePort } from 'node:worker_threads'
import test from 'ava'
import * as fc from 'fast-check'
import { systemClock } from '../../../../runtime/kernel/clock.js'
import { silentLogger } from '../../../../runtime/kernel/log.js'
import { address, type Ask } from '../../../../runtime/kernel/protocol.js'
import { bytePipe } from '../../../../runtime/kernel/stream.js'
import { Link } from '../../../../runtime/kernel/threads/link.js'
import {
  receivedBytes,
  releaseReceived,
} from '../../../../runtime/kernel/threads/received-bytes.js'
import { Slots } from '../../../../runtime/kernel/threads/slots.js'
import { StreamRecord } from '../../../../runtime/kernel/threads/stream-crossing.js'
import { FrameWriter, type PostedFrame } from '../../../../runtime/kernel/threads/wire.js'

/** The memory of bytes from another thread is free as soon as they have been used. */
const MIB = 1024 * 1024

test('bytes that were received are empty after their release, which can be repeated', (t) => {
  const bytes = receivedBytes(new Uint8Array([1, 2, 3]).buffer)
  t.deepEqual([...bytes], [1, 2, 3])
  releaseReceived(bytes)
  t.is(bytes.byteLength, 0)
  t.notThrows(() => releaseReceived(bytes))
})

test('bytes of another origin stay as they are', (t) => {
  const bytes = new Uint8Array([1, 2, 3])
  releaseReceived(bytes)
  t.deepEqual([...bytes], [1, 2, 3])
})

test.serial('a release frees the memory without a garbage collection', (t) => {
  const all = Array.from({ length: 64 }, () => receivedBytes(new ArrayBuffer(MIB)))
  const filled = process.memoryUsage().arrayBuffers
  for (const bytes of all) releaseReceived(bytes)
  t.true(filled - process.memoryUsage().arrayBuffers > 60 * MIB)
})

test('any sequence of operations finds each item under its number, and no other', (t) => {
  t.notThrows(() =>
    fc.assert(
      fc.property(fc.array(fc.nat({ max: 20 }), { maxLength: 200 }), (moves) => {
        const slots = new Slots<{ readonly at: number }>()
        const known = new Map<number, { readonly at: number }>()
        for (const [at, move] of moves.entries()) {
          if (move < 12) {
            const item = { at }
            const slot = slots.add(item)
            if (known.has(slot)) return false
            known.set(slot, item)
          } else {
            const slot = move - 12
            if (slots.take(slot) !== known.get(slot)) return false
            known.delete(slot)
          }
          if (slots.size !== known.size) return false
        }
        for (let slot = 0; slot < moves.length; slot += 1) {
          if (slots.get(slot) !== known.get(slot)) return false
        }
        const all = new Set(slots.all())
        return all.size === known.size && [...known.values()].every((item) => all.has(item))
      }),
    ),
  )
})

test('numbers are reused, so there are no more than were needed at the same time', (t) => {
  const slots = new Slots<object>()
  for (let round = 0; round < 1_000; round += 1) {
    const pair = [slots.add({}), slots.add({})]
    t.true(Math.max(...pair) < 2)
    for (const slot of pair) slots.take(slot)
  }
  slots.add({})
  slots.clear()
  t.is(slots.size, 0)
  t.is(slots.add({}), 0)
})

test('no frame is posted for a stream that was cancelled within its turn', async (t) => {
  const posted: PostedFrame[] = []
  const port = Object.assign(new EventEmitter(), {
    postMessage: (frame: PostedFrame) => void posted.push(frame),
    close: () => undefined,
  })
  const link = new Link(port as unknown as MessagePort, {
    clock: systemClock,
    log: silentLogger,
    lookup: () => undefined,
  })
  const { stream, writer } = bytePipe()
  link.send([0, 1, 'reader', 'read', { body: stream }, 1_000, null])
  await context()
  t.is(posted.length, 1)
  writer.push(new Uint8Array(10))
  // The chunk waits for the end of the turn; the other side gives up within it.
  for (let microtasks = 0; microtasks < 20; microtasks += 1) await Promise.resolve()
  const other = new FrameWriter({ send: () => 0, receive: () => stream, retract: () => undefined })
  other.add([StreamRecord.cancel, 1, 'had enough'])
  port.emit('message', other.take().posted)
  await context()
  await context()
  t.is(posted.length, 1, 'an empty frame is none')
  link.close('stopped')
})

test('an ask that is cancelled after its reply was sent affects no other ask', async (t) => {
  const { port1, port2 } = new MessageChannel()
  const given: string[] = []
  const near = new Link(port1, { clock: systemClock, log: silentLogger, lookup: () => undefined })
  const far = new Link(port2, {
    clock: systemClock,
    log: silentLogger,
    lookup: () => ({
      ask: () => Promise.reject(new Error('the long way')),
      receive(_, message, inbound) {
        const { name } = message as { readonly name: string }
        inbound.giveUp = () => void given.push(name)
        if (name !== 'last') inbound.reply({ tag: name })
        else setImmediate(() => setImmediate(() => inbound.reply({ tag: name })))
      },
    }),
  })
  const echo = near.ref(address<{ say: Ask<{ name: string }, { tag: string }> }>('echo'))
  for (let round = 0; round < 50; round += 1) {
    // Given up while the answer is on its way: the number is free, and the next ask has it.
    const leaving = new AbortController()
    const left = echo.say({ name: 'first' }, { signal: leaving.signal })
    setImmediate(() => leaving.abort())
    await left.catch(() => undefined)
    t.deepEqual(await echo.say({ name: 'last' }), { tag: 'last' })
  }
  t.false(given.includes('last'))
  near.close('stopped')
  far.close('stopped')
})
