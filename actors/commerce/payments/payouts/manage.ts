/** Creates payouts and statements, and closes disputes of a sandbox. */
import type { Handler, MessageContext } from '../../../../runtime/kernel/actor.js'
import { findCharge } from '../../../../storage/commerce/charges.js'
import { disputeRows } from '../../../../storage/commerce/disputes.js'
import { lockAvailable, postEntry } from '../../../../storage/commerce/ledger.js'
import { insertMerchantStatement } from '../../../../storage/commerce/merchant-statements.js'
import { insertPayout } from '../../../../storage/commerce/payouts.js'
import { appendEvents } from '../../../../storage/platform/outbox.js'
import type { Transaction } from '../../../../storage/platform/sql.js'
import { isUuid } from '../../../domain/ids.js'
import { createOnce } from '../../../platform/creation.js'
import { endDispute } from '../disputes.js'
import { payoutEvent, statementEvent } from '../events.js'
import type { CommerceNeeds } from '../needs.js'
import type { Created, Invalid } from '../protocol.js'
import { SANDBOX_PROVIDER } from '../sandbox-provider.js'
import type { CreatePayout, Payout, PayoutsProtocol } from './protocol.js'
import { disputeOf, payoutOf, statementOf } from './read.js'
import { inTenant } from '../../../platform/in-tenant.js'
import { invalid } from '../../../domain/entities/messages.js'

type Handling<K extends keyof PayoutsProtocol> = Handler<CommerceNeeds, PayoutsProtocol, K>

export const closeDispute: Handling<'closeDispute'> = async (needs, message, context) => {
  const { tenantId } = message.caller.principal
  const { signal, requestId } = context
  if (!isUuid(message.id)) return { tag: 'unknown' }
  return inTenant(needs.database, tenantId, { signal }, async (tx) => {
    const found = await disputeRows.find(tx, tenantId, message.id)
    if (found === undefined) return { tag: 'unknown' }
    const charge = await findCharge(tx, tenantId, found.chargeId)
    if (charge?.rail !== SANDBOX_PROVIDER) return { tag: 'not_sandbox' }
    const transition = await endDispute(tx, { ...needs, requestId }, { ...message, tenantId })
    if (transition?.changed !== true) return { tag: 'closed' }
    appendEvents(tx, transition.events)
    return { tag: 'changed', row: disputeOf(transition.row) }
  })
}

export const createPayout: Handling<'createPayout'> = async (needs, message, context) =>
  needs.providers.has(message.rail)
    ? createOnce(needs, message, context, (tx) => submit(tx, needs, message, context))
    : invalid('/rail', 'The payment provider does not exist.')

export const createStatement: Handling<'createStatement'> = (needs, message, context) =>
  createOnce(needs, message, context, async (tx, tenantId) => {
    const { caller, currency } = message
    const id = needs.random.uuid()
    const row = await insertMerchantStatement(tx, tenantId, currency, id, needs.clock.now())
    if (row === undefined) return NOTHING_BOOKED
    const deps = { ...needs, requestId: context.requestId }
    appendEvents(tx, [statementEvent('commerce.statement.created', row, deps, caller)])
    return { tag: 'created' as const, row: statementOf(row), replayed: false }
  })

/** The lock of the book prevents two payouts from sending the same money. */
async function submit(
  tx: Transaction,
  needs: CommerceNeeds,
  { caller, rail, currency, amountMinor: asked }: CreatePayout,
  { requestId }: MessageContext,
): Promise<Created<Payout> | Invalid> {
  const { clock, random } = needs
  const { tenantId } = caller.principal
  const available = await lockAvailable(tx, tenantId, currency, rail)
  const amountMinor = asked ?? available
  if (amountMinor <= 0 || amountMinor > available) {
    return invalid('/amount_minor', 'More than the available balance.')
  }
  const now = clock.now()
  const id = random.uuid()
  const payout = { id, tenantId, rail, amountMinor, currency, createdAt: now }
  const row = await insertPayout(tx, { ...payout, dueAt: now })
  await postEntry(tx, {
    tenantId,
    id: random.uuid(),
    currency,
    kind: 'payout',
    subjectId: id,
    createdAt: now,
    lines: [
      { account: 'available', rail, amountMinor },
      { account: 'in_transit', rail, amountMinor: -amountMinor },
    ],
  })
  const deps = { clock, random, requestId }
  appendEvents(tx, [payoutEvent('commerce.payout.submitted', row, deps, caller)])
  return { tag: 'created', row: payoutOf(row), replayed: false }
}

const NOTHING_BOOKED = invalid(
  '/currency',
  'No ledger entry in this currency since the last statement.',
)
