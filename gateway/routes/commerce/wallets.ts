/** Wallets of agents. docs/reference/commerce.md, Wallets. */
import { z } from 'zod'
import {
  type PolicyTerms,
  wallets,
  type WalletFound,
} from '../../../actors/commerce/wallets/protocol.js'
import { callerOf } from '../../request/caller.js'
import { PageQuery, readPage } from '../../request/paging.js'
import { json, problem, type Route, reply, route } from '../../route.js'
import { idempotencyRefusals } from '../operations/idempotency-refusals.js'
import { stepUpNeeded } from '../operations/step-up.js'
import { invalid, listed } from './merchant-routes.js'
import {
  AssignWallet,
  CreateWallet,
  PayByWallet,
  PaymentRecord,
  paymentJson,
  SignatureRecord,
  signatureJson,
  TransactByWallet,
  TransactionRecord,
  transactionJson,
  UpdateWallet,
  walletJson,
  WalletRecord,
} from './wallet-shapes.js'

const OWN = '/api/v1/wallet'
const WALLET = '/api/v1/agents/{agent_id}/wallet'
/** A PaymentRequired object whose payment fits a header. */
const PAYMENT_BYTES_MAX = 16 * 1024
const TRANSACTION_BYTES_MAX = 64 * 1024

const tags = ['Wallets'] as const
const managing = {
  tags,
  exposure: 'internal',
  security: { scheme: 'bearer', scopes: ['wallet:manage'], direct: 'required' },
} as const
const reading = {
  tags,
  exposure: 'internal',
  security: { scheme: 'bearer', scopes: ['wallet:read', 'wallet:manage'] },
} as const
const signing = {
  tags,
  exposure: 'public',
  security: {
    scheme: 'bearer',
    scopes: ['wallet:sign'],
    subjects: ['agent'],
    direct: 'required',
  },
  capabilities: ['wallet'],
} as const
const AgentPath = z.object({ agent_id: z.string().max(64) })

const found = reply(200, WalletRecord, ({ wallet }: WalletFound) => walletJson(wallet))
const exists = problem(409, 'conflict', { detail: 'The agent has a wallet.' })
const unknown_agent = problem(404, 'not-found', { detail: 'There is no such agent.' })
const not_provisioned = problem(404, 'not-found', {
  error: 'wallet_not_provisioned',
  detail: 'The agent has no wallet.',
})
const managerRefusals = {
  own_wallet: problem(403, 'policy-denied', {
    detail: 'An agent cannot widen the policy of its wallet.',
  }),
  step_up: stepUpNeeded,
}

type Detailed = { readonly detail: string }
const signingRefusals = {
  not_provisioned,
  invalid,
  frozen: problem<Detailed, 'policy-denied'>(403, 'policy-denied', ({ detail }) => ({
    detail,
    error: 'wallet_frozen',
  })),
  recipient_not_allowed: problem<Detailed, 'policy-denied'>(403, 'policy-denied', ({ detail }) => ({
    detail,
    error: 'recipient_not_allowed',
  })),
  contract_not_allowed: problem<Detailed, 'policy-denied'>(403, 'policy-denied', ({ detail }) => ({
    detail,
    error: 'contract_not_allowed',
  })),
  over_budget: problem<Detailed, 'policy-denied'>(403, 'policy-denied', ({ detail }) => ({
    detail,
    error: 'budget_exceeded',
  })),
  budget_used_up: problem<Detailed & { readonly retryAfterSecs: number }, 'rate-limited'>(
    429,
    'rate-limited',
    ({ detail, retryAfterSecs }) => ({ detail, error: 'budget_exceeded', retryAfterSecs }),
  ),
  ...idempotencyRefusals,
}
const REFUSALS =
  ' The policy refuses with wallet_frozen, contract_not_allowed, recipient_not_allowed or budget_exceeded, in this ' +
  'order. budget_exceeded is 403 for more than the policy ever allows, and 429 with Retry-After for more than the ' +
  'window has left. A refusal counts against no budget. Use an idempotency key: a retry then gets the same signature.'

export const walletRoutes: readonly Route[] = [
  route(wallets, 'readOwnWallet', {
    ...signing,
    method: 'GET',
    path: OWN,
    summary: 'Read the wallet of the calling agent with its policy and what is spent',
    message: (request) => ({ caller: callerOf(request) }),
    replies: { found, not_provisioned },
  }),
  route(wallets, 'signX402Payment', {
    ...signing,
    method: 'POST',
    path: `${OWN}/x402-payments`,
    summary: 'Sign an x402 payment with the wallet of the calling agent',
    description:
      'Takes the 402 answer of a seller and returns the header that pays it. The first offer that the ' +
      `policy allows is paid.${REFUSALS}`,
    idempotent: true,
    body: json(PayByWallet, { maxBytes: PAYMENT_BYTES_MAX }),
    message: (request) => ({
      caller: callerOf(request),
      required: request.body.payment_required,
      idempotency: request.idempotency,
    }),
    replies: {
      signed: reply(201, PaymentRecord, ({ payment }) => paymentJson(payment)),
      ...signingRefusals,
    },
  }),
  route(wallets, 'signWalletTransaction', {
    ...signing,
    method: 'POST',
    path: `${OWN}/transactions`,
    summary: 'Sign an EIP-1559 transaction with the wallet of the calling agent',
    description:
      'A transfer of an asset or of the native currency, or a call of a contract of the policy. The value and the ' +
      'highest fee count against the budget of native, transferred assets against theirs. The service does not send ' +
      `the transaction.${REFUSALS}`,
    idempotent: true,
    body: json(TransactByWallet, { maxBytes: TRANSACTION_BYTES_MAX }),
    message: (request) => ({
      caller: callerOf(request),
      transaction: {
        network: request.body.network,
        nonce: request.body.nonce,
        to: request.body.to,
        value: request.body.value,
        data: request.body.data,
        gas: request.body.gas,
        maxFeePerGas: request.body.max_fee_per_gas,
        maxPriorityFeePerGas: request.body.max_priority_fee_per_gas,
      },
      idempotency: request.idempotency,
    }),
    replies: {
      signed: reply(201, TransactionRecord, ({ transaction }) => transactionJson(transaction)),
      ...signingRefusals,
    },
  }),
  route(wallets, 'listWallets', {
    ...reading,
    method: 'GET',
    path: '/api/v1/wallets',
    summary: 'List the wallets of the tenant, newest first',
    description: 'Wallets of deleted agents are among them.',
    query: PageQuery,
    message: (request) => ({ caller: callerOf(request), ...readPage(request.query) }),
    replies: {
      listed: listed(WalletRecord, walletJson),
    },
  }),
  route(wallets, 'createWallet', {
    ...managing,
    method: 'POST',
    path: WALLET,
    summary: 'Create the wallet of an agent',
    description:
      'The service generates the key and never returns it. Without recipients and budgets the wallet signs nothing. ' +
      'An agent cannot create its own wallet. A person needs a sign-in with two factors within the last five minutes.',
    idempotent: true,
    params: AgentPath,
    body: json(CreateWallet, { optional: true }),
    message: (request) => ({
      caller: callerOf(request),
      agentId: request.params.agent_id,
      policy: termsOf(request.body) as PolicyTerms,
      idempotency: request.idempotency,
    }),
    replies: {
      created: reply(
        201,
        WalletRecord,
        ({ wallet }) => walletJson(wallet),
        ({ wallet }) => ({ location: WALLET.replace('{agent_id}', wallet.agentId) }),
      ),
      unknown_agent,
      invalid,
      ...managerRefusals,
      exists,
      full: problem<{ most: number }, 'policy-denied'>(403, 'policy-denied', ({ most }) => ({
        reason: 'limit_reached',
        detail: `The tenant has the maximum of ${most} wallets.`,
      })),
      ...idempotencyRefusals,
    },
  }),
  route(wallets, 'readWallet', {
    ...reading,
    method: 'GET',
    path: WALLET,
    summary: 'Read the wallet of an agent',
    params: AgentPath,
    message: (request) => ({ caller: callerOf(request), agentId: request.params.agent_id }),
    replies: { found, unknown_agent, not_provisioned },
  }),
  route(wallets, 'updateWallet', {
    ...managing,
    method: 'PATCH',
    path: WALLET,
    summary: 'Change the policy of a wallet',
    description:
      'Members that are absent stay unchanged. Lists are replaced. What was spent of an asset counts against its new ' +
      'budget. An agent cannot change its own wallet. A person needs a sign-in with two factors within the last five ' +
      'minutes.',
    params: AgentPath,
    body: json(UpdateWallet),
    message: (request) => ({
      caller: callerOf(request),
      agentId: request.params.agent_id,
      change: termsOf(request.body),
    }),
    replies: { found, unknown_agent, not_provisioned, invalid, ...managerRefusals },
  }),
  route(wallets, 'freezeWallet', {
    ...managing,
    method: 'POST',
    path: `${WALLET}/freeze`,
    summary: 'Freeze a wallet: it signs nothing until it is unfrozen',
    description:
      'In force immediately in every process. What was signed before stays valid on the chain. Idempotent.',
    params: AgentPath,
    message: (request) => ({ caller: callerOf(request), agentId: request.params.agent_id }),
    replies: { found, unknown_agent, not_provisioned },
  }),
  route(wallets, 'unfreezeWallet', {
    ...managing,
    method: 'POST',
    path: `${WALLET}/unfreeze`,
    summary: 'Unfreeze a wallet',
    description:
      'An agent cannot unfreeze its own wallet. A person needs a sign-in with two factors within the last five ' +
      'minutes. Idempotent.',
    params: AgentPath,
    message: (request) => ({ caller: callerOf(request), agentId: request.params.agent_id }),
    replies: { found, unknown_agent, not_provisioned, ...managerRefusals },
  }),
  route(wallets, 'assignWallet', {
    ...managing,
    method: 'POST',
    path: '/api/v1/wallets/{wallet_id}/assign',
    summary: 'Assign the wallet of an agent that has left the tenant to another agent',
    description:
      'For a wallet whose agent is deleted, or no longer a member. The wallet is frozen and keeps its policy: check ' +
      'the policy, then unfreeze it. An agent cannot assign a wallet to itself. A person needs a sign-in with two ' +
      'factors within the last five minutes.',
    params: z.object({ wallet_id: z.string().max(64) }),
    body: json(AssignWallet),
    message: (request) => ({
      caller: callerOf(request),
      walletId: request.params.wallet_id,
      agentId: request.body.agent_id,
    }),
    replies: {
      found,
      unknown_wallet: problem(404, 'not-found', { detail: 'There is no such wallet.' }),
      unknown_agent,
      ...managerRefusals,
      exists,
      in_use: problem(409, 'conflict', {
        detail: 'The agent of the wallet belongs to the tenant.',
      }),
    },
  }),
  route(wallets, 'listWalletSignatures', {
    ...reading,
    method: 'GET',
    path: `${WALLET}/signatures`,
    summary: 'List what a wallet has signed, newest first',
    params: AgentPath,
    query: PageQuery,
    message: (request) => ({
      caller: callerOf(request),
      agentId: request.params.agent_id,
      ...readPage(request.query),
    }),
    replies: {
      listed: listed(SignatureRecord, signatureJson),
      unknown_agent,
      not_provisioned,
    },
  }),
]

function termsOf(body: z.output<typeof UpdateWallet>) {
  return {
    recipients: body.recipients,
    contracts: body.contracts,
    budgets: body.budgets?.map((budget) => ({
      network: budget.network,
      asset: budget.asset,
      paymentMax: budget.payment_max,
      windowMax: budget.window_max,
      windowSecs: budget.window_secs ?? null,
    })),
  }
}
