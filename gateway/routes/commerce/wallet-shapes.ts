/** Request bodies and records of the wallet routes. */
import { z } from 'zod'
import { idText } from '../../request/ids.js'
import { presenter } from '../../response/presenter.js'
import {
  type Wallet,
  WINDOW_SECS_MAX,
  WINDOW_SECS_MIN,
} from '../../../actors/commerce/wallets/protocol.js'

const LIST_MAX = 100
const USDC = '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913'
const PAYEE = '0x8ba1f109551bD432803012645Ac136ddd64DBA72'

const network = z
  .string()
  .regex(/^eip155:[1-9][0-9]{0,14}$/)
  .meta({ description: 'CAIP-2 id of a chain of the deployment.', example: 'eip155:8453' })
const address = z.string().regex(/^0x[0-9a-fA-F]{40}$/)
const amount = z
  .string()
  .regex(/^[1-9][0-9]{0,77}$/)
  .meta({ description: 'Atomic units of the asset, decimal.', example: '5000000' })
const wei = z
  .string()
  .regex(/^(?:0|[1-9][0-9]{0,77})$/)
  .meta({ description: 'Wei, decimal.', example: '1000000000' })
const asset = z
  .string()
  .regex(/^(?:native|0x[0-9a-fA-F]{40})$/)
  .meta({
    description:
      'The contract address of an asset that the deployment knows, or native for the currency of the chain.',
    example: USDC,
  })
const time = z.iso.datetime()

const budget = {
  network,
  asset,
  payment_max: amount.meta({ description: 'The most that one signature may spend.' }),
  window_max: amount.meta({
    description: 'The most that the signatures of every period of window_secs may spend together.',
    example: '20000000',
  }),
}
const Budget = z
  .object({
    ...budget,
    window_secs: z
      .int()
      .min(WINDOW_SECS_MIN)
      .max(WINDOW_SECS_MAX)
      .optional()
      .meta({ description: 'Default: wallet.default_window_secs of the deployment.' }),
  })
  .meta({ id: 'WalletBudgetTerms' })

const recipients = z
  .array(address)
  .max(LIST_MAX)
  .nullable()
  .meta({
    description: 'Addresses that payments and transfers may go to. null: all. Empty: none.',
    example: [PAYEE],
  })
const contracts = z
  .array(z.string().regex(/^eip155:[1-9][0-9]{0,14}:0x[0-9a-fA-F]{40}$/))
  .max(LIST_MAX)
  .meta({
    description:
      'CAIP-10 ids of contracts that transactions may call with any data. Assets are not allowed here: their budget ' +
      'allows transfers.',
    example: [`eip155:8453:${PAYEE}`],
  })
const budgets = z
  .array(Budget)
  .max(LIST_MAX)
  .meta({ description: 'One for each asset. An asset without a budget cannot be spent.' })

export const CreateWallet = z
  .object({
    recipients: recipients.default([]),
    contracts: contracts.default([]),
    budgets: budgets.default([]),
  })
  .meta({ id: 'CreateWallet' })
export const UpdateWallet = z
  .object({
    recipients: recipients.optional(),
    contracts: contracts.optional(),
    budgets: budgets.optional(),
  })
  .meta({ id: 'UpdateWallet' })

export const AssignWallet = z.object({ agent_id: idText() }).meta({ id: 'AssignWallet' })

export const WalletRecord = z
  .object({
    id: z.uuid(),
    agent_id: z.uuid(),
    address: z.string().meta({ description: 'EIP-55.', example: PAYEE }),
    status: z.enum(['active', 'frozen']),
    recipients: z.array(z.string()).nullable(),
    contracts: z.array(z.string()),
    budgets: z.array(
      z.object({
        ...budget,
        window_secs: z.int(),
        spent: z.string().meta({
          description:
            'Signed in the window that ends now, whether or not it was settled on the chain.',
        }),
        remaining: z.string().meta({ description: 'What the window has left.' }),
      }),
    ),
    created_at: time,
    updated_at: time,
    frozen_at: time.nullable(),
  })
  .meta({ id: 'Wallet' })

export const SignatureRecord = z
  .object({
    id: z.uuid(),
    kind: z.enum(['x402_payment', 'transaction']),
    network: z.string(),
    contract: z.string().nullable().meta({
      description: 'The contract that is called. null for a transfer of the native currency.',
    }),
    recipient: z.string(),
    asset: z.string(),
    amount: z.string(),
    fee_max: z.string().meta({ description: 'The highest fee of a transaction, in wei.' }),
    hash: z.string().meta({
      description: 'The hash of the transaction, or the EIP-712 hash of the authorization.',
    }),
    nonce: z.string().meta({ description: 'EIP-3009 nonce, or nonce of the account.' }),
    valid_before: time.nullable(),
    resource: z
      .string()
      .nullable()
      .meta({ description: 'What is paid, as the agent names it: a URL without a query.' }),
    created_at: time,
  })
  .meta({ id: 'WalletSignature' })

const Offer = z
  .looseObject({
    scheme: z.string().max(64),
    network: z.string().max(64),
    asset: z.string().max(128),
    payTo: z.string().max(128),
    maxTimeoutSeconds: z.number(),
    amount: z.string().max(80).optional().meta({ description: 'Version 2.', example: '10000' }),
    maxAmountRequired: z.string().max(80).optional().meta({ description: 'Version 1.' }),
    extra: z.looseObject({}).nullable().optional(),
  })
  .meta({ id: 'X402Offer' })

export const PayByWallet = z
  .object({
    payment_required: z
      .looseObject({
        x402Version: z.union([z.literal(1), z.literal(2)]),
        accepts: z.array(Offer).min(1).max(32),
        resource: z.looseObject({}).optional(),
        extensions: z.looseObject({}).optional(),
      })
      .meta({
        description:
          'The PaymentRequired object of the seller as received: the decoded PAYMENT-REQUIRED header of version 2, or ' +
          'the body of version 1.',
      }),
  })
  .meta({ id: 'PayByWallet' })

export const PaymentRecord = z
  .object({
    id: z.uuid(),
    x402_version: z.int(),
    header_name: z.enum(['PAYMENT-SIGNATURE', 'X-PAYMENT']),
    header_value: z.string().meta({
      description:
        'Send it to the seller in the header header_name, with the request that was 402.',
    }),
    network: z.string(),
    asset: z.string(),
    amount: z.string(),
    pay_to: z.string(),
    payer: z.string().meta({ description: 'The address of the wallet.' }),
    nonce: z.string(),
    valid_before: time,
    hash: z.string(),
    created_at: time,
  })
  .meta({ id: 'WalletPayment' })

export const TransactByWallet = z
  .object({
    network,
    to: address,
    nonce: z.int().min(0).meta({ description: 'The next nonce of the account on the chain.' }),
    value: wei.default('0'),
    data: z
      .string()
      .max(32_768)
      .regex(/^0x(?:[0-9a-fA-F]{2})*$/)
      .default('0x')
      .meta({ description: 'Hex. For an asset: transfer(address,uint256).', example: '0x' }),
    gas: wei.meta({ description: 'Gas limit.', example: '65000' }),
    max_fee_per_gas: wei,
    max_priority_fee_per_gas: wei,
  })
  .meta({ id: 'TransactByWallet' })

export const TransactionRecord = z
  .object({
    id: z.uuid(),
    network: z.string(),
    raw: z.string().meta({ description: 'The signed transaction, for eth_sendRawTransaction.' }),
    hash: z.string(),
    from: z.string(),
    created_at: time,
  })
  .meta({ id: 'WalletTransaction' })

export const signatureJson = presenter(SignatureRecord)
export const paymentJson = presenter(PaymentRecord)
export const transactionJson = presenter(TransactionRecord)

const walletShown = presenter(WalletRecord)
export function walletJson(wallet: Wallet) {
  const budgets = wallet.budgets.map((one) => ({
    ...one,
    remaining: remaining(one.windowMax, one.spent),
  }))
  return walletShown({ ...wallet, budgets })
}

function remaining(windowMax: string, spent: string): string {
  const left = BigInt(windowMax) - BigInt(spent)
  return String(left > 0n ? left : 0n)
}
