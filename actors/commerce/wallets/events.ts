/** Events of wallets for webhooks. Each is also in the audit chain. */
import type { WalletRow } from '../../../storage/commerce/wallets.js'
import type { WalletSignatureRow } from '../../../storage/commerce/wallet-signatures.js'
import {
  eventBy,
  type EventContext,
  type EventFields,
  type EventType,
  type NewEvent,
} from '../../domain/events.js'
import type { Intent, Refusal } from './policy.js'

export function signed(row: WalletSignatureRow, address: string, context: EventContext): NewEvent {
  return walletEvent('wallet.tx.signed', row.walletId, context, {
    agent_id: context.caller.principal.subject,
    signature_id: row.id,
    address,
    kind: row.kind,
    network: row.network,
    contract: row.contract,
    recipient: row.recipient,
    asset: row.asset,
    amount: row.amount,
    fee_max: row.feeMax,
    hash: row.hash,
    nonce: row.nonce,
    valid_before: row.validBefore?.toISOString() ?? null,
    payment_resource: row.resource,
  })
}

/**
 * What was refused, and why.
 * @param wallet undefined where the agent has none.
 */
export function rejected(
  wallet: WalletRow | undefined,
  intent: Intent | null,
  refusal: Refusal | { readonly reason: 'wallet_not_provisioned' },
  context: EventContext,
): readonly NewEvent[] {
  const asked =
    intent === null
      ? {}
      : {
          kind: intent.kind === 'payment' ? 'x402_payment' : 'transaction',
          network: intent.network,
          contract: intent.contract,
          recipient: intent.recipient,
          asset: intent.asset,
          amount: String(intent.amount),
        }
  const id = wallet?.id ?? null
  const agentId = context.caller.principal.subject
  const event = walletEvent('wallet.tx.rejected', id, context, {
    agent_id: agentId,
    reason: refusal.reason,
    ...(wallet === undefined ? {} : { address: wallet.address }),
    ...asked,
  })
  if (refusal.reason !== 'budget_exceeded' || intent === null) return [event]
  const { budget, spend } = refusal
  return [
    event,
    walletEvent('wallet.budget.exceeded', id, context, {
      agent_id: agentId,
      network: intent.network,
      asset: spend.asset,
      amount: spend.amount,
      payment_max: budget?.paymentMax ?? null,
      window_max: budget?.windowMax ?? null,
      window_secs: budget?.windowSecs ?? null,
      spent: budget?.spent ?? null,
    }),
  ]
}

/** @param walletId null: the event is about the agent, which has no wallet. */
function walletEvent<T extends EventType>(
  type: T,
  walletId: string | null,
  context: EventContext,
  fields: EventFields<T>,
): NewEvent {
  const { subject } = context.caller.principal
  const resource =
    walletId === null ? { type: 'agent', id: subject } : { type: 'wallet', id: walletId }
  return eventBy(type, resource, context, fields)
}
