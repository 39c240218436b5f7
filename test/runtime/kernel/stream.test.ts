import { Readable } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import test from 'ava'
import {
  bytePipe,
  ByteStream,
  type ByteWriter,
  StreamAborted,
} from '../../../runtime/kernel/stream.js'

test('a writer runs ahead by its window and then waits for the reader', async (t) => {
  const { stream, writer } = bytePipe({ windowBytes: 100 })
  t.true(writer.push(new Uint8Array(60)))
  t.false(writer.push(new Uint8Array(60)), 'asks to pause')
  let drained = 0
  writer.onDrain = () => {
    drained += 1
  }
  let written = false
  const write = writer.write(new Uint8Array(1)).then(() => {
    written = true
  })
  await stream.read()
  t.is(drained, 1)
  await write
  t.true(written)
})

test('reading returns the chunks in order, and then the end, repeatedly', async (t) => {
  const { stream, writer } = bytePipe()
  const first = stream.read()
  writer.push(Uint8Array.of(1))
  writer.push(Uint8Array.of(2))
  writer.end()
  t.deepEqual(await first, Uint8Array.of(1))
  t.deepEqual(await stream.read(), Uint8Array.of(2))
  t.is(await stream.read(), undefined)
  t.is(await stream.read(), undefined)
})

test('an aborted stream fails its reader immediately', async (t) => {
  const { stream, writer } = bytePipe()
  writer.push(Uint8Array.of(1))
  writer.abort('upstream reset')
  const error = await t.throwsAsync(stream.read(), { instanceOf: StreamAborted })
  t.is(error?.reason, 'upstream reset')
  t.false(writer.open)
})

test('leaving the loop early cancels the writer', async (t) => {
  const { stream, writer } = bytePipe()
  const reasons: string[] = []
  writer.onCancel = (reason) => reasons.push(reason)
  writer.push(Uint8Array.of(1))
  for await (const chunk of stream) {
    t.is(chunk[0], 1)
    break
  }
  t.deepEqual(reasons, ['cancelled'])
  await t.throwsAsync(writer.write(Uint8Array.of(2)), { instanceOf: StreamAborted })
})

test('a Node stream becomes a byte stream and back', async (t) => {
  const source = Readable.from([Buffer.from('over '), Buffer.from('and out')])
  const readable = ByteStream.from(source as AsyncIterable<Uint8Array>).toReadable()
  t.is((await buffer(readable)).toString(), 'over and out')
})

test('destroying the Node stream cancels the byte stream', async (t) => {
  const { stream, writer } = bytePipe()
  const cancelled = new Promise<string>((resolve) => {
    writer.onCancel = resolve
  })
  const readable = stream.toReadable()
  readable.on('error', () => {})
  readable.destroy(new Error('client closed'))
  t.is(await cancelled, 'client closed')
})

test('a handle can be sent to one place only', (t) => {
  const stream = ByteStream.from(Uint8Array.of(1))
  stream.detach()
  t.throws(() => stream.detach(), { instanceOf: StreamAborted })
})

test('a finished stream can be collected while its writer refers to it', async (t) => {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  /** Reads a stream to its end, and keeps only a weak reference to it. */
  async function read(finish: (writer: ByteWriter, stream: ByteStream) => void) {
    const { stream, writer } = bytePipe({ windowBytes: 1024 })
    writer.onCancel = () => void stream
    finish(writer, stream)
    await stream.read().catch(() => undefined)
    return new WeakRef(stream)
  }
  const held = [
    await read((writer) => writer.end()),
    await read((writer) => writer.abort('broken')),
    await read((_, stream) => stream.cancel()),
  ]
  for (
    let context = 0;
    context < 20 && held.some((one) => one.deref() !== undefined);
    context += 1
  ) {
    await new Promise((resolve) => setTimeout(resolve, 10))
    collect()
  }
  t.deepEqual(
    held.map((one) => one.deref()),
    [undefined, undefined, undefined],
  )
})
