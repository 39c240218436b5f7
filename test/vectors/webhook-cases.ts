/** What a webhook receiver must accept and refuse: the table for every receiver library. */
import { deriveKey, suiteMac } from '../../actors/domain/webhooks/signature.js'
import type { ReceivedHeaders, ReceiveFault } from '../../actors/domain/webhooks/receive.js'
import { sign, signingKeysOf } from '../../actors/webhooks/signer/signing.js'
import { contract } from './contract.js'

export const { webhook } = contract
export const body = new Uint8Array(Buffer.from(webhook.body, 'utf8'))

export const delivery = {
  secret: webhook.secret,
  timestampSecs: webhook.timestamp,
  maxAgeSecs: webhook.max_age,
  deliveryId: webhook.delivery_id,
  eventType: webhook.event_type,
  payload: body,
}

export function signed(changed: Partial<typeof delivery> = {}) {
  const { secret, ...fields } = { ...delivery, ...changed }
  return sign(fields, signingKeysOf(secret))
}

export function good(changed: Partial<typeof delivery> = {}): Record<string, string> {
  const outcome = signed(changed)
  if (outcome.tag !== 'signed') throw new Error(outcome.field)
  return { ...outcome.headers }
}

/** Signed by the rules, with a secret that senders refuse. */
function signedWith(secret: string): Record<string, string> {
  const { delivery_id: deliveryId, event_type: eventType, timestamp, max_age: maxAge } = webhook
  const fields = { timestamp: String(timestamp), maxAge: String(maxAge), deliveryId, eventType }
  const mac = suiteMac(deriveKey(secret), fields, body).digest('hex')
  return { 'x-svc-signature-256': `sha256=${mac}` }
}

export const SHORT_SECRET = 'secret-of-15-by'
const SECRET_16 = 'secret-of-16-byt'
const NON_ASCII = 'пароль-秘密-🔑'

export type Case = {
  readonly title: string
  readonly headers?: ReceivedHeaders
  readonly without?: string
  readonly body?: Uint8Array
  readonly ageSecs?: number
  readonly secrets?: readonly string[]
  readonly verdict: 'genuine' | ReceiveFault
}

const reserialized = Buffer.from(JSON.stringify(JSON.parse(webhook.body), null, 1))
const upperHex = webhook.signature_256.replace(/[0-9a-f]{64}/, (hex) => hex.toUpperCase())

/** The table of cases: every receiver library must agree with it. */
export const CASES: readonly Case[] = [
  { title: 'the published delivery', verdict: 'genuine' },
  { title: 'a body that was re-serialised', body: reserialized, verdict: 'wrong_signature' },
  {
    title: 'an unknown suite',
    headers: { 'x-svc-signature-suite': 'svc-webhook-v2' },
    verdict: 'unsupported_suite',
  },
  { title: 'no suite', without: 'x-svc-signature-suite', verdict: 'unsupported_suite' },
  {
    title: 'upper-case hex',
    headers: { 'x-svc-signature-256': upperHex },
    verdict: 'malformed_header',
  },
  { title: 'no signature', without: 'x-svc-signature-256', verdict: 'malformed_header' },
  { title: 'a timestamp one second in the future', ageSecs: -1, verdict: 'from_the_future' },
  { title: 'an age of exactly the maximum', ageSecs: 300, verdict: 'genuine' },
  { title: 'an age of the maximum and one second', ageSecs: 301, verdict: 'too_old' },
  { title: 'no timestamp', without: 'x-svc-timestamp', verdict: 'malformed_header' },
  {
    title: 'a timestamp with a fraction',
    headers: { 'x-svc-timestamp': '1767225600.0' },
    verdict: 'malformed_header',
  },
  { title: 'no max age', without: 'x-svc-signature-max-age', verdict: 'malformed_header' },
  {
    title: 'a negative max age',
    headers: { 'x-svc-signature-max-age': '-1' },
    verdict: 'malformed_header',
  },
  {
    title: 'a max age of zero that was not signed',
    headers: { 'x-svc-signature-max-age': '0' },
    verdict: 'wrong_signature',
  },
  {
    title: 'a signed huge max age, within the local ceiling only',
    headers: good({ maxAgeSecs: 999_999_999_999 }),
    ageSecs: 300,
    verdict: 'genuine',
  },
  {
    title: 'a signed huge max age, beyond the local ceiling',
    headers: good({ maxAgeSecs: 999_999_999_999 }),
    ageSecs: 301,
    verdict: 'too_old',
  },
  {
    title: 'a line feed in the event name',
    headers: { 'x-svc-event': 'webhook\n.test' },
    verdict: 'malformed_header',
  },
  {
    title: 'a carriage return in the event name',
    headers: { 'x-svc-event': 'webhook.test\r' },
    verdict: 'malformed_header',
  },
  {
    title: 'another event name',
    headers: { 'x-svc-event': 'webhook.tested' },
    verdict: 'wrong_signature',
  },
  {
    title: 'another delivery id',
    headers: { 'x-svc-delivery': 'x' },
    verdict: 'wrong_signature',
  },
  {
    title: 'a secret of 15 bytes',
    headers: signedWith(SHORT_SECRET),
    secrets: [SHORT_SECRET],
    verdict: 'wrong_signature',
  },
  {
    title: 'an empty secret, with which anybody can sign',
    headers: signedWith(''),
    secrets: [''],
    verdict: 'wrong_signature',
  },
  {
    title: 'a secret of 16 bytes',
    headers: good({ secret: SECRET_16 }),
    secrets: [SECRET_16],
    verdict: 'genuine',
  },
  {
    title: 'a non-ASCII secret',
    headers: good({ secret: NON_ASCII }),
    secrets: [NON_ASCII],
    verdict: 'genuine',
  },
  {
    title: 'an empty body',
    headers: good({ payload: new Uint8Array() }),
    body: new Uint8Array(),
    verdict: 'genuine',
  },
  { title: 'another secret', secrets: [SECRET_16], verdict: 'wrong_signature' },
  { title: 'no secret at all', secrets: [], verdict: 'wrong_signature' },
  {
    title: 'the older of two secrets in force',
    secrets: [SECRET_16, webhook.secret],
    verdict: 'genuine',
  },
]
