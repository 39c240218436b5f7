/** Invalid payment proofs: each is refused with its reason, and none is charged. */
import test from 'ava'
import { newAccount } from '../../support/commerce/chain.js'
import {
  authorize,
  decode,
  encode,
  openShop,
  PRICE_ATOMIC,
} from '../../support/commerce/x402-shop.js'

const shop = await openShop()
test.after.always(() => shop.close())

test('a payment that was not offered is refused with its reason', async (t) => {
  const link = await shop.link()
  const who = await shop.buyer(1)
  const payload = await shop.payload(who, link)
  const accepted = payload['accepted'] as Record<string, unknown>
  const cases: [change: object, reason: string][] = [
    [{ scheme: 'upto' }, 'invalid_scheme'],
    [{ network: 'eip155:1' }, 'invalid_network'],
    [{ amount: '1' }, 'invalid_payment_requirements'],
    [{ payTo: newAccount().address }, 'invalid_payment_requirements'],
    [{ asset: newAccount().address }, 'invalid_payment_requirements'],
    [{ maxTimeoutSeconds: 600 }, 'invalid_payment_requirements'],
    [{ extra: { name: 'Other', version: '2' } }, 'invalid_payment_requirements'],
  ]
  for (const [change, reason] of cases) {
    const proof = encode({ ...payload, accepted: { ...accepted, ...change } })
    const answer = await shop.final(link, proof)
    t.is(answer.status, 402, reason)
    t.is(decode(answer.headers.get('payment-response'))['errorReason'], reason)
    t.is(answer.body['error'], reason)
    t.deepEqual(decode(answer.headers.get('payment-required')), answer.body)
  }
  // Addresses are case-insensitive.
  const lower = { ...accepted, asset: String(accepted['asset']).toLowerCase() }
  t.is((await shop.post(link, encode({ ...payload, accepted: lower }))).status, 200)
})

test('invalid authorizations are refused before the facilitator is called', async (t) => {
  const link = await shop.link()
  const who = await shop.buyer(1)
  const payload = await shop.payload(who, link)
  const good = { token: shop.chain.token, to: link.payTo, value: PRICE_ATOMIC }
  const nowSecs = BigInt(Math.floor(Date.now() / 1000))
  const cases: [terms: Partial<Parameters<typeof authorize>[1]>, reason: string][] = [
    [{ to: newAccount().address }, 'invalid_exact_evm_payload_recipient_mismatch'],
    [{ value: 1n }, 'invalid_exact_evm_payload_authorization_value_mismatch'],
    [{ value: PRICE_ATOMIC + 1n }, 'invalid_exact_evm_payload_authorization_value_mismatch'],
    [{ validAfter: nowSecs + 30n }, 'invalid_exact_evm_payload_authorization_valid_after'],
    [{ validBefore: nowSecs }, 'invalid_exact_evm_payload_authorization_valid_before'],
    [{ validBefore: nowSecs + 600n }, 'invalid_exact_evm_payload_authorization_valid_before'],
    [{ validBefore: 2n ** 255n }, 'invalid_exact_evm_payload_authorization_valid_before'],
    [{ name: 'Other' }, 'invalid_exact_evm_payload_signature'],
    [{ chainId: 1 }, 'invalid_exact_evm_payload_signature'],
    [{ token: newAccount().address }, 'invalid_exact_evm_payload_signature'],
  ]
  for (const [terms, reason] of cases) {
    const exact = await authorize(who, { ...good, ...terms })
    const answer = await shop.post(link, encode({ ...payload, payload: exact }))
    t.is(answer.status, 402, reason)
    t.is(decode(answer.headers.get('payment-response'))['errorReason'], reason)
  }
  const { signature, authorization } = await authorize(who, good)
  const flipped = signature.endsWith('1b')
    ? `${signature.slice(0, -2)}1c`
    : `${signature.slice(0, -2)}1b`
  for (const wrong of [flipped, `${signature}00`, '0x00', `0x${'00'.repeat(65)}`]) {
    const exact = { signature: wrong, authorization }
    const answer = await shop.post(link, encode({ ...payload, payload: exact }))
    t.is(answer.status, 402, wrong)
    t.is(
      decode(answer.headers.get('payment-response'))['errorReason'],
      'invalid_exact_evm_payload_signature',
    )
  }
  t.is(shop.facilitator.about(link.payTo), 0)
})

test('a payer without the money is refused and may pay later', async (t) => {
  const link = await shop.link()
  const who = await shop.buyer(0)
  const proof = await shop.proof(who, link)
  const poor = await shop.final(link, proof)
  t.is(poor.status, 402)
  t.is(decode(poor.headers.get('payment-response'))['errorReason'], 'insufficient_funds')
  await shop.chain.mint(who.address, PRICE_ATOMIC)
  t.is((await shop.final(link, proof)).status, 200)
})

test('malformed proofs are 400 and change nothing', async (t) => {
  const link = await shop.link()
  const payload = await shop.payload(await shop.buyer(1), link)
  const exact = payload['payload'] as { signature: string; authorization: Record<string, unknown> }
  const without = (name: string) => ({ ...exact.authorization, [name]: undefined })
  const proofs = [
    '%%%',
    'e30',
    encode(null),
    encode([payload]),
    encode('text'),
    encode({ ...payload, x402Version: 1 }),
    encode({ ...payload, x402Version: 3 }),
    encode({ ...payload, x402Version: '2' }),
    encode({ ...payload, accepted: undefined }),
    encode({ ...payload, payload: undefined }),
    encode({ ...payload, payload: { ...exact, signature: undefined } }),
    encode({ ...payload, payload: { ...exact, signature: 'none' } }),
    ...Object.keys(exact.authorization).map((name) =>
      encode({ ...payload, payload: { ...exact, authorization: without(name) } }),
    ),
    encode({
      ...payload,
      payload: { ...exact, authorization: { ...exact.authorization, value: '0x10' } },
    }),
    `${encode(payload)}, ${encode(payload)}`,
    Buffer.from(`${JSON.stringify(payload).slice(0, -1)},"x402Version":2}`).toString('base64'),
  ]
  for (const proof of proofs) {
    const answer = await shop.post(link, proof)
    t.is(answer.status, 400, proof.slice(0, 80))
    t.is(answer.headers.get('content-type'), 'application/problem+json')
  }
  t.is(shop.facilitator.about(link.payTo), 0)
  t.is((await shop.post(link, encode(payload))).status, 200)
})

test('version 1 is refused unless it is enabled', async (t) => {
  const link = await shop.link()
  const answer = await shop.post(link, undefined, { 'x-payment': 'e30=' })
  t.is(answer.status, 402)
  t.is(answer.body['x402Version'], 2)
})
