/**
 * A service that watches the chain: it believes settlements that are there, finds transfers to payees, and is ready while its
 * node answers. Own service: the last test takes its node away.
 */
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import test from 'ava'
import { encodeFunctionData, type Hex, parseSignature } from 'viem'
import { NETWORK, newAccount, sharedChain } from '../../support/commerce/chain.js'
import type { Mischief } from '../../support/commerce/facilitator.js'
import { sellerAt, until } from '../../support/commerce/seller.js'
import { COMMERCE } from '../../support/commerce/shop.js'
import {
  authorize,
  decode,
  encode,
  type Link,
  openShop,
  PRICE_ATOMIC,
} from '../../support/commerce/x402-shop.js'
import { THROUGH } from '../../support/fleet/through.js'
import { openBrowser } from '../../support/pages/browser.js'
import { callAt } from '../../support/identity/tenant-agent.js'
import { sql } from '../../support/storage/sql.js'

const node = await nodeOf((await sharedChain()).rpcUrl)
const shop = await openShop({ monitor: true, rpcUrl: node.url, environment: COMMERCE })
const { chain, facilitator } = shop
test.after.always(() => shop.close().finally(node.close))

/** The node of the service, which a test can take away. */
async function nodeOf(rpcUrl: string) {
  const { port } = new URL(rpcUrl)
  const sockets = new Set<Socket>()
  const server = createServer((socket) => {
    const onward = connect(Number(port), '127.0.0.1')
    for (const one of [socket, onward]) {
      sockets.add(one)
      one.on('error', () => undefined)
      one.once('close', () => {
        sockets.delete(one)
        socket.destroy()
        onward.destroy()
      })
    }
    socket.pipe(onward).pipe(socket)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close() {
      server.close()
      for (const socket of sockets) socket.destroy()
    },
  }
}

/** A payment whose settlement the facilitator misreports. */
async function lied(lie: Mischief, play: (link: Link, proof: string) => Promise<void>) {
  const link = await shop.link()
  const proof = await shop.proof(await shop.buyer(3), link)
  facilitator.mischiefs.set(link.payTo, (asked, honest, response) =>
    asked.operation === 'settle' ? lie(asked, honest, response) : undefined,
  )
  await play(link, proof)
}

test.serial('only a contract has another signature than the key makes', async (t) => {
  const link = await shop.link()
  const who = await shop.buyer(1)
  const payload = await shop.payload(who, link)
  const good = { token: chain.token, to: link.payTo, value: PRICE_ATOMIC }
  const { signature, authorization } = await authorize(newAccount(), good)
  const pay = (from: string) =>
    shop.post(
      link,
      encode({ ...payload, payload: { signature, authorization: { ...authorization, from } } }),
    )
  const reason = 'invalid_exact_evm_payload_signature'
  facilitator.mischiefs.set(link.payTo, () => ({ isValid: false, invalidReason: reason }))
  t.is((await pay(who.address)).status, 402)
  t.is(facilitator.about(link.payTo), 0, 'the payer has a key')
  const judged = await pay(chain.token)
  t.is(judged.status, 402)
  t.is(decode(judged.headers.get('payment-response'))['errorReason'], reason)
  t.is(facilitator.about(link.payTo, 'verify'), 1, 'the payer is a contract')
})

test.serial('who looks at the chain believes no settlement that is not there', async (t) => {
  const lie: Mischief = ({ paymentPayload }) => ({
    success: true,
    transaction: `0x${'ab'.repeat(32)}`,
    network: 'eip155:84532',
    payer: (paymentPayload.payload['authorization'] as { from: string }).from,
  })
  await lied(lie, async (link, proof) => {
    const first = await shop.charged(link, proof)
    t.is(first.status, 503, first.text)
    // It is asked again, and lies again.
    while (shop.facilitator.about(link.payTo, 'settle') < 2) await sleep(50)
    t.is((await shop.post(link, proof)).status, 503)
    t.is((await chain.transfersTo(link.payTo)).length, 0)
    shop.facilitator.mischiefs.delete(link.payTo)
    const answer = await shop.final(link, proof)
    t.is(answer.status, 200)
    const [paid, ...more] = await chain.transfersTo(link.payTo)
    t.is(more.length, 0)
    t.is(decode(answer.headers.get('payment-response'))['transaction'], paid!.transaction)
  })
})

test.serial('who looks at the chain believes no refusal of what was settled', async (t) => {
  const lie: Mischief = async (_, honest) => {
    await honest()
    return { success: false, errorReason: 'insufficient_funds', transaction: '', network: '' }
  }
  await lied(lie, async (link, proof) => {
    const answer = await shop.final(link, proof)
    t.is(answer.status, 200, answer.text)
    t.is((await chain.transfersTo(link.payTo)).length, 1)
  })
})

/** The transfer that the wallet link of a page requests. */
function asked(html: string) {
  const found = /href="ethereum:(0x\w+)@(\d+)\/transfer\?address=(0x\w+)&amp;uint256=(\d+)"/.exec(
    html,
  )
  if (found === null) throw new Error('the page has no wallet link')
  const [, asset, chainId, payTo, amount] = found
  return { asset: asset!, chainId: Number(chainId), payTo: payTo!, amount: BigInt(amount!) }
}

test.serial(
  'a transfer of the amount on the page completes the checkout, and no other',
  async (t) => {
    const seller = await sellerAt(shop)
    const [mine, other] = [await seller.checkout(), await seller.checkout()]
    const { html } = await seller.page(mine)
    t.regex(html, /<svg class="qr" role="img"/)
    t.regex(html, /Send exactly this amount/)
    const terms = asked(html)
    t.like(terms, { asset: chain.token, chainId: 84_532, payTo: seller.payTo })
    t.true(terms.amount > PRICE_ATOMIC && terms.amount < PRICE_ATOMIC + 10_000n, 'less than a cent')
    t.not(terms.amount, asked((await seller.page(other)).html).amount)
    const link = await seller.make('payment-links', { price_id: seller.priceId })
    const browser = openBrowser(shop.running)
    const linked = await browser.get(new URL(String(link['url'])).pathname)
    t.true(linked.html.includes('data-x402-to'))
    t.throws(() => asked(linked.html), undefined, 'the checkout has the exact amount')
    const who = newAccount()
    await chain.mint(seller.payTo, PRICE_ATOMIC)
    await chain.mint(seller.payTo, terms.amount - 1n)
    const from = '0x0000000000000000000000000000000000000000'
    await chain.mint(who.address, terms.amount)
    t.is((await seller.charge(mine['charge_id']))['status'], 'pending')
    // Minting is a transfer from the zero address.
    await chain.mint(seller.payTo, terms.amount)
    const charge = await until(
      () => seller.charge(mine['charge_id']),
      ({ status }) => status === 'succeeded',
    )
    t.like(charge, { status: 'succeeded', rail: 'x402', buyer_id: `${NETWORK}:${from}` })
    t.regex((await seller.page(mine)).html, /data-state="succeeded"/)
    t.is((await seller.charge(other['charge_id']))['status'], 'pending')
    await chain.mint(seller.payTo, terms.amount)
    // Blocks are read in order: a later transfer is found after the second one.
    const later = await seller.checkout()
    await chain.mint(seller.payTo, asked((await seller.page(later)).html).amount)
    const found = await until(
      () => seller.charge(later['charge_id']),
      ({ status }) => status === 'succeeded',
    )
    t.is(found['status'], 'succeeded')
    t.is((await seller.charge(other['charge_id']))['status'], 'pending', 'sent twice pays once')
    t.deepEqual(await seller.events(mine['charge_id']), [
      'commerce.payment.pending',
      'commerce.payment.succeeded',
    ])
    const [books] = await sql<{ total: string }>(shop.running)`
      select coalesce(sum(abs(balance_minor)), 0)::text as total from ledger_accounts
      where tenant_id = ${seller.workspace.tenantId}`
    t.is(books!.total, '0', 'the money went past the books')
  },
)

test.serial('a transfer for a checkout that ended is kept as surplus', async (t) => {
  const seller = await sellerAt(shop)
  const session = await seller.checkout()
  const { amount } = asked((await seller.page(session)).html)
  await sql(shop.running)`
    update checkout_sessions set expires_at = now() where id = ${session['checkout_session_id']}`
  await until(
    () => seller.charge(session['charge_id']),
    ({ status }) => status === 'failed',
  )
  await chain.mint(seller.payTo, amount)
  const states = () =>
    sql<{ state: string }>(shop.running)`
      select state from checkout_transfers
      where checkout_session_id = ${session['checkout_session_id']}`
  const ended = await until(states, ([row]) => row?.state === 'surplus')
  t.deepEqual(ended, [{ state: 'surplus' }])
  t.is((await seller.charge(session['charge_id']))['status'], 'failed')
})

test.serial(
  'one transfer pays once, however many authorizations its transaction uses',
  async (t) => {
    t.timeout(120_000)
    const first = await shop.link()
    const second = await shop.link({ payTo: first.payTo })
    const buyer = await shop.buyer(1)
    const payloads = await Promise.all([first, second].map((link) => shop.payload(buyer, link)))
    const signed = payloads.map(({ payload }) => payload as Awaited<ReturnType<typeof authorize>>)

    const callOf = ({ signature, authorization }: Awaited<ReturnType<typeof authorize>>): Hex => {
      const { from, to, value, validAfter, validBefore, nonce } = authorization
      const { r, s, yParity } = parseSignature(signature)
      const numbers = [value, validAfter, validBefore].map((one) => BigInt(one!))
      const args = [from, to, ...numbers, nonce, 27 + yParity, r, s]
      return encodeFunctionData({ abi: chain.abi, functionName: 'transferWithAuthorization', args })
    }
    /** Uses the nonce of the first payment without a transfer, next to the transfer of the second. */
    async function batch() {
      const nonce = signed[0]!.authorization['nonce'] as Hex
      const nothing = await authorize(buyer, {
        token: chain.token,
        to: buyer.address,
        value: 0n,
        nonce,
      })
      await chain.write('batch', [[callOf(signed[1]!), callOf(nothing)]])
    }
    let settling = 0
    let done: () => void = () => undefined
    const batched = new Promise<void>((resolve) => {
      done = resolve
    })
    facilitator.mischief = async ({ operation }) => {
      if (operation !== 'settle') return undefined
      settling += 1
      if (settling === 2) {
        await batch()
        done()
      }
      await batched
      return undefined
    }
    const answers = await Promise.all(
      [first, second].map((link, index) => shop.charged(link, encode(payloads[index]))),
    )
    facilitator.mischief = undefined
    const transfers = await chain.transfersTo(first.payTo)
    t.deepEqual(
      transfers.map(({ value }) => value),
      [PRICE_ATOMIC],
      'the merchant got the money once',
    )
    t.deepEqual(
      answers.map(({ status }) => status),
      [503, 200],
      JSON.stringify(answers.map(({ body }) => body)),
    )
    const charges = await sql<{ status: string }>(shop.running)`
      select status from charges where payment_link_id = any(${[first.id, second.id]}::uuid[])
      and status = 'succeeded'`
    t.is(charges.length, 1)
  },
)

// Several processes have several nodes.
if (THROUGH === undefined) {
  test.serial('an unreachable chain node makes the service not ready', async (t) => {
    t.timeout(120_000)
    const ready = async () => (await callAt(shop.running.baseUrl, '/health/ready')).status
    const is = async (status: number) => {
      while ((await ready()) !== status) await sleep(100)
      return ready()
    }
    t.is(await is(200), 200)
    node.close()
    t.is(await is(503), 503)
    t.is((await callAt(shop.running.baseUrl, '/health/live')).status, 200)
  })
}
