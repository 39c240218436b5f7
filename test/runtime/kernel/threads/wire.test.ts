import { isDeepStrictEqual } from 'node:util'
import test from 'ava'
import * as fc from 'fast-check'
import { copyMessage } from '../../../../runtime/kernel/envelope.js'
import { Secret } from '../../../../runtime/kernel/secret.js'
import { ByteStream } from '../../../../runtime/kernel/stream.js'
import {
  FrameReader,
  FrameWriter,
  packFrame,
  type PostedFrame,
  type StreamTable,
  unpackFrame,
} from '../../../../runtime/kernel/threads/wire.js'
import { SharedText } from '../../../../runtime/kernel/text/shared-text.js'
import { runs } from '../../../support/runs.js'

const noStreams: StreamTable = {
  send: () => 0,
  receive: () => ByteStream.from([]),
  retract: () => {},
}

function frameOf(posted: PostedFrame): ArrayBuffer {
  return posted instanceof ArrayBuffer ? posted : posted[0]
}

/** Member names that mean something to JavaScript are data like any other here. */
const memberName = fc.oneof(
  fc.string({ unit: 'grapheme', maxLength: 12 }),
  fc.constantFrom('constructor', 'toString', 'hasOwnProperty', 'toJSON', 'length', '0', ''),
)
/** The one name that may not be in a message: see the test of it below. */
const mayCross = (name: string) => name !== '__proto__'
const plain = fc.letrec((tie) => ({
  value: fc.oneof(
    { maxDepth: 3, withCrossShrink: true },
    fc.string({ unit: 'grapheme', maxLength: 300 }),
    fc.integer(),
    fc.maxSafeInteger(),
    fc.double({ noNaN: true }).map((value) => (Object.is(value, -0) ? 0 : value)),
    fc.boolean(),
    fc.bigInt(),
    fc.constantFrom(null, undefined),
    fc.date({ noInvalidDate: true }),
    fc.uint8Array({ maxLength: 400 }),
    fc.array(tie('value'), { maxLength: 6 }),
    fc.dictionary(memberName.filter(mayCross), tie('value'), { maxKeys: 8, noNullPrototype: true }),
  ),
})).value

test('any valid message arrives as it was sent, also with others in a frame', (t) => {
  // One writer and one reader for all runs: definitions pile up as they do on a long-lived link.
  const writer = new FrameWriter(noStreams)
  const reader = new FrameReader(noStreams)
  t.notThrows(() =>
    fc.assert(
      fc.property(fc.array(plain, { minLength: 1, maxLength: 8 }), (values) => {
        for (const [index, value] of values.entries()) writer.add([index, value])
        const { posted, transfer } = writer.take()
        const crossed = structuredClone(posted, { transfer })
        const { records } = reader.read(crossed)
        return isDeepStrictEqual(
          records,
          values.map((value, index) => [index, copyMessage(value)]),
        )
      }),
      { numRuns: runs(1000) },
    ),
  )
})

test('any valid message arrives in a frame that needs no other one', (t) => {
  t.notThrows(() =>
    fc.assert(
      fc.property(fc.array(plain, { maxLength: 8 }), (values) =>
        isDeepStrictEqual(unpackFrame(packFrame(values)), copyMessage(values)),
      ),
      { numRuns: runs(1000) },
    ),
  )
  for (const no of [Symbol('no'), Secret.ofText('hunter2'), ByteStream.from([])])
    t.throws(() => packFrame([{ no }]))
  const shapes = Array.from({ length: 500 }, (_, shape) => ({ [`name${shape}`]: [{ shape }] }))
  t.deepEqual(unpackFrame(packFrame([...shapes, ...shapes])), [...shapes, ...shapes])
})

test('a member named __proto__ never becomes what a message inherits from', (t) => {
  const writer = new FrameWriter(noStreams)
  const reader = new FrameReader(noStreams)
  // Before and after there is room for its definition.
  for (let shape = 0; shape < 300; shape += 1) {
    const sent = JSON.parse(`{"name${shape}":1,"__proto__":{"admin":true}}`) as object
    writer.add([sent])
    const [received] = reader.read(writer.take().posted).records[0] as [object]
    t.is(Object.getPrototypeOf(received), Object.prototype)
    t.false('admin' in received)
    t.like(received, { [`name${shape}`]: 1 })
  }
})

test('more shapes than stored definitions still arrive', (t) => {
  const writer = new FrameWriter(noStreams)
  const reader = new FrameReader(noStreams)
  for (let round = 0; round < 3; round += 1) {
    const sent = Array.from({ length: 500 }, (_, shape) => [
      { [`name${shape}`]: { [`inner${shape}`]: shape }, [`other${shape % 7}`]: [{ shape }] },
    ])
    for (const record of sent) writer.add(record)
    t.deepEqual(reader.read(writer.take().posted).records, sent)
  }
})

test('a record that cannot cross leaves the frame unchanged', (t) => {
  const writer = new FrameWriter(noStreams)
  const reader = new FrameReader(noStreams)
  writer.add(['before', { a: 1 }])
  t.throws(() => writer.add(['broken', { b: { c: Symbol('no') } }]))
  t.throws(() => writer.add(['secret', { key: Secret.ofText('hunter2') }]))
  writer.add(['after', { a: 2, b: { c: 3 } }])
  const { posted } = writer.take()
  t.deepEqual(reader.read(posted).records, [
    ['before', { a: 1 }],
    ['after', { a: 2, b: { c: 3 } }],
  ])
  writer.add(['again', { b: { c: 4 } }])
  t.deepEqual(reader.read(writer.take().posted).records, [['again', { b: { c: 4 } }]])
})

test('a message is copied when it is sent: later changes have no effect', (t) => {
  const writer = new FrameWriter(noStreams)
  const reader = new FrameReader(noStreams)
  const bytes = Uint8Array.of(1, 2, 3)
  writer.add([{ bytes }])
  bytes.fill(0)
  const { posted } = writer.take()
  t.deepEqual(reader.read(posted).records, [[{ bytes: Uint8Array.of(1, 2, 3) }]])
  t.true(frameOf(posted).byteLength < 64, 'the frame holds the message and nothing else')
})

test('a stream is returned to its owner when its record cannot cross', (t) => {
  const retracted: number[] = []
  const writer = new FrameWriter({
    ...noStreams,
    send: () => 7,
    retract: (id) => retracted.push(id),
  })
  t.throws(() => writer.add([ByteStream.from([]), Symbol('no')]))
  t.deepEqual(retracted, [7])
})

/** Sends the records in one frame. @returns what arrives, and the size of the frame. */
function across(writer: FrameWriter, reader: FrameReader, records: readonly unknown[][]) {
  for (const record of records) writer.add(record)
  const { posted } = writer.take()
  return { records: reader.read(posted).records, bytes: frameOf(posted).byteLength }
}

test('a shared text travels once, and arrives as the same object', (t) => {
  const writer = new FrameWriter(noStreams)
  const reader = new FrameReader(noStreams)
  const shared = new SharedText('für alle '.repeat(100))
  const other = new SharedText('')
  const first = across(writer, reader, [[shared, other], [{ shared }]])
  const [received, empty] = first.records[0] as [SharedText, SharedText]
  t.true(received instanceof SharedText)
  t.is(received.text, shared.text)
  t.is(empty.text, '')
  t.is((first.records[1]![0] as { shared: SharedText }).shared, received)
  const second = across(writer, reader, [[shared, other]])
  t.is(second.records[0]![0], received)
  t.is(second.records[0]![1], empty)
  t.true(second.bytes < 32)
})

test('a shared text of a record that cannot cross is sent with the next record', (t) => {
  const writer = new FrameWriter(noStreams)
  const reader = new FrameReader(noStreams)
  const [kept, lost] = [new SharedText('kept'), new SharedText('lost')]
  writer.add([kept])
  t.throws(() => writer.add([kept, lost, Symbol('no')]))
  const { records } = across(writer, reader, [[lost, kept]])
  t.deepEqual(
    records.map((record) => record.map((each) => (each as SharedText).text)),
    [['kept'], ['lost', 'kept']],
  )
})

test('more shared texts than are remembered still arrive', (t) => {
  const writer = new FrameWriter(noStreams)
  const reader = new FrameReader(noStreams)
  const texts = Array.from({ length: 3000 }, (_, at) => new SharedText(`text ${at}`))
  for (const sent of [texts, texts.toReversed(), texts.slice(0, 10)]) {
    const { records } = across(
      writer,
      reader,
      sent.map((shared) => [shared]),
    )
    t.deepEqual(
      records.map(([received]) => (received as SharedText).text),
      sent.map(({ text }) => text),
    )
  }
})
