/** Events of wallets for webhooks. Each is also in the audit chain. */
import type { Random } from '../../../runtime/kernel/random.js'
import type { WalletRow } from '../../../storage/commerce/wallets.js'
import type { WalletSignatureRow } from '../../../storage/commerce/wallet-signatures.js'
import { actorOf, type Caller, doneBy } from '../../domain/audit.js'
import { eventData, type EventType, type NewEvent } from '../../domain/events.js'
import type { Intent, Refusal } from './policy.js'

type EventContext = {
  readonly caller: Caller
  readonly random: Random
  readonly now: Date
  readonly requestId: string | undefined
}

export function signed(row: WalletSignatureRow, address: string, context: EventContext): NewEvent {
  return walletEvent('wallet.tx.signed', row.walletId, context, {
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
  const event = walletEvent('wallet.tx.rejected', id, context, {
    reason: refusal.reason,
    ...(wallet === undefined ? {} : { address: wallet.address }),
    ...asked,
  })
  if (refusal.reason !== 'budget_exceeded' || intent === null) return [event]
  const { budget, spend } = refusal
  return [
    event,
    walletEvent('wallet.budget.exceeded', id, context, {
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
function walletEvent(
  type: EventType,
  walletId: string | null,
  { caller, random, now, requestId }: EventContext,
  fields: Readonly<Record<string, unknown>>,
): NewEvent {
  const { tenantId, subject } = caller.principal
  const resource =
    walletId === null ? { type: 'agent', id: subject } : { type: 'wallet', id: walletId }
  return {
    id: random.uuid(),
    tenantId,
    type,
    occurredAt: now,
    data: eventData(
      { actor: actorOf(caller), resource, requestId },
      { agent_id: subject, ...fields },
    ),
    audit: doneBy(caller),
  }
}
