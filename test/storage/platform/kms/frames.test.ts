import test from 'ava'
import * as fc from 'fast-check'
import {
  BadFrame,
  decodeReply,
  decodeRequest,
  encodeReply,
  encodeRequest,
  FRAME_BYTES_MAX,
  FrameReader,
  frame,
  OPERATIONS,
  REPLY_STATUSES,
} from '../../../../storage/platform/kms/frames.js'
import { runs } from '../../../support/runs.js'

const message = fc.uint8Array({ minLength: 16, maxLength: 600 })

/** Splits bytes at arbitrary positions. */
const cuts = fc.array(fc.integer({ min: 1, max: 97 }), { maxLength: 200 })

test('frames come out as they went in, wherever the stream is cut', (t) => {
  t.notThrows(() =>
    fc.assert(
      fc.property(fc.array(message, { maxLength: 12 }), cuts, (messages, lengths) => {
        const stream = Buffer.concat(messages.map(frame))
        const reader = new FrameReader()
        const seen: Buffer[] = []
        let at = 0
        for (const length of [...lengths, stream.length]) {
          seen.push(...reader.push(stream.subarray(at, at + length)))
          at += length
        }
        if (at < stream.length) seen.push(...reader.push(stream.subarray(at)))
        return (
          Buffer.concat(seen).equals(Buffer.concat(messages)) && seen.length === messages.length
        )
      }),
    ),
  )
})

test('arbitrary bytes give frames or BadFrame, and frames are never out of bounds', (t) => {
  t.notThrows(() =>
    fc.assert(
      fc.property(fc.array(fc.uint8Array({ maxLength: 300 }), { maxLength: 30 }), (chunks) => {
        const reader = new FrameReader()
        try {
          return chunks
            .flatMap((chunk) => reader.push(chunk))
            .every(({ length }) => length >= 16 && length <= FRAME_BYTES_MAX)
        } catch (error) {
          return error instanceof BadFrame
        }
      }),
      { numRuns: runs(2_000) },
    ),
  )
})

test('a length above the maximum is refused before the frame has arrived', (t) => {
  const head = Buffer.alloc(2)
  head.writeUInt16BE(FRAME_BYTES_MAX + 1)
  t.throws(() => new FrameReader().push(head), { instanceOf: BadFrame })
  head.writeUInt16BE(15)
  t.throws(() => new FrameReader().push(head), { instanceOf: BadFrame })
  t.throws(() => frame(new Uint8Array(FRAME_BYTES_MAX + 1)), { instanceOf: BadFrame })
})

test('requests and replies survive their encoding', (t) => {
  const id = fc.integer({ min: 0, max: 0xffff_ffff })
  const payload = fc.uint8Array({ maxLength: 200 })
  t.notThrows(() =>
    fc.assert(
      fc.property(
        id,
        fc.constantFrom(...OPERATIONS),
        fc.string({ maxLength: 100, unit: 'grapheme-composite' }),
        payload,
        fc.constantFrom(...REPLY_STATUSES),
        (id, operation, context, payload, status) => {
          fc.pre(Buffer.byteLength(context) <= 512)
          const request = decodeRequest(encodeRequest({ id, operation, context, payload }))
          const reply = decodeReply(encodeReply({ id, status, payload }))
          return (
            request.id === id &&
            request.operation === operation &&
            request.context === context &&
            Buffer.from(payload).equals(request.payload) &&
            reply.id === id &&
            reply.status === status &&
            Buffer.from(payload).equals(reply.payload)
          )
        },
      ),
    ),
  )
})

test('arbitrary bodies decode or are refused as BadFrame, nothing else', (t) => {
  for (const decode of [decodeRequest, decodeReply]) {
    t.notThrows(() =>
      fc.assert(
        fc.property(fc.uint8Array({ maxLength: 64 }), (bytes) => {
          try {
            decode(bytes)
            return true
          } catch (error) {
            return error instanceof BadFrame
          }
        }),
        { numRuns: runs(2_000) },
      ),
    )
  }
})
