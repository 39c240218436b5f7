/**
 * The redactor in 64 KiB chunks, compared with `Buffer.indexOf` of one ordinary secret. An operation is a
 * MiB. Hostile pairs of secret and body are those that make naive search quadratic.
 */
import { randomBytes } from 'node:crypto'
import { readAuthScheme } from '../../actors/domain/vault/egress.js'
import { createRedactor, SecretEncodings } from '../../actors/vault/egress/redact/redaction.js'
import { compare, type Contender, type Measured, publish } from '../harness.js'

const CHUNK_BYTES = 64 * 1024
const CHUNKS_PER_MIB = 16
const MIB_PER_SECOND_MIN = 200

const token = `sk-live-${randomBytes(24).toString('base64url')}`
const json = Buffer.from(
  JSON.stringify(
    Array.from({ length: 2_000 }, (_, id) => ({
      id,
      name: `the quick brown fox ${id}`,
      at: Math.sqrt(id),
    })),
  ),
).subarray(0, CHUNK_BYTES)
const ofLetter = (letter: string) => Buffer.alloc(CHUNK_BYTES, letter)
const ofWord = (word: string) =>
  Buffer.from(word.repeat(Math.ceil(CHUNK_BYTES / word.length))).subarray(0, CHUNK_BYTES)
const periodic = `${'a'.repeat(32_000)}b${'a'.repeat(28_000)}`

function through(ms: number, work: (chunk: Buffer) => void, chunk: Buffer): Measured {
  const until = performance.now() + ms
  let operations = 0
  while (performance.now() < until) {
    for (let each = 0; each < CHUNKS_PER_MIB; each += 1) work(chunk)
    operations += 1
  }
  return { operations }
}

function redacting(name: string, secret: string, chunk: Buffer): Contender {
  const encodings = new SecretEncodings(Buffer.from(secret), readAuthScheme('header:x-k')!)
  const redactor = createRedactor(encodings)
  return { name, run: (ms) => through(ms, (bytes) => void redactor.push(bytes), chunk) }
}

const ordinary = Buffer.from(token)
const report = await compare({
  name: 'redaction, MiB',
  reference: {
    name: 'Buffer.indexOf of one secret, JSON',
    run: (ms) => through(ms, (bytes) => void bytes.indexOf(ordinary), json),
  },
  contenders: [
    redacting('token of 40 characters, JSON', token, json),
    redacting('token of 40 characters, random bytes', token, randomBytes(CHUNK_BYTES)),
    redacting('60,001 bytes of one letter but one, that letter', periodic, ofLetter('a')),
    redacting('60,001 bytes of one letter but one, its base64', periodic, ofWord('YWFh')),
    redacting('1,000 bytes of one letter, that letter', 'a'.repeat(1_000), ofLetter('a')),
    redacting('12 bytes of one letter, that letter', 'a'.repeat(12), ofLetter('a')),
    redacting('2 bytes, one after the other', 'xy', ofWord('xy')),
    redacting('32 bytes, all but the last one', `${'a'.repeat(31)}b`, ofWord(`${'a'.repeat(31)}c`)),
    redacting(
      '60,000 bytes of escapes, as HTML',
      '"<&/'.repeat(15_000),
      ofWord('&quot;&lt;&amp;/'),
    ),
  ],
})
for (const { name, perCpuSecond } of report.rows) {
  if (perCpuSecond < MIB_PER_SECOND_MIN) console.warn(`below ${MIB_PER_SECOND_MIN} MiB/s: ${name}`)
}
await publish(report)
