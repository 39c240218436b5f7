import { EventEmitter } from 'node:events'
import { setImmediate as turn } from 'node:timers/promises'
import type { MessagePort } from 'node:worker_threads'
import test from 'ava'
import { systemClock } from '../../../runtime/kernel/clock.js'
import { Link } from '../../../runtime/kernel/link.js'
import { silentLogger } from '../../../runtime/kernel/log.js'
import { StreamRecord } from '../../../runtime/kernel/stream-crossing.js'
import { bytePipe } from '../../../runtime/kernel/stream.js'
import { FrameWriter, type PostedFrame } from '../../../runtime/kernel/wire.js'

test('nothing is posted for a stream that was given up before its turn ended', async (t) => {
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
  await turn()
  t.is(posted.length, 1)
  writer.push(new Uint8Array(10))
  // The chunk waits for the end of the turn; the other side gives up within it.
  for (let microtasks = 0; microtasks < 20; microtasks += 1) await Promise.resolve()
  const other = new FrameWriter({ send: () => 0, receive: () => stream, retract: () => undefined })
  other.add([StreamRecord.cancel, 1, 'had enough'])
  port.emit('message', other.take().posted)
  await turn()
  await turn()
  t.is(posted.length, 1, 'an empty frame is none')
  link.close('stopped')
})
