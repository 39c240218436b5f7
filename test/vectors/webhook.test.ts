import test from 'ava'
import { deriveKey } from '../../actors/domain/webhooks/signature.js'
import { receive } from '../../actors/domain/webhooks/receive.js'
import { body, CASES, good, SHORT_SECRET, signed, webhook } from './webhook-cases.js'

test('the published secret derives the published key', (t) => {
  t.is(Buffer.from(deriveKey(webhook.secret)).toString('hex'), webhook.derived_key_hex)
})

test('the published delivery has the published signature', (t) => {
  const headers = good()
  t.is(headers['x-svc-signature-256'], webhook.signature_256)
  t.is(headers['x-svc-signature-suite'], webhook.suite)
  t.is(headers['x-svc-signature-max-age'], '300')
  t.is(headers['x-svc-timestamp'], '1767225600')
  t.is(headers['x-svc-event'], 'webhook.test')
  t.is(headers['x-svc-delivery'], webhook.delivery_id)
})

for (const { title, verdict, ...given } of CASES) {
  test(`a receiver verifies ${title} as ${verdict}`, (t) => {
    const headers: Record<string, string | undefined> = { ...good(), ...given.headers }
    if (given.without !== undefined) delete headers[given.without]
    const outcome = receive(headers, given.body ?? body, {
      secrets: given.secrets ?? [webhook.secret],
      nowSecs: webhook.timestamp + (given.ageSecs ?? 0),
    })
    t.is(outcome.tag === 'refused' ? outcome.reason : outcome.tag, verdict)
  })
}

test('a repeated delivery is valid twice and has the id for deduplication', (t) => {
  const options = { secrets: [webhook.secret], nowSecs: webhook.timestamp }
  const first = receive(good(), body, options)
  t.deepEqual(first, receive(good(), body, options))
  t.deepEqual(first, {
    tag: 'genuine',
    deliveryId: webhook.delivery_id,
    eventType: webhook.event_type,
    forgetAfterSecs: webhook.timestamp + 300,
  })
})

for (const [field, changed] of [
  ['secret', { secret: SHORT_SECRET }],
  ['secret', { secret: 'x'.repeat(257) }],
  ['event_type', { eventType: 'webhook.test\r\nx-evil: 1' }],
  ['event_type', { eventType: '' }],
  ['delivery_id', { deliveryId: 'a\nb' }],
  ['timestamp', { timestampSecs: -1 }],
  ['timestamp', { timestampSecs: 1.5 }],
  ['max_age', { maxAgeSecs: 0 }],
  ['max_age', { maxAgeSecs: Number.NaN }],
] as const) {
  test(`the signer refuses a bad ${field}: ${JSON.stringify(changed).slice(0, 40)}`, (t) => {
    t.deepEqual(signed(changed), { tag: 'refused', field })
  })
}
