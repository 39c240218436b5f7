/** The policy of a wallet: which terms are valid, and whether it allows what an agent asks for. */
import type { WalletBudgetRow, WalletRow } from '../../../storage/commerce/wallets.js'
import type { Spend } from '../../../storage/commerce/wallet-signatures.js'
import type { Asset } from '../../domain/commerce/assets.js'
import type { Invalid } from '../payments/protocol.js'
import { type BudgetTerms, NATIVE, type PolicyTerms } from './protocol.js'

/** What a signature does. Addresses are in lower case. */
export type Intent = {
  /** `call`: a call of a contract that is not the transfer of an asset. */
  readonly kind: 'payment' | 'token_transfer' | 'native_transfer' | 'call'
  /** CAIP-2. */
  readonly network: string
  /** The contract that is called. Null for a native transfer. */
  readonly contract: string | null
  readonly recipient: string
  /** Contract address, or `native`. */
  readonly asset: string
  /** Atomic units of the asset. */
  readonly amount: bigint
  /** The most that the transaction costs in native currency besides the amount. 0 for a payment. */
  readonly feeMax: bigint
  /** False where the deployment does not know the asset. */
  readonly known: boolean
}

export type Refusal =
  | {
      readonly reason: 'wallet_frozen' | 'contract_not_allowed' | 'recipient_not_allowed'
      readonly detail: string
    }
  | {
      readonly reason: 'budget_exceeded'
      readonly detail: string
      /** Null where the wallet has no budget for the asset. */
      readonly budget: WalletBudgetRow | null
      readonly spend: Spend
      /** Null when waiting does not help. */
      readonly retryAfterSecs: number | null
    }

/** The amounts of an intent that count against budgets. */
export function spendsOf({ kind, asset, amount, feeMax }: Intent): readonly Spend[] {
  if (kind === 'payment') return [{ asset, amount: String(amount) }]
  if (asset === NATIVE) return [{ asset: NATIVE, amount: String(amount + feeMax) }]
  return [
    { asset, amount: String(amount) },
    { asset: NATIVE, amount: String(feeMax) },
  ]
}

/**
 * What the policy refuses without a look at what was spent before. Order: status, contract, recipient, budgets.
 * @returns undefined when it refuses nothing.
 */
export function refusalOf(
  wallet: Pick<WalletRow, 'status' | 'recipients' | 'contracts' | 'budgets'> & {
    readonly standing: boolean
  },
  intent: Intent,
): Refusal | undefined {
  if (wallet.status === 'frozen') {
    return { reason: 'wallet_frozen', detail: 'The wallet is frozen.' }
  }
  if (!wallet.standing) {
    return { reason: 'wallet_frozen', detail: 'The session of the agent has ended.' }
  }
  const { network, contract, recipient, kind } = intent
  if (!isContractAllowed(wallet, intent)) {
    const detail = `The policy of the wallet does not allow the contract ${contract} on ${network}.`
    return { reason: 'contract_not_allowed', detail }
  }
  if (kind !== 'call' && wallet.recipients !== null && !wallet.recipients.includes(recipient)) {
    const detail = `The policy of the wallet does not allow payments to ${recipient}.`
    return { reason: 'recipient_not_allowed', detail }
  }
  for (const spend of spendsOf(intent)) {
    const budget = budgetOf(wallet, network, spend.asset) ?? null
    if (budget !== null && BigInt(spend.amount) <= BigInt(budget.paymentMax)) continue
    const detail =
      budget === null
        ? `The wallet has no budget for ${spend.asset} on ${network}.`
        : `The wallet may spend at most ${budget.paymentMax} in one payment, not ${spend.amount}.`
    return { reason: 'budget_exceeded', detail, budget, spend, retryAfterSecs: null }
  }
  return undefined
}

/** The budget that has too little left for an intent, with what it lacks. */
export function exhausted(
  wallet: Pick<WalletRow, 'budgets'>,
  intent: Intent,
): { readonly budget: WalletBudgetRow; readonly spend: Spend; readonly lacks: bigint } | undefined {
  for (const spend of spendsOf(intent)) {
    const budget = budgetOf(wallet, intent.network, spend.asset)
    if (budget === undefined) continue
    const lacks = BigInt(budget.spent) + BigInt(spend.amount) - BigInt(budget.windowMax)
    if (lacks > 0n) return { budget, spend, lacks }
  }
  return undefined
}

function isContractAllowed(
  wallet: Pick<WalletRow, 'contracts' | 'budgets'>,
  { kind, network, contract, asset, known }: Intent,
): boolean {
  if (kind === 'native_transfer') return true
  if (kind === 'call') return wallet.contracts.includes(`${network}:${contract}`)
  return known && budgetOf(wallet, network, asset) !== undefined
}

function budgetOf({ budgets }: Pick<WalletRow, 'budgets'>, network: string, asset: string) {
  return budgets.find((budget) => budget.network === network && budget.asset === asset)
}

const UINT256_MAX = 2n ** 256n - 1n

/** The first fault of policy terms. Addresses with mixed case need the right checksum (EIP-55). */
export function policyFault(
  { recipients, contracts, budgets }: PolicyTerms,
  assets: readonly Asset[],
  checksums: readonly string[],
): Invalid | undefined {
  const written = addressesOf({ recipients, contracts })
  for (const [index, { address, pointer }] of written.entries()) {
    if (hasMixedCase(address) && checksums[index] !== address) {
      return invalid(pointer, 'The checksum of the address is wrong (EIP-55).')
    }
  }
  for (const [index, contract] of contracts.entries()) {
    const network = contract.slice(0, contract.lastIndexOf(':'))
    if (!assets.some((asset) => asset.network === network)) {
      return invalid(`/contracts/${index}`, `The deployment has no chain ${network}.`)
    }
    if (assets.some((asset) => caip10(asset.network, asset.address) === contract.toLowerCase())) {
      return invalid(
        `/contracts/${index}`,
        'Is an asset. Its budget allows transfers, and other calls of it are never signed.',
      )
    }
  }
  return budgetsFault(budgets, assets)
}

function budgetsFault(
  budgets: readonly BudgetTerms[],
  assets: readonly Asset[],
): Invalid | undefined {
  const seen = new Set<string>()
  for (const [index, { network, asset, paymentMax, windowMax }] of budgets.entries()) {
    const at = `/budgets/${index}`
    const ofNetwork = assets.filter((one) => one.network === network)
    if (ofNetwork.length === 0) {
      return invalid(`${at}/network`, `The deployment has no chain ${network}.`)
    }
    const name = asset.toLowerCase()
    if (name !== NATIVE && !ofNetwork.some(({ address }) => address.toLowerCase() === name)) {
      return invalid(`${at}/asset`, `The deployment has no such asset on ${network}.`)
    }
    if (BigInt(windowMax) > UINT256_MAX) return invalid(`${at}/window_max`, 'Exceeds 256 bits.')
    if (BigInt(paymentMax) > BigInt(windowMax)) {
      return invalid(`${at}/payment_max`, 'Must be at most window_max.')
    }
    if (seen.has(`${network} ${name}`)) return invalid(at, 'Is a second budget for this asset.')
    seen.add(`${network} ${name}`)
  }
  return undefined
}

/** The addresses of policy terms in order, with their pointers. */
export function addressesOf({
  recipients,
  contracts,
}: Pick<PolicyTerms, 'recipients' | 'contracts'>) {
  return [
    ...(recipients ?? []).map((address, index) => ({ address, pointer: `/recipients/${index}` })),
    ...contracts.map((contract, index) => ({
      address: contract.slice(contract.lastIndexOf(':') + 1),
      pointer: `/contracts/${index}`,
    })),
  ]
}

/** The CAIP-10 id of a contract, in lower case. */
function caip10(network: string, address: string): string {
  return `${network}:${address.toLowerCase()}`
}

function hasMixedCase(address: string): boolean {
  const digits = address.slice(2)
  return digits !== digits.toLowerCase() && digits !== digits.toUpperCase()
}

export function invalid(pointer: string, detail: string): Invalid {
  return { tag: 'invalid', pointer, detail }
}
