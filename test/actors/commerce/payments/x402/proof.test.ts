/** Parsing of payment proofs: every valid payload, and no other. */
import test from 'ava'
import * as fc from 'fast-check'
import { decodePaymentSignatureHeader, encodePaymentSignatureHeader } from '@x402/core/http'
import { encodeField } from '../../../../../actors/domain/commerce/x402.js'
import { canonical, readProof } from '../../../../../actors/commerce/payments/x402/proof.js'
import { IS_LONG } from '../../../../support/runs.js'

const hex = (bytes: number) =>
  fc
    .uint8Array({ minLength: bytes, maxLength: bytes })
    .map((of) => `0x${Buffer.from(of).toString('hex')}`)
const decimal = fc.bigInt({ min: 0n, max: 2n ** 256n - 1n }).map(String)
const text = fc.string({ minLength: 1 })
const authorization = fc.record({
  from: hex(20),
  to: hex(20),
  value: decimal,
  validAfter: decimal,
  validBefore: decimal,
  nonce: hex(32),
})
const exact = fc.record({ signature: hex(65), authorization })
const accepted = fc.record({
  scheme: text,
  network: text,
  amount: text,
  asset: text,
  payTo: text,
  maxTimeoutSeconds: fc.nat(),
  // `__proto__` is a member in JSON but not in an object, so it must not be copied.
  extra: fc.dictionary(
    fc.string().filter((name) => name !== '__proto__'),
    fc.string(),
  ),
})
const payload = fc.record({ x402Version: fc.constant(2), accepted, payload: exact })

test('proofs of the public library are parsed', (t) => {
  fc.assert(
    fc.property(payload, (sent) => {
      const read = readProof(encodePaymentSignatureHeader(sent as never), 2)
      if (read.tag !== 'proof') throw new Error(read.detail)
      t.deepEqual(read.proof.authorization, sent.payload.authorization)
      t.is(read.proof.signature, sent.payload.signature)
      t.like(read.proof.accepted, { ...sent.accepted, version: 2 })
    }),
  )
})

test('the public library parses our messages', (t) => {
  fc.assert(
    fc.property(fc.dictionary(fc.string(), fc.jsonValue()), (message) => {
      const read = decodePaymentSignatureHeader(encodeField(message)) as unknown
      t.deepEqual(read, JSON.parse(JSON.stringify(message)))
    }),
  )
})

test('the order of members does not change a proof', (t) => {
  const shuffled = (value: unknown): unknown =>
    typeof value === 'object' && value !== null && !Array.isArray(value)
      ? Object.fromEntries(
          Object.entries(value)
            .toReversed()
            .map(([name, of]) => [name, shuffled(of)]),
        )
      : value
  fc.assert(
    fc.property(payload, (sent) => {
      const [one, other] = [sent, shuffled(sent)].map((each) => readProof(encodeField(each), 2))
      if (one?.tag !== 'proof' || other?.tag !== 'proof') throw new Error('not read')
      t.deepEqual(one.proof.payloadSha256, other.proof.payloadSha256)
      t.deepEqual(one.proof.proofSha256, other.proof.proofSha256)
    }),
  )
})

test('any other payment is another proof', (t) => {
  fc.assert(
    fc.property(payload, exact, (sent, other) => {
      fc.pre(canonical(sent.payload) !== canonical(other))
      const [one, two] = [sent.payload, other].map((each) =>
        readProof(encodeField({ ...sent, payload: each }), 2),
      )
      if (one?.tag !== 'proof' || two?.tag !== 'proof') throw new Error('not read')
      t.notDeepEqual(one.proof.proofSha256, two.proof.proofSha256)
    }),
  )
})

test('nothing makes it throw', (t) => {
  const fields = fc.oneof(
    fc.string(),
    fc.base64String(),
    fc.jsonValue().map((value) => encodeField(value)),
    fc.uint8Array().map((bytes) => Buffer.from(bytes).toString('base64')),
    // A proof with one unexpected value in it.
    fc
      .tuple(
        payload,
        fc.constantFrom('accepted', 'payload', 'extensions', 'x402Version'),
        fc.jsonValue(),
      )
      .map(([sent, name, value]) => encodeField({ ...sent, [name]: value })),
    fc
      .tuple(payload, fc.nat(), fc.string({ minLength: 1, maxLength: 1 }))
      .map(([sent, at, character]) => {
        const field = encodeField(sent)
        return field.slice(0, at % field.length) + character + field.slice((at % field.length) + 1)
      }),
  )
  fc.assert(
    fc.property(fields, fc.constantFrom(1 as const, 2 as const), (field, version) => {
      const read = readProof(field, version)
      t.true(read.tag === 'proof' || read.detail.length > 0)
    }),
    { numRuns: IS_LONG ? 2_000 : 25 },
  )
})

test('only the canonical spelling of base64 is accepted', (t) => {
  const sent = fc.sample(payload, 1)[0]!
  const field = encodeField(sent)
  for (const wrong of [
    ` ${field}`,
    `${field}\n`,
    `${field}====`,
    field.replace(/[A-Z]/, '-'),
    'QR==',
  ]) {
    t.is(readProof(wrong, 2).tag, 'malformed', wrong.slice(-10))
  }
})
