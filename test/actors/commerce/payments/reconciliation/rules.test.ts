/** Decisions after checks of payments of unknown outcome. */
import test from 'ava'
import {
  afterChain,
  afterFacilitator,
  againSecs,
} from '../../../../../actors/commerce/payments/reconciliation/rules.js'

const transaction = `0x${'ab'.repeat(32)}`

test('the chain decides, by its own time', (t) => {
  const unspent = (blockTimeSecs: number, nowSecs: number) =>
    afterChain({ tag: 'unspent', blockTimeSecs }, 1_000, nowSecs).tag
  t.is(afterChain({ tag: 'settled', transaction }, 1_000, 0).tag, 'settled')
  t.is(afterChain({ tag: 'cancelled' }, 1_000, 0).tag, 'failed')
  t.is(afterChain({ tag: 'unclear', error: 'gone' }, 1_000, 5_000).tag, 'unknown')
  t.is(unspent(900, 900), 'ask')
  t.is(unspent(900, 995), 'unknown')
  t.is(unspent(1_059, 1_059), 'unknown', 'the last blocks may still be replaced')
  t.is(unspent(1_060, 1_060), 'failed')
  // A node that lags has not seen every transaction.
  t.is(unspent(500, 9_000), 'unknown')
})

test('without a chain node the facilitator decides, as far as it can know', (t) => {
  const settled = { tag: 'settled', transaction } as const
  t.is(afterFacilitator(settled, false).tag, 'settled')
  t.like(afterFacilitator(settled, true), { tag: 'unknown', transaction })
  t.is(afterFacilitator({ tag: 'failed', reason: 'insufficient_funds' }, false).tag, 'failed')
  t.is(afterFacilitator({ tag: 'failed', reason: 'insufficient_funds' }, true).tag, 'unknown')
  for (const reason of [
    'invalid_exact_evm_payload_authorization_valid_before',
    'invalid_transaction_state',
    'unexpected_settle_error',
  ] as const) {
    t.is(afterFacilitator({ tag: 'failed', reason }, false).tag, 'unknown', reason)
  }
  t.is(afterFacilitator({ tag: 'spent' }, false).tag, 'unknown')
})

test('the delay between checks grows', (t) => {
  t.deepEqual([1, 2, 3, 4, 20, 1_000].map(againSecs), [2, 4, 8, 16, 300, 300])
})
