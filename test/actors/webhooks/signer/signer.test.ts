/** What is signed and how it is verified, and which secrets the signer keeps. */
import { createHmac, randomBytes } from 'node:crypto'
import test from 'ava'
import * as fc from 'fast-check'
import { webhookSignerActor } from '../../../../actors/webhooks/signer/actor.js'
import { receive } from '../../../../actors/domain/webhooks/receive.js'
import { sign, signingKeysOf } from '../../../../actors/webhooks/signer/signing.js'
import { localSigner, UNSEALED } from '../../../../runtime/cli/webhooks/local-signer.js'
import { ActorUnavailable } from '../../../../runtime/kernel/actor.js'
import { type Clock, systemClock } from '../../../../runtime/kernel/clock.js'
import { DependencyUnavailable } from '../../../../runtime/kernel/dependency.js'
import { spawnInline } from '../../../../runtime/kernel/inline.js'
import { SealBroken } from '../../../../storage/platform/sealing/seal.js'
import type { RewrittenContext } from '../../../../storage/platform/sealing/stamps.js'
import { heldClock } from '../../../support/held-clock.js'
import { contract } from '../../../vectors/contract.js'

const NEW_SECRET = `whsec_${randomBytes(32).toString('base64')}`
const OLD_SECRET = `whsec_${randomBytes(32).toString('base64')}`
const outgoing = {
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

function headersOf({
  secret = NEW_SECRET,
  previousSecret,
  ...changed
}: Partial<typeof outgoing> & { secret?: string; previousSecret?: string } = {}) {
  const previous = previousSecret === undefined ? undefined : signingKeysOf(previousSecret)
  const outcome = sign({ ...outgoing, ...changed }, signingKeysOf(secret), previous)
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
  t.true(standardVerifies(headersOf(), outgoing.payload, NEW_SECRET))
  t.false(standardVerifies(headersOf(), outgoing.payload, OLD_SECRET))
})

test('while two secrets overlap a Standard Webhooks receiver verifies with either', (t) => {
  const headers = headersOf({ previousSecret: OLD_SECRET })
  t.true(standardVerifies(headers, outgoing.payload, NEW_SECRET))
  t.true(standardVerifies(headers, outgoing.payload, OLD_SECRET))
})

test('while two secrets overlap our suite is signed with the new one', (t) => {
  const headers = headersOf({ previousSecret: OLD_SECRET })
  const judge = (secret: string) =>
    receive(headers, outgoing.payload, { secrets: [secret], nowSecs: outgoing.timestampSecs }).tag
  t.is(judge(NEW_SECRET), 'genuine')
  t.is(judge(OLD_SECRET), 'refused')
})

test('a delivery with any one bit of its body changed is refused', (t) => {
  const secrets = [NEW_SECRET]
  const body = fc.uint8Array({ minLength: 1, maxLength: 200 })
  fc.assert(
    fc.property(body, fc.nat(), fc.nat(7), (payload, at, bit) => {
      const headers = headersOf({ payload })
      const options = { secrets, nowSecs: outgoing.timestampSecs }
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
        const options = { secrets: [NEW_SECRET], nowSecs: outgoing.timestampSecs }
        receive({ ...headersOf(), ...changed }, outgoing.payload, options)
      }),
    ),
  )
})

/** A signer that does not seal secrets, and the bytes that it got. */
function watchedSigner(
  open = (sealed: Uint8Array) => new Uint8Array(sealed),
  clock: Clock = systemClock,
) {
  const opened: { context: string; bytes: Uint8Array }[] = []
  const sealer = {
    async open(tenantId: string, { rewritten }: RewrittenContext, sealed: Uint8Array) {
      const bytes = open(sealed)
      opened.push({ context: `${tenantId} ${rewritten}`, bytes })
      return bytes
    },
  }
  const spawned = spawnInline(webhookSignerActor, { sealer, clock }, { cloneMessages: true })
  return { ...spawned, opened }
}

const sealed = new Uint8Array(Buffer.from(NEW_SECRET))
const message = {
  ...outgoing,
  tenantId: 'tenant',
  webhookId: 'webhook',
  secret: sealed,
  previousSecret: null,
}

test('the signer opens a secret once, wipes it, and signs with its keys from then on', async (t) => {
  const { ref, opened } = watchedSigner()
  const headers = headersOf()
  const answers = [ref.signDelivery(message), ref.signDelivery(message)]
  for (const answer of await Promise.all(answers)) t.deepEqual(answer, { tag: 'signed', headers })
  t.deepEqual(await ref.signDelivery(message), { tag: 'signed', headers })
  t.is(opened.length, 1)
  t.is(opened[0]?.context, 'tenant webhook:webhook:secret')
  t.deepEqual(opened[0]?.bytes, new Uint8Array(sealed.length))
})

test('keys are kept for an hour, and at most 4,096 of them', async (t) => {
  const clock = heldClock(new Date(0))
  const { ref, opened } = watchedSigner(undefined, clock)
  await ref.signDelivery(message)
  clock.advance(59 * 60_000)
  await ref.signDelivery(message)
  t.is(opened.length, 1)
  clock.advance(60_000)
  await ref.signDelivery(message)
  t.is(opened.length, 2)
  for (let at = 0; at < 4096; at += 1)
    await ref.signDelivery({ ...message, webhookId: `webhook ${at}` })
  await ref.signDelivery(message)
  t.is(opened.length, 4099)
})

test('a secret that was moved to another subscription or tenant is opened again, which its seal refuses', async (t) => {
  const { ref, opened } = watchedSigner()
  await ref.signDelivery(message)
  await ref.signDelivery({ ...message, webhookId: 'another' })
  await ref.signDelivery({ ...message, tenantId: 'another' })
  t.deepEqual(
    opened.map(({ context }) => context),
    [
      'tenant webhook:webhook:secret',
      'tenant webhook:another:secret',
      'another webhook:webhook:secret',
    ],
  )
})

test('during a rotation the signer signs with both secrets', async (t) => {
  const { ref } = watchedSigner()
  const previousSecret = new Uint8Array(Buffer.from(OLD_SECRET))
  t.deepEqual(await ref.signDelivery({ ...message, previousSecret }), {
    tag: 'signed',
    headers: headersOf({ previousSecret: OLD_SECRET }),
  })
})

test('secrets that cannot be opened are refused, and the signer stays ready', async (t) => {
  const { ref, stats } = watchedSigner(() => {
    throw new SealBroken('moved')
  })
  for (let at = 0; at < 20; at += 1) {
    const answer = await ref.signDelivery({ ...message, webhookId: `webhook ${at}` })
    t.deepEqual(answer, { tag: 'refused', field: 'secret' })
  }
  t.true(stats().ready)
})

class KmsAway extends DependencyUnavailable {
  override readonly name = 'KmsAway'
}

test('without the kms nothing is signed, and the next delivery tries again', async (t) => {
  let isAway = true
  const { ref } = watchedSigner((bytes) => {
    if (isAway) throw new KmsAway('the kms is away')
    return new Uint8Array(bytes)
  })
  const error = await t.throwsAsync(ref.signDelivery(message), { instanceOf: ActorUnavailable })
  t.is(error?.reason, 'dependency')
  isAway = false
  t.is((await ref.signDelivery(message)).tag, 'signed')
})

test('the signer verifies what it signed', async (t) => {
  const signer = localSigner()
  const { headers, body, nowSecs } = {
    headers: headersOf(),
    body: outgoing.payload,
    nowSecs: outgoing.timestampSecs,
  }
  const judge = async (...secrets: string[]) => {
    const bytes = secrets.map((secret) => Buffer.from(secret))
    return (await signer.verifyDelivery({ ...UNSEALED, headers, body, nowSecs, secrets: bytes }))
      .tag
  }
  t.is(await judge(OLD_SECRET, NEW_SECRET), 'genuine')
  t.is(await judge(OLD_SECRET), 'refused')
})
