/** Messages for wallets of agents: keys, policies, budgets and signatures (docs/reference/commerce.md, Wallets). */
import { address, type Ask } from '../../../runtime/kernel/protocol.js'
import type { Caller } from '../../domain/audit.js'
import type { Creation, IdempotencyRefused } from '../../domain/idempotency.js'
import type { Listed, Page } from '../../domain/paging.js'
import type { Invalid } from '../payments/protocol.js'

export type WalletsProtocol = {
  listWallets: Ask<{ readonly caller: Caller } & Page, Listed<Wallet>>
  /** Creates the key and the policy of an agent's wallet. */
  createWallet: Ask<
    CreateWallet,
    | WalletCreated
    | UnknownAgent
    | Invalid
    | ManagerRefused
    | IdempotencyRefused
    | { readonly tag: 'exists' }
    | { readonly tag: 'full'; readonly most: number }
  >
  readWallet: Ask<OneWallet, WalletFound | UnknownAgent | NotProvisioned>
  /** The wallet of the calling agent. */
  readOwnWallet: Ask<{ readonly caller: Caller }, WalletFound | NotProvisioned>
  /** Absent members stay unchanged. */
  updateWallet: Ask<
    UpdateWallet,
    WalletFound | UnknownAgent | NotProvisioned | Invalid | ManagerRefused
  >
  /** In force at the commit: no signature is recorded afterwards, and only recorded ones leave the service. */
  freezeWallet: Ask<OneWallet, WalletFound | UnknownAgent | NotProvisioned>
  unfreezeWallet: Ask<OneWallet, WalletFound | UnknownAgent | NotProvisioned | ManagerRefused>
  /** Gives the wallet of an agent that has left the tenant to another agent. The wallet is frozen then. */
  assignWallet: Ask<
    AssignWallet,
    | WalletFound
    | { readonly tag: 'unknown_wallet' }
    | UnknownAgent
    | ManagerRefused
    | { readonly tag: 'exists' }
    /** The agent of the wallet belongs to the tenant. */
    | { readonly tag: 'in_use' }
  >
  listWalletSignatures: Ask<
    OneWallet & Page,
    Listed<WalletSignature> | UnknownAgent | NotProvisioned
  >
  /** Signs an x402 payment with the wallet of the calling agent. */
  signX402Payment: Ask<
    PayByWallet,
    PaymentSigned | SigningRefused | NotProvisioned | IdempotencyRefused | RequestInvalid
  >
  /** Signs an EIP-1559 transaction with the wallet of the calling agent. */
  signWalletTransaction: Ask<
    TransactByWallet,
    TransactionSigned | SigningRefused | NotProvisioned | IdempotencyRefused | RequestInvalid
  >
}

/** The asset of a budget for the currency of a network, such as ether. */
export const NATIVE = 'native'

/** The window of a budget: at most a year. */
export const WINDOW_SECS_MAX = 31_536_000
export const WINDOW_SECS_MIN = 60

/** Amounts are atomic units of the asset, decimal. */
export type BudgetTerms = {
  /** CAIP-2. */
  readonly network: string
  /** Contract address, or `native`. */
  readonly asset: string
  readonly paymentMax: string
  readonly windowMax: string
  /** Null for `wallet.default_window_secs`. */
  readonly windowSecs: number | null
}

export type PolicyTerms = {
  /** Null: every recipient. Empty: none. */
  readonly recipients: readonly string[] | null
  /** CAIP-10: contracts that transactions may call, besides transfers of assets with a budget. */
  readonly contracts: readonly string[]
  readonly budgets: readonly BudgetTerms[]
}

export type Wallet = {
  readonly id: string
  readonly agentId: string
  /** EIP-55. */
  readonly address: string
  readonly status: 'active' | 'frozen'
  readonly recipients: readonly string[] | null
  readonly contracts: readonly string[]
  readonly budgets: readonly (Omit<BudgetTerms, 'windowSecs'> & {
    readonly windowSecs: number
    /** Signed within the window that ends now. */
    readonly spent: string
  })[]
  readonly createdAt: Date
  readonly updatedAt: Date
  readonly frozenAt: Date | null
}

export type WalletSignature = {
  readonly id: string
  readonly kind: 'x402_payment' | 'transaction'
  readonly network: string
  readonly contract: string | null
  readonly recipient: string
  readonly asset: string
  readonly amount: string
  readonly feeMax: string
  readonly hash: string
  readonly nonce: string
  readonly validBefore: Date | null
  readonly resource: string | null
  readonly createdAt: Date
}

export type OneWallet = { readonly caller: Caller; readonly agentId: string }
export type AssignWallet = OneWallet & { readonly walletId: string }
export type CreateWallet = OneWallet & Creation & { readonly policy: PolicyTerms }
export type UpdateWallet = OneWallet & {
  readonly change: { readonly [Member in keyof PolicyTerms]: PolicyTerms[Member] | undefined }
}

/** PaymentRequired of x402, version 1 or 2, as the agent received it. */
export type PaymentRequiredTerms = {
  readonly x402Version: 1 | 2
  readonly accepts: readonly Readonly<Record<string, unknown>>[]
  readonly resource?: Readonly<Record<string, unknown>> | undefined
  readonly extensions?: Readonly<Record<string, unknown>> | undefined
}
export type PayByWallet = Creation & { readonly required: PaymentRequiredTerms }
export type TransactByWallet = Creation & { readonly transaction: TransactionTerms }
/** An EIP-1559 transaction. Amounts are wei, decimal. */
export type TransactionTerms = {
  /** CAIP-2. */
  readonly network: string
  readonly nonce: number
  readonly to: string
  readonly value: string
  /** Hex. */
  readonly data: string
  readonly gas: string
  readonly maxFeePerGas: string
  readonly maxPriorityFeePerGas: string
}

export type WalletCreated = {
  readonly tag: 'created'
  readonly wallet: Wallet
  readonly replayed: boolean
}
export type WalletFound = { readonly tag: 'found'; readonly wallet: Wallet }
export type UnknownAgent = { readonly tag: 'unknown_agent' }
/** The agent has no wallet. */
export type NotProvisioned = { readonly tag: 'not_provisioned' }
/** What the agent asks for cannot be signed by any wallet. */
export type RequestInvalid = Invalid
export type ManagerRefused =
  /** The caller is the agent of the wallet. */
  | { readonly tag: 'own_wallet' }
  /** A person has to sign in again with two factors (RFC 9470). */
  | { readonly tag: 'step_up'; readonly maxAgeSecs: number }

export type PaymentSigned = {
  readonly tag: 'signed'
  readonly payment: SignedPayment
  readonly replayed: boolean
}
export type SignedPayment = {
  readonly id: string
  readonly x402Version: 1 | 2
  readonly headerName: 'PAYMENT-SIGNATURE' | 'X-PAYMENT'
  readonly headerValue: string
  readonly network: string
  readonly asset: string
  /** Atomic units, decimal. */
  readonly amount: string
  readonly payTo: string
  /** The address of the wallet. */
  readonly payer: string
  readonly nonce: string
  readonly validBefore: Date
  /** EIP-712 hash of the authorization. */
  readonly hash: string
  readonly createdAt: Date
}
export type TransactionSigned = {
  readonly tag: 'signed'
  readonly transaction: SignedTransaction
  readonly replayed: boolean
}
export type SignedTransaction = {
  readonly id: string
  readonly network: string
  /** For eth_sendRawTransaction. */
  readonly raw: string
  readonly hash: string
  readonly from: string
  readonly createdAt: Date
}

/** Refusals of the policy. Each is an event, and counts against no budget. */
export type SigningRefused =
  | { readonly tag: 'frozen'; readonly detail: string }
  | { readonly tag: 'recipient_not_allowed'; readonly detail: string }
  | { readonly tag: 'contract_not_allowed'; readonly detail: string }
  /** More than the policy ever allows in one payment. */
  | { readonly tag: 'over_budget'; readonly detail: string }
  /** More than what is left of the window. */
  | {
      readonly tag: 'budget_used_up'
      readonly detail: string
      readonly retryAfterSecs: number
    }

export const wallets = address<WalletsProtocol>('wallets', {
  idempotent: ['listWallets', 'readWallet', 'readOwnWallet', 'listWalletSignatures'],
})
