/** The amounts that await transfers are shared between tenants that name the same address. */
import { createHash } from 'node:crypto'
import test from 'ava'
import { tailsFor } from '../../../../../actors/commerce/payments/x402/transfers.js'

const TAILS = 9_999
const networks = Array.from({ length: 64 }, (_, nth) =>
  createHash('sha256').update(`203.0.113.${nth}`).digest('hex'),
)
const lastOf = ({ first, count }: { first: number; count: number }) => first + count - 1

test('sandboxes, however many, leave half of the amounts to others', (t) => {
  for (const network of [...networks, null]) {
    const range = tailsFor({ sandbox: true, network }, TAILS)
    t.true(range.first >= 1 && lastOf(range) <= TAILS / 2, JSON.stringify(range))
  }
  t.deepEqual(tailsFor(undefined, TAILS), tailsFor({ sandbox: true, network: null }, TAILS))
  t.deepEqual(tailsFor({ sandbox: false, network: networks[0]! }, TAILS), {
    first: 1,
    count: TAILS,
  })
})

test('sandboxes of one registering network have an eighth', (t) => {
  for (const tails of [99, 999, TAILS]) {
    const ranges = networks.map((network) => tailsFor({ sandbox: true, network }, tails))
    t.true(ranges.every(({ count }) => count >= 1 && count <= tails / 8))
    t.is(new Set(ranges.map(({ first }) => first)).size, 4)
  }
})
