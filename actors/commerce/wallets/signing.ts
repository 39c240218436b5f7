/**
 * Signs for an agent. The signature is made first and stays in memory. One transaction then locks the wallet, judges the
 * policy again, counts the amount against the budgets, and records signature, event and answer. The signature leaves the
 * service after the commit. A process that dies before it has signed nothing that anybody can use, and has spent nothing.
 * A retry with the same idempotency key after it gets the same signature.
 */
import type { MessageContext } from '../../../runtime/kernel/actor.js'
import {
  findSigningWallet,
  lockWallet,
  type SealedWalletRow,
  walletKeyContext,
} from '../../../storage/commerce/wallets.js'
import {
  budgetFreedAt,
  reserveSignature,
  type WalletSignatureRow,
} from '../../../storage/commerce/wallet-signatures.js'
import { idempotently } from '../../../storage/platform/idempotency.js'
import { appendEvents, type NewEvent } from '../../../storage/platform/outbox.js'
import type { Sealer } from '../../../storage/platform/sealing/sealer.js'
import type { Transaction } from '../../../storage/platform/sql.js'
import type { Caller } from '../../domain/audit.js'
import type { Creation, IdempotencyRefused } from '../../domain/idempotency.js'
import type { Draft } from './draft.js'
import { rejected, signed } from './events.js'
import type { WalletsMetrics } from './metrics.js'
import { exhausted, type Intent, type Refusal, refusalOf, spendsOf } from './policy.js'
import type { NotProvisioned, RequestInvalid, SigningRefused } from './protocol.js'
import { inTenant } from '../../platform/in-tenant.js'
import type { WriteNeeds } from '../../platform/write-needs.js'

export type SigningNeeds = WriteNeeds & {
  readonly sealer: Sealer
  readonly metrics: WalletsMetrics
}

type Signature<Answer> = {
  readonly tag: 'signed'
  readonly answer: Answer
  readonly replayed: boolean
}
type Refused = SigningRefused | NotProvisioned | RequestInvalid
type DraftOf<Answer> = (
  wallet: SealedWalletRow,
  id: string,
  now: Date,
) => Draft<Answer> | RequestInvalid

const NOT_PROVISIONED = { tag: 'not_provisioned' } as const

/** Signs what `draftOf` makes of the wallet of the caller. */
export async function sign<Answer>(
  needs: SigningNeeds,
  { caller, idempotency }: Creation,
  draftOf: DraftOf<Answer>,
  context: MessageContext,
): Promise<Signature<Answer> | Refused | IdempotencyRefused> {
  const { database, sealer, random, metrics } = needs
  const { tenantId, subject: agentId, sessionId } = caller.principal
  const who = { tenantId, agentId, sessionId }
  const { signal, requestId } = context
  const found = await drafted(needs, caller, draftOf, context)
  if (found.tag !== 'ready') return found
  const { wallet: seen, draft, id, now } = found
  const key = await sealer.open(tenantId, walletKeyContext(seen.id), seen.keySealed)
  const signature = await draft.sign(key, context).finally(() => key.fill(0))
  if (signature.tag === 'invalid') return signature
  const { hash, answer } = signature

  async function record(tx: Transaction): Promise<Signature<Answer> | Refused> {
    await lockWallet(tx, tenantId, agentId)
    const wallet = await findSigningWallet(tx, who, now)
    // Wallets are deleted only with their tenant.
    if (wallet?.id !== seen.id) return NOT_PROVISIONED
    const { intent } = draft
    const refusal = refusalOf(wallet, intent)
    const by = { caller, random, now, requestId }
    if (refusal !== undefined)
      return refuse(tx, needs, rejected(wallet, intent, refusal, by), refusal)
    const row = rowOf(wallet, draft, id, hash, now)
    if (!(await reserveSignature(tx, row, spendsOf(intent)))) {
      const none = await usedUp(tx, wallet, intent, now)
      return refuse(tx, needs, rejected(wallet, intent, none, by), none)
    }
    appendEvents(tx, [signed(row, wallet.address, by)])
    return { tag: 'signed', answer, replayed: false }
  }

  const keep = (done: Signature<Answer> | Refused) => (done.tag === 'signed' ? done : undefined)
  const outcome = await inTenant(database, tenantId, { signal }, (tx) =>
    idempotently(tx, idempotency, () => record(tx), keep),
  )
  if (outcome.tag === 'signed') metrics.requests.inc({ outcome: 'signed' })
  return outcome
}

/** What is to be signed, if the policy allows it at present. */
function drafted<Answer>(
  needs: SigningNeeds,
  caller: Caller,
  draftOf: DraftOf<Answer>,
  context: MessageContext,
) {
  const { database, clock, random, metrics } = needs
  const { tenantId, subject: agentId, sessionId } = caller.principal
  const { signal, requestId } = context
  return inTenant(database, tenantId, { signal }, async (tx) => {
    const now = clock.now()
    const by = { caller, random, now, requestId }
    const wallet = await findSigningWallet(tx, { tenantId, agentId, sessionId }, now)
    if (wallet === undefined) {
      const reason = 'wallet_not_provisioned'
      appendEvents(tx, rejected(undefined, null, { reason }, by))
      metrics.requests.inc({ outcome: reason })
      return NOT_PROVISIONED
    }
    const id = random.uuid()
    const draft = draftOf(wallet, id, now)
    if (draft.tag === 'invalid') return draft
    const { intent } = draft
    const refusal = refusalOf(wallet, intent)
    return refusal === undefined
      ? ({ tag: 'ready', wallet, draft, id, now } as const)
      : refuse(tx, needs, rejected(wallet, intent, refusal, by), refusal)
  })
}

/** Writes the events of a refusal. They commit with the transaction, which changes nothing else. */
function refuse(
  tx: Transaction,
  { metrics }: SigningNeeds,
  events: readonly NewEvent[],
  refusal: Refusal,
): SigningRefused {
  appendEvents(tx, events)
  metrics.requests.inc({ outcome: refusal.reason })
  return answerTo(refusal)
}

/** The refusal of a budget that has too little left. */
async function usedUp(
  tx: Transaction,
  wallet: SealedWalletRow,
  intent: Intent,
  now: Date,
): Promise<Refusal> {
  const found = exhausted(wallet, intent)
  if (found === undefined) throw new Error('a budget refused a signature that it allows')
  const { budget, spend, lacks } = found
  const { tenantId, id: walletId } = wallet
  const freedAt = await budgetFreedAt(tx, { tenantId, walletId, ...budget }, String(lacks), now)
  const waitMs = freedAt === null ? 0 : freedAt.getTime() - now.getTime()
  const left = BigInt(budget.windowMax) - BigInt(budget.spent)
  return {
    reason: 'budget_exceeded',
    detail: `The wallet may spend ${left < 0n ? 0n : left} more in this window, not ${spend.amount}.`,
    budget,
    spend,
    retryAfterSecs: Math.max(1, Math.ceil(waitMs / 1000)),
  }
}

function rowOf(
  { tenantId, id: walletId, agentId }: SealedWalletRow,
  { intent, nonce, validBefore, resource }: Draft<unknown>,
  id: string,
  hash: string,
  createdAt: Date,
): WalletSignatureRow {
  return {
    id,
    tenantId,
    walletId,
    agentId,
    kind: intent.kind === 'payment' ? 'x402_payment' : 'transaction',
    network: intent.network,
    contract: intent.contract,
    recipient: intent.recipient,
    asset: intent.asset,
    amount: String(intent.amount),
    feeMax: String(intent.feeMax),
    hash,
    nonce,
    validBefore,
    resource,
    createdAt,
  }
}

function answerTo(refusal: Refusal): SigningRefused {
  const { reason, detail } = refusal
  if (reason === 'wallet_frozen') return { tag: 'frozen', detail }
  if (reason !== 'budget_exceeded') return { tag: reason, detail }
  const { retryAfterSecs } = refusal
  return retryAfterSecs === null
    ? { tag: 'over_budget', detail }
    : { tag: 'budget_used_up', detail, retryAfterSecs }
}
