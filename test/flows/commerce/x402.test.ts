/** x402 over HTTP: the public client and facilitator libraries, a local chain, a real token. */
import test from 'ava'
import { x402Client, x402HTTPClient } from '@x402/core/client'
import { ExactEvmSchemeV1 } from '@x402/evm/exact/v1/client'
import { wrapFetchWithPayment } from '@x402/fetch'
import { findCharge } from '../../../storage/commerce/charges.js'
import { paymentLinks } from '../../../storage/commerce/products.js'
import { NETWORK, newAccount, TOKEN_NAME } from '../../support/commerce/chain.js'
import { sql } from '../../support/storage/sql.js'
import { merchantIn } from '../../support/commerce/merchant.js'
import { callAt, type Json } from '../../support/identity/tenant-agent.js'
import {
  authorize,
  clientOf,
  decode,
  encode,
  openShop,
  PRICE_ATOMIC,
  PRICE_MINOR,
} from '../../support/commerce/x402-shop.js'
import { numberAll } from '../../support/storage/numbered.js'
import { IS_LONG } from '../../support/runs.js'

const shop = await openShop({ profile: 'onChain' })
/** Its service takes version 1 too. */
const older = await openShop({ profile: 'wallets' })
test.after.always(async () => {
  await shop.close()
  await older.close()
})
/** Concurrent uses of one proof. */
const USES = !IS_LONG ? 20 : 200

test('a link returns its price as a challenge of version 2', async (t) => {
  const link = await shop.link()
  const answer = await shop.get(link)
  t.is(answer.status, 402)
  t.is(answer.headers.get('content-type'), 'application/json')
  t.is(answer.headers.get('cache-control'), 'no-store')
  t.deepEqual(decode(answer.headers.get('payment-required')), answer.body)
  const { x402Version, resource, accepts, error, extensions } = answer.body as {
    [name: string]: unknown
    resource: { url: string }
  }
  t.is(x402Version, 2)
  t.is(error, 'PAYMENT-SIGNATURE header is required')
  t.is(resource.url, shop.running.baseUrl + link.url)
  t.deepEqual(accepts, [
    {
      scheme: 'exact',
      network: NETWORK,
      amount: String(PRICE_ATOMIC),
      asset: shop.chain.token,
      payTo: link.payTo,
      maxTimeoutSeconds: 60,
      extra: { name: TOKEN_NAME, version: '2', assetTransferMethod: 'eip3009' },
    },
  ])
  t.like(extensions, { 'payment-identifier': { info: { required: false } } })
  const post = await shop.post(link)
  t.is(post.status, 402)
  t.deepEqual(post.body, answer.body)
})

test('the public client pays without further code', async (t) => {
  const link = await shop.link()
  const who = await shop.buyer(1)
  const paying = wrapFetchWithPayment(shop.patientFetch, clientOf(who))
  const url = `${shop.running.baseUrl}${link.url}?buyer_country=de&buyer_region=BE`
  const response = await paying(url, { method: 'POST' })
  t.is(response.status, 200)
  const body = (await response.json()) as Record<string, unknown>
  const settlement = decode(response.headers.get('payment-response'))
  t.like(settlement, {
    success: true,
    network: NETWORK,
    payer: who.address.toLowerCase(),
    amount: String(PRICE_ATOMIC),
  })
  t.deepEqual(body['settlement'], settlement)
  t.like(body, {
    status: 'succeeded',
    amount_minor: PRICE_MINOR,
    currency: 'USD',
    metadata: { order: '1234' },
    fulfillment_url: `${shop.running.baseUrl}/api/v1/public/commerce/fulfillment/${String(body['charge_id'])}`,
  })
  const [paid, ...more] = await shop.chain.transfersTo(link.payTo)
  t.is(more.length, 0)
  t.is(paid!.value, PRICE_ATOMIC)
  t.is(paid!.transaction, settlement['transaction'] as `0x${string}`)
})

test('events, charge and ledger show the payment', async (t) => {
  const link = await shop.link({ metadata: { order: 'ledger' } })
  const who = await shop.buyer(1)
  const { status, body } = await shop.final(link, await shop.proof(who, link))
  t.is(status, 200)
  const chargeId = String(body['charge_id'])
  const { database } = shop.running.db
  const { tenantId } = shop.merchant
  await numberAll(database)
  const { events, charge, lines } = await database.tenant(tenantId, async (tx) => ({
    events: await tx.query<{ type: string; data: Record<string, unknown> }>({
      name: 'test.events',
      text: `select type, data from all_events where tenant_id = $1 and data ->> 'charge_id' = $2
             order by sequence`,
      values: [tenantId, chargeId],
    }),
    charge: await findCharge(tx, tenantId, chargeId),
    lines: await tx.query<{ account: string; sum: number }>({
      name: 'test.lines',
      text: `select l.account, sum(l.amount_minor)::int as sum, count(*)::int as count
             from ledger_lines l join ledger_entries e on e.tenant_id = l.tenant_id
               and e.id = l.entry_id
             where l.tenant_id = $1 and e.subject_id = $2 group by 1 order by 1`,
      values: [tenantId, chargeId],
    }),
  }))
  t.deepEqual(
    events.rows.map(({ type }) => type),
    ['commerce.payment.pending', 'commerce.payment.succeeded'],
  )
  t.like(events.rows[1]!.data, {
    charge_id: chargeId,
    amount_minor: PRICE_MINOR,
    currency: 'USD',
    metadata: { order: 'ledger' },
    product_id: shop.merchant.productId,
    price_id: shop.merchant.priceId,
    buyer_id: `${NETWORK}:${who.address.toLowerCase()}`,
  })
  t.like(charge, {
    status: 'succeeded',
    rail: 'x402',
    paymentLinkId: link.id,
    buyerCountry: 'US',
    buyerRegion: 'CA',
  })
  // The money never belonged to the service: the entry in equals the entry out.
  t.deepEqual(lines.rows, [
    { account: 'clearing', sum: 0, count: 2 },
    { account: 'pending', sum: 0, count: 2 },
  ])
})

test('an unknown link is a 404 even with an invalid query or proof', async (t) => {
  const nowhere = { ...(await shop.link()), url: '/api/v1/public/commerce/payment-links/none/x402' }
  t.is((await shop.get(nowhere, '')).status, 404)
  t.is((await shop.post(nowhere, '%%%')).status, 404)
  const other = { ...nowhere, url: nowhere.url.replace('none', 'A'.repeat(22)) }
  t.is((await shop.get(other)).status, 404)
})

test('inactive links, recurring prices and other currencies are not payable', async (t) => {
  const off = await shop.link()
  const { database } = shop.running.db
  await database.tenant(off.tenantId, (tx) =>
    paymentLinks.activate(tx, off.tenantId, off.id, false),
  )
  t.is((await shop.get(off)).status, 404)
  t.is((await shop.get(await shop.link({ priceId: await shop.price(100, 'EUR') }))).status, 404)
  const monthly = await shop.price(100, 'USD', 'month')
  t.is((await shop.get(await shop.link({ priceId: monthly }))).status, 404)
  // Neither the link nor the chain names a payee.
  t.is((await shop.get(await shop.link({ x402: null }))).status, 404)
  t.is((await shop.get(await shop.link({ x402: { network: NETWORK } }))).status, 404)
  const x402 = { network: 'eip155:1', pay_to: newAccount().address }
  t.is((await shop.get(await shop.link({ x402 }))).status, 404)
})

test('the links of a suspended tenant are not payable', async (t) => {
  const { database } = shop.running.db
  const { tenantId, priceId } = await merchantIn(database)
  const link = await shop.link({ tenantId, priceId })
  const who = await shop.buyer(2)
  const [proof, other] = [await shop.proof(who, link), await shop.proof(who, link)]
  t.is((await shop.final(link, proof)).status, 200)
  await sql(database)`update tenants set status = 'suspended' where id = ${tenantId}`
  t.is((await shop.get(link)).status, 404)
  t.is((await shop.post(link, other)).status, 404)
  t.is((await shop.chain.transfersTo(link.payTo)).length, 1)
  t.is((await shop.final(link, proof)).status, 200, 'who has paid hears it again')
})

test('country and region of the buyer are required', async (t) => {
  const link = await shop.link()
  for (const query of [
    '',
    '?buyer_country=US',
    '?buyer_region=CA',
    '?buyer_country=&buyer_region=CA',
    '?buyer_country=US&buyer_region=',
    '?buyer_country=USA&buyer_region=CA',
  ]) {
    const { status, body } = await shop.get(link, query)
    t.is(status, 400, query)
    t.is(body['error'], 'bad_request')
  }
})

test('the amount follows from quantity, minor units and the built-in asset', async (t) => {
  const link = await shop.link({
    quantity: 3,
    x402: { network: 'eip155:8453', pay_to: newAccount().address },
  })
  const { status, body } = await shop.get(link)
  t.is(status, 402)
  t.like((body['accepts'] as object[])[0], {
    network: 'eip155:8453',
    amount: String(PRICE_ATOMIC * 3n),
    asset: '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913',
    extra: { name: 'USD Coin', version: '2' },
  })
})

test('browsers of any origin can read the response and send the proof', async (t) => {
  const link = await shop.link()
  const { headers } = await callAt(
    shop.running.baseUrl,
    `${link.url}?buyer_country=US&buyer_region=CA`,
    { headers: { origin: 'https://shop.example' } },
  )
  t.is(headers.get('access-control-allow-origin'), '*')
  t.regex(headers.get('access-control-expose-headers')!, /payment-required/i)
  t.regex(headers.get('access-control-expose-headers')!, /payment-response/i)
})

test('a repeated proof gets the stored response and settles nothing', async (t) => {
  const link = await shop.link()
  const who = await shop.buyer(2)
  const proof = await shop.proof(who, link)
  const first = await shop.final(link, proof)
  const again = await shop.final(link, proof)
  t.is(again.status, 200)
  t.deepEqual(again.body, first.body)
  t.is(again.headers.get('payment-response'), first.headers.get('payment-response'))
  t.is(shop.facilitator.about(link.payTo, 'settle'), 1)
  t.is((await shop.chain.transfersTo(link.payTo)).length, 1)
})

test('a repeated proof succeeds after the link was deactivated', async (t) => {
  const link = await shop.link()
  const who = await shop.buyer(2)
  const [proof, other] = [await shop.proof(who, link), await shop.proof(who, link)]
  const paid = await shop.final(link, proof)
  t.is(paid.status, 200)
  const { database } = shop.running.db
  await database.tenant(link.tenantId, (tx) =>
    paymentLinks.activate(tx, link.tenantId, link.id, false),
  )
  const again = await shop.final(link, proof)
  t.is(again.status, 200)
  t.deepEqual(again.body, paid.body)
  t.is((await shop.post(link, other)).status, 404)
})

test('an authorization pays one link and no other', async (t) => {
  const payTo = newAccount().address
  const [one, other] = [await shop.link({ payTo }), await shop.link({ payTo })]
  const who = await shop.buyer(2)
  const payload = await shop.payload(who, one)
  t.is((await shop.final(one, encode(payload))).status, 200)
  const replay = await shop.post(other, encode(payload))
  t.is(replay.status, 402)
  t.like(decode(replay.headers.get('payment-response')), {
    success: false,
    errorReason: 'invalid_transaction_state',
    transaction: '',
    payer: who.address.toLowerCase(),
  })
  t.truthy(replay.headers.get('payment-required'))
  // Nor a link of another tenant.
  const elsewhere = await merchantIn(shop.running.db.database)
  const { tenantId, priceId } = elsewhere
  const foreign = await shop.link({ payTo, tenantId, priceId })
  t.is((await shop.post(foreign, encode(payload))).status, 402)
  t.is((await shop.chain.transfersTo(payTo)).length, 1)
})

// Alone: the facilitator shares the process of the test with the clients.
test.serial('concurrent uses of one proof make one settlement', async (t) => {
  t.timeout(120_000)
  const link = await shop.link()
  const proof = await shop.proof(await shop.buyer(5), link)
  const answers = await Promise.all(Array.from({ length: USES }, () => shop.final(link, proof)))
  t.deepEqual([...new Set(answers.map(({ status }) => status))], [200])
  t.is(new Set(answers.map(({ body }) => body['charge_id'])).size, 1)
  t.is(shop.facilitator.about(link.payTo, 'settle'), 1)
  t.is((await shop.chain.transfersTo(link.payTo)).length, 1)
})

test('an identifier belongs to one payment', async (t) => {
  const link = await shop.link()
  const who = await shop.buyer(3)
  const identified = (payload: object, id: unknown) =>
    encode({ ...payload, extensions: { 'payment-identifier': { info: { required: false, id } } } })
  const payload = await shop.payload(who, link)
  const id = `pay_${'7d5d747be160e280'}`
  const first = await shop.final(link, identified(payload, id))
  t.is(first.status, 200, first.text)
  const again = await shop.post(link, identified(payload, id))
  t.is(again.status, 200)
  t.deepEqual(again.body, first.body)
  const other = await shop.post(link, identified(await shop.payload(who, link), id))
  t.like(other, { status: 409, body: { error: 'conflict' } })
  t.is((await shop.chain.transfersTo(link.payTo)).length, 1)
  for (const wrong of ['short', 'x'.repeat(129), 'with a space in it', 5, null]) {
    const answer = await shop.post(link, identified(await shop.payload(who, link), wrong))
    t.is(answer.status, 400, JSON.stringify(wrong))
  }
})

test('capabilities and OpenAPI describe it', async (t) => {
  const { body } = await callAt(shop.running.baseUrl, '/api/v1/capabilities')
  t.true((body['capabilities'] as string[]).includes('commerce.x402'))
  const features = body['features'] as Record<string, Json>
  t.like(features['commerce.x402'], {
    enabled: true,
    versions: [2],
    schemes: ['exact'],
    signatures: ['eip712_secp256k1', 'eip1271', 'erc6492'],
  })
  t.true((features['commerce.x402']!['networks'] as string[]).includes('eip155:8453'))
  t.deepEqual(features['webhooks']!['signature_suites'], ['svc-webhook-v1', 'standard-webhooks-v1'])
  const { body: document } = await callAt(shop.running.baseUrl, '/openapi.json')
  const paths = document['paths'] as Record<string, Record<string, { responses: object }>>
  const path = paths['/api/v1/public/commerce/payment-links/{payment_link_token}/x402']!
  t.deepEqual(Object.keys(path['post']!.responses).toSorted().slice(0, 4), [
    '200',
    '400',
    '402',
    '404',
  ])
})

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
  ]
  for (const [terms, reason] of cases) {
    const exact = await authorize(who, { ...good, ...terms })
    const answer = await shop.post(link, encode({ ...payload, payload: exact }))
    t.is(answer.status, 402, reason)
    t.is(decode(answer.headers.get('payment-response'))['errorReason'], reason)
  }
  t.is(shop.facilitator.about(link.payTo), 0)
})

test('a signature that is not of the key of the payer pays nothing', async (t) => {
  const link = await shop.link()
  const who = await shop.buyer(1)
  const payload = await shop.payload(who, link)
  const good = { token: shop.chain.token, to: link.payTo, value: PRICE_ATOMIC }
  const others = [{ name: 'Other' }, { chainId: 1 }, { token: newAccount().address }]
  const { signature, authorization } = await authorize(who, good)
  const flipped = signature.endsWith('1b')
    ? `${signature.slice(0, -2)}1c`
    : `${signature.slice(0, -2)}1b`
  const proofs = [
    ...(await Promise.all(others.map((other) => authorize(who, { ...good, ...other })))),
    ...[flipped, '0x00', `0x${'00'.repeat(65)}`].map((wrong) => ({
      signature: wrong,
      authorization,
    })),
  ]
  for (const exact of proofs) {
    const answer = await shop.post(link, encode({ ...payload, payload: exact }))
    t.is(answer.status, 402, exact.signature)
    t.is(
      decode(answer.headers.get('payment-response'))['errorReason'],
      'invalid_exact_evm_payload_signature',
    )
  }
  // No chain is watched, so the payer might be a contract, and the facilitator is asked.
  t.is(shop.facilitator.about(link.payTo, 'settle'), 0)
})

test('the facilitator judges signatures of contract accounts', async (t) => {
  const link = await shop.link()
  const who = await shop.buyer(1)
  const payload = await shop.payload(who, link)
  const good = { token: shop.chain.token, to: link.payTo, value: PRICE_ATOMIC }
  const { signature, authorization } = await authorize(who, good)
  const deployment = `0x${'00'.repeat(64)}${signature.slice(2)}${'6492'.repeat(16)}`
  // A Safe account of one owner has 65 bytes with v + 4, and a key on P-256 has 64.
  const v = Number.parseInt(signature.slice(-2), 16)
  const safe = `${signature.slice(0, -2)}${(v + 4).toString(16)}`
  const another = await authorize(newAccount(), good)
  const signatures = [deployment, safe, another.signature, signature.slice(0, -2), `${signature}00`]
  const proofs = signatures.map((one) =>
    encode({ ...payload, payload: { signature: one, authorization } }),
  )
  const asked: unknown[] = []
  shop.facilitator.mischiefs.set(link.payTo, ({ operation, paymentPayload }) => {
    asked.push((paymentPayload.payload as { signature: string }).signature)
    return operation === 'verify'
      ? { isValid: false, invalidReason: 'invalid_exact_evm_payload_signature', payer: who.address }
      : undefined
  })
  for (const proof of proofs) {
    const refused = await shop.post(link, proof)
    t.is(refused.status, 402)
    t.is(
      decode(refused.headers.get('payment-response'))['errorReason'],
      'invalid_exact_evm_payload_signature',
    )
  }
  t.deepEqual(asked, signatures)
  t.is(shop.facilitator.about(link.payTo, 'settle'), 0, 'nothing is settled that was not verified')

  const transaction = `0x${'ab'.repeat(32)}`
  shop.facilitator.mischiefs.set(link.payTo, ({ operation, paymentRequirements }) =>
    operation === 'verify'
      ? { isValid: true, payer: who.address }
      : {
          success: true,
          payer: who.address,
          transaction,
          network: paymentRequirements.network,
          amount: String(PRICE_ATOMIC),
        },
  )
  const paid = await shop.post(link, proofs[1]!)
  t.is(paid.status, 200, paid.text)
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
  t.like(answer, { status: 402, body: { x402Version: 2 } })
})

test('the body is the challenge of version 1, the header the challenge of version 2', async (t) => {
  const link = await older.link()
  const { status, body, headers } = await older.get(link)
  t.is(status, 402)
  t.is(decode(headers.get('payment-required'))['x402Version'], 2)
  t.is(body['x402Version'], 1)
  t.deepEqual(body['accepts'], [
    {
      scheme: 'exact',
      network: 'base-sepolia',
      maxAmountRequired: String(PRICE_ATOMIC),
      resource: older.running.baseUrl + link.url,
      description: 'Tea',
      mimeType: 'application/json',
      payTo: link.payTo,
      maxTimeoutSeconds: 60,
      asset: older.chain.token,
      extra: { name: TOKEN_NAME, version: '2' },
    },
  ])
})

test('a client of version 1 pays once, and a repetition gets the same response', async (t) => {
  const link = await older.link()
  const who = await older.buyer(2)
  const client = x402Client.fromConfig({
    schemes: [
      { network: 'base-sepolia' as never, client: new ExactEvmSchemeV1(who), x402Version: 1 },
    ],
    spendControls: false,
  })
  const http = new x402HTTPClient(client)
  const { body } = await older.get(link)
  const required = http.getPaymentRequiredResponse(() => null, body)
  const headers = http.encodePaymentSignatureHeader(await client.createPaymentPayload(required))
  const paid = await older.post(link, undefined, headers)
  t.is(paid.status, 200, paid.text)
  const settlement = http.getPaymentSettleResponse((name) =>
    name === 'X-PAYMENT-RESPONSE' ? paid.headers.get(name) : null,
  )
  t.like(settlement, {
    success: true,
    network: 'base-sepolia',
    payer: who.address.toLowerCase(),
  })
  const again = await older.post(link, undefined, headers)
  t.deepEqual(again.body, paid.body)
  t.is((await older.chain.transfersTo(link.payTo)).length, 1)
})

test('version 2 works at the same time', async (t) => {
  const link = await older.link()
  t.is((await older.final(link, await older.proof(await older.buyer(1), link))).status, 200)
})

test('two proofs in one request, a wrong version and an unknown network are refused', async (t) => {
  const link = await older.link()
  const proof = await older.proof(await older.buyer(1), link)
  t.is((await older.post(link, proof, { 'x-payment': proof })).status, 400)
  t.is((await older.post(link, undefined, { 'x-payment': proof })).status, 400)
  const from = newAccount().address
  const payload = {
    signature: `0x${'11'.repeat(65)}`,
    authorization: {
      from,
      to: link.payTo,
      value: String(PRICE_ATOMIC),
      validAfter: '0',
      validBefore: '99999999999',
      nonce: `0x${'22'.repeat(32)}`,
    },
  }
  const outdated = { x402Version: 1, scheme: 'exact', network: 'solana', payload }
  const answer = await older.post(link, undefined, { 'x-payment': encode(outdated) })
  t.is(answer.status, 402)
  t.is(decode(answer.headers.get('x-payment-response'))['errorReason'], 'invalid_network')
})
