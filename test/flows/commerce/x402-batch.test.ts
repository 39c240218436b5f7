/** Several authorizations in one transaction: a transfer pays for its own authorization only. */
import test from 'ava'
import { encodeFunctionData, type Hex, parseSignature } from 'viem'
import { sql } from '../../support/storage/sql.js'
import { authorize, encode, openShop, PRICE_ATOMIC } from '../../support/commerce/x402-shop.js'

const shop = await openShop({ monitor: true })
test.after.always(() => shop.close())

test('one transfer pays once, however many authorizations its transaction uses', async (t) => {
  t.timeout(120_000)
  const { chain, facilitator } = shop
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
    [first, second].map((link, index) => shop.post(link, encode(payloads[index]))),
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
  const charges = await sql<{ status: string }>(
    shop.running.db.database,
    `select status from charges where tenant_id = $1 and status = 'succeeded'`,
    [shop.merchant.tenantId],
  )
  t.is(charges.length, 1)
})
