/**
 * A transaction of a wallet (EIP-1559). Three forms exist: a transfer of an asset (ERC-20 `transfer`), a transfer of the
 * native currency, and a call of a contract that the policy names. An asset is called by `transfer` alone, because
 * `approve` and its like would pay later, past the budget.
 */
import type { SealedWalletRow } from '../../../storage/commerce/wallets.js'
import { type Asset, chainIdOf, sameAddress } from '../../domain/commerce/assets.js'
import type { Draft, WalletCompute } from './draft.js'
import { type Intent, invalid } from './policy.js'
import {
  NATIVE,
  type RequestInvalid,
  type SignedTransaction,
  type TransactionTerms,
} from './protocol.js'

/** `transfer(address,uint256)` with its two words: the address in 20 of 32 bytes, and the amount. */
const TRANSFER = /^0xa9059cbb0{24}([0-9a-f]{40})([0-9a-f]{64})$/
const UINT256_MAX = 2n ** 256n - 1n

type TransactionOptions = {
  readonly terms: TransactionTerms
  readonly assets: readonly Asset[]
  readonly compute: WalletCompute
}

export function transactionDraft(
  { terms, assets, compute }: TransactionOptions,
  wallet: SealedWalletRow,
  id: string,
  now: Date,
): Draft<SignedTransaction> | RequestInvalid {
  const { network, nonce, maxFeePerGas, maxPriorityFeePerGas, gas, value } = terms
  if (!assets.some((asset) => asset.network === network)) {
    return invalid('/network', `The deployment has no chain ${network}.`)
  }
  if (BigInt(maxPriorityFeePerGas) > BigInt(maxFeePerGas)) {
    return invalid('/max_priority_fee_per_gas', 'Must be at most max_fee_per_gas.')
  }
  const intent = intentOf(terms, assets)
  if ('tag' in intent) return intent
  return {
    tag: 'draft',
    intent,
    nonce: String(nonce),
    validBefore: null,
    resource: null,
    async sign(key, context) {
      const { raw, hash } = await compute.run(
        'transaction',
        {
          key,
          chainId: chainIdOf(network),
          nonce,
          to: terms.to.toLowerCase(),
          value,
          data: terms.data.toLowerCase(),
          gas,
          maxFeePerGas,
          maxPriorityFeePerGas,
        },
        context,
      )
      const answer = { id, network, raw, hash, from: wallet.address, createdAt: now }
      return { tag: 'signature', hash, answer }
    },
  }
}

function intentOf(
  { network, to, value, data, gas, maxFeePerGas }: TransactionTerms,
  assets: readonly Asset[],
): Intent | RequestInvalid {
  const target = to.toLowerCase()
  const amount = BigInt(value)
  const feeMax = BigInt(gas) * BigInt(maxFeePerGas)
  if (amount + feeMax > UINT256_MAX) return invalid('/value', 'Exceeds 256 bits with the fee.')
  const shared = { network, feeMax, known: true }
  if (data === '0x') {
    const plain = { kind: 'native_transfer', contract: null, recipient: target } as const
    return { ...shared, ...plain, asset: NATIVE, amount }
  }
  const isAsset = assets.some((one) => one.network === network && sameAddress(one.address, to))
  if (!isAsset) {
    return { ...shared, kind: 'call', contract: target, recipient: target, asset: NATIVE, amount }
  }
  const transfer = TRANSFER.exec(data.toLowerCase())
  if (transfer === null) {
    return invalid('/data', 'An asset is called by transfer(address,uint256) alone.')
  }
  if (amount !== 0n) return invalid('/value', 'Must be 0 in the transfer of an asset.')
  return {
    ...shared,
    kind: 'token_transfer',
    contract: target,
    recipient: `0x${transfer[1]!}`,
    asset: target,
    amount: BigInt(`0x${transfer[2]!}`),
  }
}
