import { EventEmitter } from 'node:events'
import { setImmediate as context } from 'node:timers/promises'
import { MessageChannel, type MessagePort } from 'node:worker_threads'
import test from 'ava'
import { address, type Ask } from '../../../../runtime/kernel/protocol.js'
import { systemClock } from '../../../../runtime/kernel/clock.js'
import { Link } from '../../../../runtime/kernel/threads/link.js'
import { silentLogger } from '../../../../runtime/kernel/log.js'
import { StreamRecord } from '../../../../runtime/kernel/threads/stream-crossing.js'
import { bytePipe } from '../../../../runtime/kernel/stream.js'
import { FrameWriter, type PostedFrame } from '../../../../runtime/kernel/threads/wire.js'

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
