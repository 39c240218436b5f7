import { createHmac, randomBytes } from 'node:crypto'
import test from 'ava'
import * as fc from 'fast-check'
import { receive } from '../../../../actors/webhooks/delivery/receive.js'
import { createSigner } from '../../../../actors/webhooks/delivery/signer.js'
import { contract } from '../../../vectors/contract.js'

const NEW_SECRET = `whsec_${randomBytes(32).toString('base64')}`
const OLD_SECRET = `whsec_${randomBytes(32).toString('base64')}`
const delivery = {
  secret: NEW_SECRET,
  previousSecret: null,
  timestampSecs: 1_767_225_600,
  maxAgeSecs: 300,
  deliveryId: 'msg_1',
  eventType: 'webhook.test',
  payload: new Uint8Array(Buffer.from('{"a":1}')),
}

/** Verification as in the Standard Webhooks specification, independent of our code. */
function standardVerifies(headers: Record<string, string>, body: Uint8Array, secret: string) {
  const key = Buffer.from(secret.replace(/^whsec_/, ''), 'base64')
  const signed = `${headers['webhook-id']}.${headers['webhook-timestamp']}.${Buffer.from(body)}`
  const expected = createHmac('sha256', key).update(signed).digest('base64')
  return headers['webhook-signature']!.split(' ').includes(`v1,${expected}`)
}

function headersOf(
  changed: Partial<Omit<typeof delivery, 'previousSecret'>> & { previousSecret?: string } = {},
) {
  const outcome = createSigner().sign({ ...delivery, ...changed })
  if (outcome.tag !== 'signed') throw new Error(outcome.field)
  return { ...outcome.headers }
}

test('the signer computes the published signature', (t) => {
  const { webhook } = contract
  const headers = headersOf({
    secret: webhook.secret,
    timestampSecs: webhook.timestamp,
    maxAgeSecs: webhook.max_age,
    deliveryId: webhook.delivery_id,
    eventType: webhook.event_type,
    payload: new Uint8Array(Buffer.from(webhook.body)),
  })
  t.is(headers['x-svc-signature-256'], webhook.signature_256)
})

test('a Standard Webhooks receiver verifies a delivery with the generated secret', (t) => {
  t.true(standardVerifies(headersOf(), delivery.payload, NEW_SECRET))
  t.false(standardVerifies(headersOf(), delivery.payload, OLD_SECRET))
})

test('while two secrets overlap a Standard Webhooks receiver verifies with either', (t) => {
  const headers = headersOf({ previousSecret: OLD_SECRET })
  t.true(standardVerifies(headers, delivery.payload, NEW_SECRET))
  t.true(standardVerifies(headers, delivery.payload, OLD_SECRET))
})

test('while two secrets overlap our suite is signed with the new one', (t) => {
  const headers = headersOf({ previousSecret: OLD_SECRET })
  const judge = (secret: string) =>
    receive(headers, delivery.payload, { secrets: [secret], nowSecs: delivery.timestampSecs }).tag
  t.is(judge(NEW_SECRET), 'genuine')
  t.is(judge(OLD_SECRET), 'refused')
})

test('the key cache never exceeds its limit, and eviction changes no signature', (t) => {
  const signer = createSigner(8)
  const first = signer.sign(delivery)
  for (let at = 0; at < 100; at++) {
    signer.sign({ ...delivery, secret: `another-secret-of-the-house-${at}` })
    t.true(signer.cached <= 8)
  }
  t.deepEqual(signer.sign(delivery), first)
})

test('a rotation at the limit of the cache signs with both keys', (t) => {
  const signer = createSigner(1)
  const outcome = signer.sign({ ...delivery, previousSecret: OLD_SECRET })
  t.is(outcome.tag, 'signed')
  if (outcome.tag !== 'signed') return
  t.true(standardVerifies({ ...outcome.headers }, delivery.payload, NEW_SECRET))
  t.true(standardVerifies({ ...outcome.headers }, delivery.payload, OLD_SECRET))
})

test('a delivery with any one bit of its body changed is refused', (t) => {
  const secrets = [NEW_SECRET]
  const body = fc.uint8Array({ minLength: 1, maxLength: 200 })
  fc.assert(
    fc.property(body, fc.nat(), fc.nat(7), (payload, at, bit) => {
      const headers = headersOf({ payload })
      const options = { secrets, nowSecs: delivery.timestampSecs }
      t.is(receive(headers, payload, options).tag, 'genuine')
      const changed = Uint8Array.from(payload)
      changed[at % changed.length]! ^= 1 << bit
      t.is(receive(headers, changed, options).tag, 'refused')
    }),
  )
})

test('a receiver judges arbitrary headers without throwing', (t) => {
  const names = Object.keys(headersOf())
  const headers = fc.dictionary(fc.constantFrom(...names), fc.string({ unit: 'binary' }))
  t.notThrows(() =>
    fc.assert(
      fc.property(headers, (changed) => {
        const options = { secrets: [NEW_SECRET], nowSecs: delivery.timestampSecs }
        receive({ ...headersOf(), ...changed }, delivery.payload, options)
      }),
    ),
  )
})
