/** Subscription operations of merchants. The async plane renews subscriptions. */
import type { MessageContext } from '../../../runtime/kernel/actor.js'
import { appendAudit } from '../../../storage/operations/audit.js'
import { appendEvents, type NewEvent } from '../../../storage/platform/outbox.js'
import { changeMandate } from '../../../storage/commerce/sandbox-provider.js'
import type { Transaction } from '../../../storage/platform/sql.js'
import {
  cancelAtPeriodEnd,
  findSubscription,
  listSubscriptions,
  renewNow,
  type SubscriptionRow,
} from '../../../storage/commerce/subscriptions.js'
import { findTenant } from '../../../storage/identity/tenants.js'
import { type AuditOnlyType, audited, type Caller } from '../../domain/audit.js'
import { isUuid } from '../../domain/ids.js'
import type { CommerceNeeds } from './needs.js'
import type {
  CancelSubscription,
  Changed,
  ListOf,
  Named,
  NotOpen,
  SimulateRenewal,
  Subscription,
  Unknown,
} from './protocol.js'
import { listedOf, subscriptionOf } from './records.js'
import { SANDBOX_PROVIDER } from './sandbox-provider.js'
import { endSubscription } from './subscription-end.js'

const UNKNOWN: Unknown = { tag: 'unknown' }
const INVOICED_PROVIDER = 'x402'

/** A change, with the events to emit in addition to the audit record. */
type Done = { readonly row: SubscriptionRow; readonly events: readonly NewEvent[] }

export function subscriptions({ database, clock, random }: CommerceNeeds) {
  const deps = { clock, random }

  /** Changes a subscription of the caller's tenant, and audits the change. */
  async function change(
    { caller, id }: { readonly caller: Caller; readonly id: string },
    type: AuditOnlyType,
    context: MessageContext,
    work: (tx: Transaction, row: SubscriptionRow, now: Date) => Promise<Done | NotOpen>,
    data: Readonly<Record<string, unknown>>,
  ): Promise<Changed<Subscription> | Unknown | NotOpen> {
    const { tenantId } = caller.principal
    if (!isUuid(id)) return UNKNOWN
    return database.tenant(
      tenantId,
      async (tx) => {
        const found = await findSubscription(tx, tenantId, id)
        if (found === undefined) return UNKNOWN
        const now = clock.now()
        const done = await work(tx, found, now)
        if ('tag' in done) return done
        const { row, events } = done
        appendAudit(tx, [
          audited(caller, {
            id: random.uuid(),
            tenantId,
            type,
            occurredAt: now,
            resource: { type: 'subscription', id },
            requestId: context.requestId,
            data,
          }),
        ])
        appendEvents(tx, events)
        return { tag: 'changed', row: subscriptionOf(row) }
      },
      { signal: context.signal },
    )
  }

  return {
    listSubscriptions: ({ tenantId, limit, after }: ListOf, { signal }: MessageContext) =>
      database.tenant(
        tenantId,
        async (tx) =>
          listedOf(await listSubscriptions(tx, tenantId, limit + 1, after), limit, subscriptionOf),
        { signal },
      ),

    async getSubscription({ tenantId, id }: Named, { signal }: MessageContext) {
      if (!isUuid(id)) return UNKNOWN
      const row = await database.tenant(tenantId, (tx) => findSubscription(tx, tenantId, id), {
        signal,
      })
      return row === undefined ? UNKNOWN : ({ tag: 'found', row: subscriptionOf(row) } as const)
    },

    cancelSubscription: (message: CancelSubscription, context: MessageContext) =>
      change(
        message,
        'commerce.subscription.canceled',
        context,
        async (tx, { tenantId, id }, now) => {
          if (message.atPeriodEnd) return doneOf(await cancelAtPeriodEnd(tx, tenantId, id, now))
          const { row, events } = await endSubscription(tx, deps, tenantId, id, context.requestId)
          return doneOf(row, events)
        },
        { at_period_end: message.atPeriodEnd },
      ),

    simulateRenewal: (message: SimulateRenewal, context: MessageContext) =>
      change(
        message,
        'commerce.subscription.renewal_simulated',
        context,
        async (tx, { tenantId, id, rail, mandate }, now) => {
          // Renewals of this kind are invoices: the buyer decides their outcome.
          if (
            rail === INVOICED_PROVIDER &&
            (await findTenant(tx, tenantId))?.environment === 'sandbox'
          ) {
            return doneOf(await renewNow(tx, tenantId, id, now))
          }
          if (rail !== SANDBOX_PROVIDER || mandate === null) return NO_SANDBOX
          await changeMandate(tx, tenantId, mandate, message.outcome)
          return doneOf(await renewNow(tx, tenantId, id, now))
        },
        { outcome: message.outcome },
      ),
  }
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
