/** Subscription operations of merchants. The async plane renews subscriptions. */
import type { Handler, MessageContext } from '../../../runtime/kernel/actor.js'
import { appendEvents, type NewEvent } from '../../../storage/platform/outbox.js'
import { changeMandate } from '../../../storage/commerce/sandbox-provider.js'
import type { Transaction } from '../../../storage/platform/sql.js'
import {
  cancelAtPeriodEnd,
  renewNow,
  type SubscriptionRow,
  subscriptionRows,
} from '../../../storage/commerce/subscriptions.js'
import { findTenant } from '../../../storage/identity/tenants.js'
import type { AuditOnlyType, Caller } from '../../domain/audit.js'
import { isUuid } from '../../domain/ids.js'
import { recordAudit } from '../../platform/record-audit.js'
import type { CommerceNeeds } from './needs.js'
import type { Changed, CommerceProtocol, NotOpen, Subscription, Unknown } from './protocol.js'
import { subscriptionOf } from './records.js'
import { SANDBOX_PROVIDER } from './sandbox-provider.js'
import { endSubscription } from './subscription-end.js'
import { inTenant } from '../../platform/in-tenant.js'

const INVOICED_PROVIDER = 'x402'

type Handling<K extends keyof CommerceProtocol> = Handler<CommerceNeeds, CommerceProtocol, K>

/** A change, with the events to emit in addition to the audit record. */
type Done = { readonly row: SubscriptionRow; readonly events: readonly NewEvent[] }

export const cancelSubscription: Handling<'cancelSubscription'> = (needs, message, context) => {
  const { atPeriodEnd } = message
  const action = {
    type: 'commerce.subscription.canceled',
    data: { at_period_end: atPeriodEnd },
  } as const
  return change(needs, message, action, context, async (tx, { tenantId, id }, now) => {
    if (atPeriodEnd) return doneOf(await cancelAtPeriodEnd(tx, tenantId, id, now))
    const { row, events } = await endSubscription(
      tx,
      { ...needs, requestId: context.requestId },
      tenantId,
      id,
    )
    return doneOf(row, events)
  })
}

export const simulateRenewal: Handling<'simulateRenewal'> = (needs, message, context) => {
  const { outcome } = message
  const action = { type: 'commerce.subscription.renewal_simulated', data: { outcome } } as const
  return change(needs, message, action, context, async (tx, row, now) => {
    const { tenantId, id, rail, mandate } = row
    // Renewals of this kind are invoices: the buyer decides their outcome.
    if (rail === INVOICED_PROVIDER && (await findTenant(tx, tenantId))?.environment === 'sandbox') {
      return doneOf(await renewNow(tx, tenantId, id, now))
    }
    if (rail !== SANDBOX_PROVIDER || mandate === null) return NO_SANDBOX
    await changeMandate(tx, tenantId, mandate, outcome)
    return doneOf(await renewNow(tx, tenantId, id, now))
  })
}

/** Changes a subscription of the caller's tenant, and audits the change. */
async function change(
  needs: CommerceNeeds,
  { caller, id }: { readonly caller: Caller; readonly id: string },
  action: { readonly type: AuditOnlyType; readonly data: Readonly<Record<string, unknown>> },
  context: MessageContext,
  work: (tx: Transaction, row: SubscriptionRow, now: Date) => Promise<Done | NotOpen>,
): Promise<Changed<Subscription> | Unknown | NotOpen> {
  const { tenantId } = caller.principal
  if (!isUuid(id)) return { tag: 'unknown' }
  return inTenant(needs.database, tenantId, context, async (tx) => {
    const found = await subscriptionRows.find(tx, tenantId, id)
    if (found === undefined) return { tag: 'unknown' }
    const done = await work(tx, found, needs.clock.now())
    if ('tag' in done) return done
    const { row, events } = done
    const resource = { type: 'subscription', id }
    recordAudit(tx, needs, caller, context, { ...action, resource })
    appendEvents(tx, events)
    return { tag: 'changed', row: subscriptionOf(row) }
  })
}

const ENDED: NotOpen = {
  tag: 'not_open',
  detail: 'The subscription has not started or has ended.',
}

/** @param row undefined when the state of the subscription does not allow the change. */
function doneOf(row: SubscriptionRow | undefined, events: readonly NewEvent[] = []) {
  return row === undefined ? ENDED : { row, events }
}

const NO_SANDBOX: NotOpen = {
  tag: 'not_open',
  detail: 'Only sandbox renewals, by the sandbox provider or by invoice, can be simulated.',
}
