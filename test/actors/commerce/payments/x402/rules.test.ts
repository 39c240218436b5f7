/** Amounts, offers, time windows, signatures, and trust in facilitators. */
import test from 'ava'
import * as fc from 'fast-check'
import { privateKeyToAccount } from 'viem/accounts'
import { atomicAmount, type Asset } from '../../../../../actors/domain/commerce/assets.js'
import { knownAssets } from '../../../../../actors/commerce/payments/x402/known-assets.js'
import {
  authorizationFault,
  isPlainSignature,
} from '../../../../../actors/commerce/payments/x402/authorization.js'
import { isSignedByPayer } from '../../../../../actors/commerce/payments/x402/compute.js'
import {
  judgeSettlementResult,
  judgeVerification,
} from '../../../../../actors/commerce/payments/x402/facilitator.js'
import { offersOf } from '../../../../../actors/commerce/payments/x402/offers.js'
import { ERROR_REASONS, reasonOf } from '../../../../../actors/commerce/payments/x402/reasons.js'
import { resolutionFault } from '../../../../../actors/commerce/payments/x402/resolution.js'

const [, sepolia] = knownAssets([]) as [Asset, Asset]
const usdc: Asset = { ...sepolia, payTo: `0x${'aa'.repeat(20)}` }

test('minor units convert to atomic units exactly, or not at all', (t) => {
  t.is(atomicAmount(1_999, 'USD', usdc), '19990000')
  t.is(atomicAmount(500, 'JPY', usdc), '500000000')
  t.is(atomicAmount(1_234, 'KWD', usdc), '1234000')
  t.is(atomicAmount(100, 'USD', { ...usdc, decimals: 0 }), '1')
  t.is(atomicAmount(101, 'USD', { ...usdc, decimals: 0 }), null)
  fc.assert(
    fc.property(fc.nat(), fc.integer({ min: 2, max: 36 }), (minor, decimals) => {
      const atomic = BigInt(atomicAmount(minor, 'USD', { ...usdc, decimals })!)
      t.is(atomic, BigInt(minor) * 10n ** BigInt(decimals - 2))
    }),
  )
})

test('the built-in assets match the contract', (t) => {
  t.like(knownAssets([]), [
    {
      network: 'eip155:8453',
      address: '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913',
      name: 'USD Coin',
      version: '2',
      decimals: 6,
    },
    {
      network: 'eip155:84532',
      address: '0x036CbD53842c5426634e7929541eC2318f3dCF7e',
      name: 'USDC',
      version: '2',
      decimals: 6,
    },
  ])
})

test('configured chains come first and replace those built in', (t) => {
  const chain = {
    id: 'eip155:84532',
    asset: `0x${'bb'.repeat(20)}`,
    asset_name: 'Euro Coin',
    asset_version: '1',
    asset_decimals: 2,
    asset_currency: 'EUR',
    confirmations: 5,
    read_every_ms: 2_000,
    pay_to: `0x${'cc'.repeat(20)}`,
  }
  const assets = knownAssets([chain])
  t.deepEqual(
    assets.map(({ network }) => network),
    ['eip155:84532', 'eip155:8453'],
  )
  const priced = { amountMinor: 5, currency: 'EUR' }
  const [operator, means] = [
    { own: {}, operator: true },
    { assets, maxTimeoutSecs: 60 },
  ]
  t.like(offersOf(null, priced, operator, means), [{ amount: '5', payTo: chain.pay_to }])
  t.deepEqual(offersOf(null, { ...priced, currency: 'USD' }, operator, means), [])
})

test('pay_to of a chain is the payee of the operator tenant only', (t) => {
  const [ours, theirs] = [`0x${'cc'.repeat(20)}`, `0x${'dd'.repeat(20)}`]
  const means = { assets: [{ ...usdc, payTo: ours }], maxTimeoutSecs: 60 }
  const priced = { amountMinor: 5, currency: 'USD' }
  const payTo = (own: Record<string, string>, operator: boolean) =>
    offersOf(null, priced, { own, operator }, means).map((offer) => offer.payTo)
  t.deepEqual(payTo({}, true), [ours])
  t.deepEqual(payTo({}, false), [])
  t.deepEqual(payTo({ [usdc.network]: theirs }, false), [theirs])
  t.deepEqual(payTo({ [usdc.network]: theirs }, true), [theirs])
  t.deepEqual(payTo({ 'eip155:1': theirs }, false), [])
})

test('the validity window of an authorization matches the token contract', (t) => {
  const offer = { asset: usdc, amount: '5', payTo: usdc.payTo!, maxTimeoutSecs: 60 }
  const now = 1_000
  const fault = (validAfter: number, validBefore: number) =>
    authorizationFault(
      {
        from: `0x${'01'.repeat(20)}`,
        to: offer.payTo.toUpperCase().replace('0X', '0x'),
        value: '5',
        validAfter: String(validAfter),
        validBefore: String(validBefore),
        nonce: `0x${'02'.repeat(32)}`,
      },
      offer,
      now,
    )
  t.is(fault(0, now + 6), undefined)
  t.is(fault(now, now + 6), undefined)
  t.regex(fault(now + 1, now + 60) ?? '', /valid_after$/)
  t.regex(fault(0, now + 5) ?? '', /valid_before$/)
  t.is(fault(0, now + 120), undefined, 'the time of the offer and a minute')
  t.regex(fault(0, now + 121) ?? '', /valid_before$/)
})

test('only the payer can have signed it', async (t) => {
  const account = privateKeyToAccount(`0x${'11'.repeat(32)}`)
  const domain = {
    name: 'USDC',
    version: '2',
    chainId: 84_532,
    verifyingContract: usdc.address as `0x${string}`,
  }
  const authorization = {
    from: account.address.toLowerCase(),
    to: `0x${'aa'.repeat(20)}`,
    value: '10000',
    validAfter: '0',
    validBefore: '1740672154',
    nonce: `0x${'ab'.repeat(32)}`,
  }
  const uint256 = 'uint256'
  const signature = await account.signTypedData({
    domain,
    types: {
      TransferWithAuthorization: [
        { name: 'from', type: 'address' },
        { name: 'to', type: 'address' },
        { name: 'value', type: uint256 },
        { name: 'validAfter', type: uint256 },
        { name: 'validBefore', type: uint256 },
        { name: 'nonce', type: 'bytes32' },
      ],
    },
    primaryType: 'TransferWithAuthorization',
    message: {
      from: account.address,
      to: authorization.to as `0x${string}`,
      value: 10_000n,
      validAfter: 0n,
      validBefore: 1_740_672_154n,
      nonce: authorization.nonce as `0x${string}`,
    },
  })
  const signed = { domain, authorization, signature }
  t.true(await isSignedByPayer(signed))
  t.true(isPlainSignature(signature))
  for (const change of [
    { from: `0x${'22'.repeat(20)}` },
    { to: `0x${'22'.repeat(20)}` },
    { value: '10001' },
    { validAfter: '1' },
    { validBefore: '1740672155' },
    { nonce: `0x${'ac'.repeat(32)}` },
  ]) {
    t.false(await isSignedByPayer({ ...signed, authorization: { ...authorization, ...change } }))
  }
  for (const change of [{ name: 'X' }, { version: '1' }, { chainId: 1 }]) {
    t.false(await isSignedByPayer({ ...signed, domain: { ...domain, ...change } }))
  }
  // The other valid signature of the same message has the larger s, which tokens refuse.
  const order = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n
  const s = order - BigInt(`0x${signature.slice(66, 130)}`)
  const v = signature.endsWith('1b') ? '1c' : '1b'
  const twin = `${signature.slice(0, 66)}${s.toString(16).padStart(64, '0')}${v}`
  t.false(isPlainSignature(twin))
})

test('no bytes make the signature check throw', async (t) => {
  const bytes = fc.uint8Array({ minLength: 65, maxLength: 65 })
  await fc.assert(
    fc.asyncProperty(bytes, async (of) => {
      const signature = `0x${Buffer.from(of).toString('hex')}`
      const from = `0x${'01'.repeat(20)}`
      const authorization = {
        from,
        to: from,
        value: '1',
        validAfter: '0',
        validBefore: '1',
        nonce: `0x${'00'.repeat(32)}`,
      }
      const domain = { name: 'USDC', version: '2', chainId: 1, verifyingContract: from }
      t.false(await isSignedByPayer({ domain, authorization, signature }))
    }),
    { numRuns: 50 },
  )
})

const expected = { network: 'eip155:84532', payer: `0x${'01'.repeat(20)}`, amount: '5' }
const transaction = `0x${'ab'.repeat(32)}`
const good = { success: true, transaction, network: expected.network, payer: expected.payer }

test('a settlement counts only when every member matches', (t) => {
  const judge = (json: unknown, status = 200) =>
    judgeSettlementResult({ tag: 'answered', status, json }, expected).tag
  t.is(judge(good), 'settled')
  t.is(judge({ ...good, payer: expected.payer.toUpperCase().replace('0X', '0x') }), 'settled')
  t.is(judge({ ...good, amount: '5' }), 'settled')
  t.is(judge({ ...good, payer: undefined }), 'settled')
  for (const change of [
    { payer: transaction },
    { network: 'base' },
    { amount: '6' },
    { transaction: '' },
    { success: 'true' },
  ]) {
    t.is(judge({ ...good, ...change }), 'unknown', JSON.stringify(change))
  }
  t.is(judge({ success: false, errorReason: 'insufficient_funds' }), 'failed')
  t.is(judge({ success: false, errorReason: 'insufficient_funds' }, 402), 'failed')
  t.is(judge({ success: false, errorReason: 'settlement_pending', transaction }), 'unknown')
  t.is(judge({ success: false, errorReason: 'invalid_exact_evm_nonce_already_used' }), 'spent')
  for (const errorReason of [
    'unexpected_settle_error',
    'invalid_transaction_state',
    'invalid_exact_evm_transaction_failed',
    'invalid_exact_evm_payload_authorization_valid_before',
    'the receipt did not come in time',
    undefined,
  ]) {
    t.is(judge({ success: false, errorReason }), 'unknown', String(errorReason))
  }
  for (const errorReason of ['insufficient_funds', 'invalid_exact_evm_nonce_already_used']) {
    const said = { success: false, errorReason, transaction }
    const judged = judgeSettlementResult({ tag: 'answered', status: 200, json: said }, expected)
    t.deepEqual(judged, { tag: 'unknown', error: errorReason, transaction })
  }
  t.is(
    judgeSettlementResult({ tag: 'failed', error: 'timeout', sent: true }, expected).tag,
    'unknown',
  )
  t.is(
    judgeSettlementResult({ tag: 'failed', error: 'refused', sent: false }, expected).tag,
    'failed',
  )
})

test('no arbitrary facilitator response counts as a settlement', (t) => {
  fc.assert(
    fc.property(fc.jsonValue(), fc.integer({ min: 200, max: 599 }), (json, status) => {
      const answer = { tag: 'answered', status, json } as const
      t.not(judgeSettlementResult(answer, expected).tag, 'settled')
      t.not(judgeVerification(answer, expected).tag, 'valid')
    }),
  )
})

test('buyers get reasons of the x402 list only', (t) => {
  fc.assert(
    fc.property(fc.string(), (words) => {
      t.true(ERROR_REASONS.includes(reasonOf(words, 'unexpected_verify_error')))
    }),
  )
  for (const words of ['__proto__', 'constructor', 'toString']) {
    t.is(reasonOf(words, 'unexpected_settle_error'), 'unexpected_settle_error')
  }
})

test('an operator’s resolution counts unless known facts contradict it', (t) => {
  const settled = { outcome: 'settled', transaction: `0x${'ab'.repeat(32)}` } as const
  const failed = { outcome: 'failed' } as const
  const shown = { tag: 'settled', transaction: settled.transaction } as const
  const cancelled = { tag: 'cancelled' } as const
  const unclear = { tag: 'unclear', error: 'gone' } as const
  const unspent = (blockTimeSecs: number) => ({ tag: 'unspent', blockTimeSecs }) as const
  const allowed = (
    resolution: typeof settled | typeof failed,
    seen: Parameters<typeof resolutionFault>[1],
    nowSecs: number,
  ) => resolutionFault(resolution, seen, 1_000, nowSecs) === undefined
  for (const seen of [null, unclear]) {
    t.true(allowed(settled, seen, 0))
    t.false(allowed(failed, seen, 1_059), 'it could still be spent')
    t.true(allowed(failed, seen, 1_060))
  }
  t.true(allowed(settled, shown, 0))
  t.false(allowed(failed, shown, 9_000))
  t.false(allowed(settled, cancelled, 9_000))
  t.true(allowed(failed, cancelled, 0), 'its payer took it back')
  t.false(allowed(settled, unspent(9_000), 9_000))
  t.true(allowed(failed, unspent(1_060), 0))
  t.false(allowed(failed, unspent(500), 9_000), 'a node that lags behind has not seen everything')
})
