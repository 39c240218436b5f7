/**
 * x402: our verification of a payment signature compared with viem's own, and a challenge from the
 * database compared with the public server library, which creates one in memory.
 */
import { encodePaymentRequiredHeader } from '@x402/core/http'
import { x402ResourceServer } from '@x402/core/server'
import { ExactEvmScheme } from '@x402/evm/exact/server'
import { privateKeyToAccount } from 'viem/accounts'
import { recoverTypedDataAddress } from 'viem/utils'
import { x402Pool } from '../../actors/commerce/payments/x402/actor.js'
import { knownAssets } from '../../actors/commerce/payments/x402/known-assets.js'
import * as compute from '../../actors/commerce/payments/x402/compute.js'
import { offersOf, paymentRequired } from '../../actors/commerce/payments/x402/offers.js'
import { encodeField } from '../../actors/domain/commerce/x402.js'
import { readProof } from '../../actors/commerce/payments/x402/proof.js'
import { openPool } from '../../runtime/kernel/threads/pool.js'
import { compare, publish, repeat, saturate } from '../harness.js'

const payTo = `0x${'aa'.repeat(20)}` as const
const assets = knownAssets([])
const asset = assets.find(({ network }) => network === 'eip155:84532')!
const account = privateKeyToAccount(`0x${'11'.repeat(32)}`)
const uint256 = 'uint256'
const typed = {
  domain: {
    name: asset.name,
    version: asset.version,
    chainId: 84_532,
    verifyingContract: asset.address as `0x${string}`,
  },
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
    to: payTo,
    value: 19_990_000n,
    validAfter: 0n,
    validBefore: 1_900_000_000n,
    nonce: `0x${'ab'.repeat(32)}`,
  },
} as const
const signature = await account.signTypedData(typed)
const resource = { url: 'https://svc.example/x402', description: 'Tea' }
const priced = { amountMinor: 1_999, currency: 'USD' }
const terms = { network: asset.network, asset: null, payTo }
const payees = { own: {}, operator: false }
const means = { assets, maxTimeoutSecs: 60 }
const offers = offersOf(terms, priced, payees, means)
const challenge = paymentRequired('PAYMENT-SIGNATURE header is required', resource, offers)
const authorization = Object.fromEntries(
  Object.entries(typed.message).map(([name, value]) => [name, String(value)]),
)
const field = encodeField({
  x402Version: 2,
  accepted: challenge.accepts[0],
  payload: { signature, authorization },
})
const read = readProof(field, 2)
if (read.tag !== 'proof') throw new Error(read.detail)
const signed = { domain: typed.domain, authorization: read.proof.authorization, signature }
if (!(await compute.isSignedByPayer(signed))) throw new Error('the signature is not the payer’s')

const one = async (ms: number, work: () => Promise<unknown>) => saturate(ms, 1, work)
const pool = openPool<typeof compute>(x402Pool(2))
try {
  await publish(
    await compare({
      name: 'EIP-3009 signatures',
      reference: {
        name: 'viem recoverTypedDataAddress, bare loop',
        run: (ms) => one(ms, () => recoverTypedDataAddress({ ...typed, signature })),
      },
      contenders: [
        {
          name: 'the check, bare loop',
          target: 0.9,
          by: 'cpu',
          run: (ms) => one(ms, () => compute.isSignedByPayer(signed)),
        },
        {
          name: 'reading the proof and the check through a pool of one thread, 32 in flight',
          target: 0.7,
          by: 'cpu',
          run: (ms) =>
            saturate(ms, 32, () => {
              const proof = readProof(field, 2)
              if (proof.tag !== 'proof') throw new Error(proof.detail)
              return pool.run('isSignedByPayer', signed)
            }),
        },
      ],
    }),
  )
} finally {
  await pool.close()
}

const server = new x402ResourceServer().register('eip155:84532', new ExactEvmScheme())
const [requirements] = challenge.accepts
await publish(
  await compare({
    name: 'x402 challenge, built and encoded',
    reference: {
      name: '@x402/core server, with requirements given',
      run: (ms) =>
        one(ms, async () => {
          const required = await server.createPaymentRequiredResponse(
            [requirements as never],
            { ...resource, mimeType: 'application/json' },
            'required',
          )
          return encodePaymentRequiredHeader(required)
        }),
    },
    contenders: [
      {
        name: 'offers from the price, and the field',
        target: 0.8,
        run: (ms) =>
          repeat(ms, () =>
            encodeField(
              paymentRequired('required', resource, offersOf(terms, priced, payees, means)),
            ),
          ),
      },
    ],
  }),
)
