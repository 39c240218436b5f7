/** zstd responses: output of the zstd program is decoded, exhausting input is refused (RFC 8878, 9659). */
import { execFileSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { Readable, type Transform } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import test from 'ava'
import * as fc from 'fast-check'
import { createZstdDecoder } from '../../../../actors/vault/egress/decode/zstd.js'
import { ZstdFrames } from '../../../../actors/vault/egress/decode/zstd-frames.js'
import { testWithProgram } from '../../../support/service/programs.js'
import { IS_LONG } from '../../../support/runs.js'

const MAGIC = Buffer.from([0x28, 0xb5, 0x2f, 0xfd])
/** A frame header with a window of 128 KiB, without a size. */
const HEADER = Buffer.concat([MAGIC, Buffer.from([0x00, 7 << 3])])

const block = (type: 0 | 1 | 2, size: number, content: Uint8Array, isLast: boolean) => {
  const head = Buffer.alloc(3)
  head.writeUIntLE((size << 3) | (type << 1) | (isLast ? 1 : 0), 0, 3)
  return Buffer.concat([head, content])
}

/** Finished decoder threads take a moment to exit, so this waits while there are too many. */
async function freeDecoder(): Promise<Transform> {
  for (let waitedMs = 0; waitedMs < 20_000; waitedMs += 20) {
    const decoder = createZstdDecoder()
    if (decoder !== null) return decoder
    await sleep(20)
  }
  throw new Error('too many threads are left over')
}

async function decoded(pieces: readonly Uint8Array[]): Promise<Buffer> {
  const decoder = await freeDecoder()
  const parts: Buffer[] = []
  for await (const part of Readable.from(pieces, { objectMode: false }).pipe(decoder)) {
    parts.push(part as Buffer)
  }
  return Buffer.concat(parts)
}

/** Split at random positions. */
function cut(bytes: Buffer, places: readonly number[]): Buffer[] {
  const at = [...new Set(places.map((place) => place % (bytes.length + 1)))].sort((a, b) => a - b)
  return [0, ...at].map((from, index) => bytes.subarray(from, [...at, bytes.length][index]))
}

testWithProgram(
  'zstd',
  'output of the zstd program is decoded for every split',
  async (t, zstd) => {
    const made = (bytes: Buffer, ...options: string[]) =>
      execFileSync(zstd, ['-q', '-c', ...options], { input: bytes, maxBuffer: 2 ** 28 })
    const content = fc.oneof(
      fc.uint8Array({ maxLength: 2_000 }).map((bytes) => Buffer.from(bytes)),
      fc
        .array(fc.constantFrom('data: {"a":', ' b', '}\n', 'ccc'), { maxLength: 3_000 })
        .map((words) => Buffer.from(words.join(''))),
      fc.integer({ min: 0, max: 600_000 }).map((length) => Buffer.alloc(length, 'svc vault ')),
    )
    const options = fc.subarray(['-19', '--no-check', '--content-size', '--single-thread'])
    await fc.assert(
      fc.asyncProperty(content, options, fc.array(fc.nat()), async (bytes, each, places) => {
        const whole = made(bytes, ...each)
        t.true(bytes.equals(await decoded(cut(whole, places))))
      }),
      { numRuns: IS_LONG ? 25 : 8 },
    )
    // Several frames, with a skippable one between them.
    const skipped = Buffer.concat([
      Buffer.from([0x5a, 0x2a, 0x4d, 0x18, 3, 0, 0, 0]),
      Buffer.alloc(3),
    ])
    const random = randomBytes(300_000)
    const two = Buffer.concat([made(Buffer.from('one ')), skipped, made(random), skipped])
    t.true((await decoded([two])).equals(Buffer.concat([Buffer.from('one '), random])))
    t.is((await decoded([])).length, 0)
  },
)

test('invalid, too large and too slow input is an error, in time', async (t) => {
  const run = (size: number, isLast: boolean) => block(1, size, Buffer.of(0x61), isLast)
  t.is((await decoded([HEADER, run(100, true)])).toString(), 'a'.repeat(100))
  const bomb = Buffer.concat([HEADER, ...Array.from({ length: 20_000 }, () => run(131_072, false))])
  const wide = Buffer.concat([MAGIC, Buffer.from([0x00, 14 << 3])])
  const single = Buffer.concat([MAGIC, Buffer.from([0xe0]), Buffer.alloc(8, 0x7f)])
  const cases: [string, Buffer][] = [
    ['a bomb', bomb],
    ['a window of 16 MiB', Buffer.concat([wide, run(1, true)])],
    ['a size of exabytes', Buffer.concat([single, run(1, true)])],
    ['the end is missing', Buffer.concat([HEADER, run(1, false)])],
    ['half a header', MAGIC],
    ['a block of no type', Buffer.concat([HEADER, Buffer.from([0x07, 0, 0])])],
    ['a block that is too large', Buffer.concat([HEADER, run(131_073, true)])],
    ['no zstd', Buffer.from('{"json": true}')],
    ['a dictionary', Buffer.concat([MAGIC, Buffer.from([0x01, 7 << 3, 1]), run(1, true)])],
    // The maximum number of maximum-length sequences in 12 bytes.
    [
      'work without end',
      Buffer.concat([
        HEADER,
        ...Array.from({ length: 50 }, (_, at) =>
          block(2, 9, Buffer.from([0x00, 0xff, 0xff, 0xff, 0x54, 0, 0, 52, 0x80]), at === 49),
        ),
      ]),
    ],
  ]
  for (const [name, bytes] of cases) {
    await t.throwsAsync(decoded([bytes]), undefined, name)
  }
  // No thread is left.
  for (let round = 0; round < 6; round += 1) t.is((await decoded([HEADER, run(9, true)])).length, 9)
})

test('any input is split or refused, without other errors', (t) => {
  const bytes = fc.oneof(
    fc.uint8Array({ maxLength: 64 }),
    fc.uint8Array({ maxLength: 64 }).map((rest) => Buffer.concat([MAGIC, rest])),
    fc.uint8Array({ maxLength: 64 }).map((rest) => Buffer.concat([HEADER, rest])),
  )
  fc.assert(
    fc.property(fc.array(bytes), (chunks) => {
      const frames = new ZstdFrames()
      try {
        let taken = 0
        for (const chunk of chunks)
          for (const piece of frames.push(chunk)) taken += piece.bytes.length
        t.true(taken <= chunks.reduce((sum, { length }) => sum + length, 0))
      } catch (error) {
        t.is((error as Error).name, 'ZstdRefused')
      }
    }),
  )
})
