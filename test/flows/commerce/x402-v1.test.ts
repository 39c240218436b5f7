/** Version 1 of x402 when it is enabled, with the public client of that version. */
import test from 'ava'
import { x402Client, x402HTTPClient } from '@x402/core/client'
import { ExactEvmSchemeV1 } from '@x402/evm/exact/v1/client'
import { newAccount, TOKEN_NAME } from '../../support/commerce/chain.js'
import { decode, encode, openShop, PRICE_ATOMIC } from '../../support/commerce/x402-shop.js'

const shop = await openShop({ v1: true })
test.after.always(() => shop.close())

test('the body is the challenge of version 1, the header that of version 2', async (t) => {
  const link = await shop.link()
  const { status, body, headers } = await shop.get(link)
  t.is(status, 402)
  t.is(decode(headers.get('payment-required'))['x402Version'], 2)
  t.is(body['x402Version'], 1)
  t.deepEqual(body['accepts'], [
    {
      scheme: 'exact',
      network: 'base-sepolia',
      maxAmountRequired: String(PRICE_ATOMIC),
      resource: shop.running.baseUrl + link.url,
      description: 'Tea',
      mimeType: 'application/json',
      outputSchema: null,
      payTo: link.payTo,
      maxTimeoutSeconds: 60,
      asset: shop.chain.token,
      extra: { name: TOKEN_NAME, version: '2' },
    },
  ])
})

test('a client of version 1 pays once, and a repetition gets the same response', async (t) => {
  const link = await shop.link()
  const who = await shop.buyer(2)
  const client = x402Client.fromConfig({
    schemes: [
      { network: 'base-sepolia' as never, client: new ExactEvmSchemeV1(who), x402Version: 1 },
    ],
    spendControls: false,
  })
  const http = new x402HTTPClient(client)
  const { body } = await shop.get(link)
  const required = http.getPaymentRequiredResponse(() => null, body)
  const headers = http.encodePaymentSignatureHeader(await client.createPaymentPayload(required))
  const paid = await shop.post(link, undefined, headers)
  t.is(paid.status, 200, paid.text)
  const settlement = http.getPaymentSettleResponse((name) =>
    name === 'X-PAYMENT-RESPONSE' ? paid.headers.get(name) : null,
  )
  t.like(settlement, {
    success: true,
    network: 'base-sepolia',
    payer: who.address.toLowerCase(),
  })
  const again = await shop.post(link, undefined, headers)
  t.deepEqual(again.body, paid.body)
  t.is((await shop.chain.transfersTo(link.payTo)).length, 1)
})

test('version 2 works at the same time', async (t) => {
  const link = await shop.link()
  t.is((await shop.post(link, await shop.proof(await shop.buyer(1), link))).status, 200)
})

test('two proofs at once, a wrong version and an unknown network are refused', async (t) => {
  const link = await shop.link()
  const proof = await shop.proof(await shop.buyer(1), link)
  t.is((await shop.post(link, proof, { 'x-payment': proof })).status, 400)
  t.is((await shop.post(link, undefined, { 'x-payment': proof })).status, 400)
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
  const older = { x402Version: 1, scheme: 'exact', network: 'solana', payload }
  const answer = await shop.post(link, undefined, { 'x-payment': encode(older) })
  t.is(answer.status, 402)
  t.is(decode(answer.headers.get('x-payment-response'))['errorReason'], 'invalid_network')
})
