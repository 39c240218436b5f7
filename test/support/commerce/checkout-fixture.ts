/**
 * Commerce without HTTP: its actors on a controlled clock, over a payment provider that may fail at
 * any moment.
 */
import { checkoutActor } from '../../../actors/commerce/payments/checkout/actor.js'
import type { CheckoutNeeds } from '../../../actors/commerce/payments/checkout/needs.js'
import { renewalRound } from '../../../actors/commerce/payments/renewals/round.js'
import { commerceActor } from '../../../actors/commerce/payments/actor.js'
import {
  type PaymentProvider,
  providersByName,
} from '../../../actors/commerce/payments/payment-provider.js'
import { sandboxProvider } from '../../../actors/commerce/payments/sandbox-provider.js'
import type { Caller } from '../../../actors/domain/audit.js'
import { payoutsActor } from '../../../actors/commerce/payments/payouts/actor.js'
import { type HeldClock, heldClock } from '../held-clock.js'
import { spawnInline } from '../../../runtime/kernel/inline.js'
import { type Logger, silentLogger } from '../../../runtime/kernel/log.js'
import { systemRandom } from '../../../runtime/kernel/random.js'
import type { Database } from '../../../storage/platform/sql.js'

/** When a request to a provider fails: before it is seen, or after it was answered. */
export type Mishap = 'none' | 'before' | 'after'

export function flaky(rail: PaymentProvider, next: () => Mishap): PaymentProvider {
  async function through<T>(ask: () => Promise<T>): Promise<T> {
    const mishap = next()
    if (mishap === 'before') throw new Error('the rail was not reached')
    const answer = await ask()
    if (mishap === 'after') throw new Error('the answer of the rail was lost')
    return answer
  }
  return {
    name: rail.name,
    offers: (environment, amount) => rail.offers(environment, amount),
    leadsTo: rail.leadsTo,
    clearingMs: rail.clearingMs,
    take: (order, signal) => through(() => rail.take(order, signal)),
    conclude: (order, signal) => through(() => rail.conclude(order, signal)),
    refund: (order, signal) => through(() => rail.refund(order, signal)),
    payOut: (order, signal) => through(() => rail.payOut(order, signal)),
  }
}

export function openCheckoutFixture(database: Database, next: () => Mishap = () => 'none') {
  const clock: HeldClock = heldClock(new Date('2031-01-31T12:00:00.000Z'))
  const random = systemRandom(clock)
  const providers = providersByName([flaky(sandboxProvider({ database, clock }), next)])
  const needs = { database, clock, random, providers, countPayment: () => undefined }
  const pages = { baseUrl: 'http://localhost', countWebhook: () => undefined }
  const settings = { checkout_ttl_secs: 86_400, redirect_hosts: [] }
  const sealer = {} as CheckoutNeeds['sealer']
  const lifecycle = { signal: new AbortController().signal }
  return {
    clock,
    checkout: spawnInline(checkoutActor, { ...needs, ...pages, settings, sealer, x402: null }).ref,
    commerce: spawnInline(commerceActor, needs).ref,
    settlement: spawnInline(payoutsActor, needs).ref,
    /** Another process that does the due work. */
    worker:
      (log: Logger = silentLogger) =>
      () =>
        renewalRound({ ...needs, ...lifecycle, x402: null, baseUrl: 'https://svc.example', log }),
  }
}

export function callerIn(tenantId: string): Caller {
  return {
    address: '127.0.0.1',
    principal: {
      subject: 'operator',
      subjectType: 'service',
      tenantId,
      organizationId: null,
      clientId: 'operator',
      scopes: ['commerce:manage'],
      audience: [],
      actors: [],
      delegationId: null,
      sessionId: null,
      acr: null,
      authTimeSecs: null,
      jkt: null,
      tokenId: 'token',
      expiresAtSecs: 0,
    },
  }
}

/** A buyer without personal data. */
export const BUYER = {
  successUrl: null,
  cancelUrl: null,
  customerEmail: 'ada@example.com',
  buyerCountry: null,
  buyerRegion: null,
  metadata: {},
  idempotency: null,
} as const

/** The books of a tenant: our ledger, and the books of the sandbox provider. */
export async function auditBooks(database: Database, tenantId: string) {
  const { rows } = await database.tenant(tenantId, (tx) =>
    tx.query<{
      total: string
      unbalanced: number
      apart: number
      strangers: number
      clearing: string
      paid: string
      stated: string
    }>({
      name: 'test.audit_books',
      text: `select
        (select coalesce(sum(balance_minor), 0)::text from ledger_accounts) as total,
        (select count(*)::int from (select entry_id from ledger_lines group by entry_id
          having sum(amount_minor) <> 0) e) as unbalanced,
        (select count(*)::int from ledger_accounts a where balance_minor <>
          (select sum(amount_minor) from ledger_lines l where l.currency = a.currency
            and l.rail = a.rail and l.account = a.account)) as apart,
        -- Charges whose end is not what the rail has in its books.
        (select count(*)::int from charges c join sandbox_payments p on p.id = c.id
          where c.status <> 'pending'
            and (c.status <> 'failed') <> (p.outcome in ('succeed', 'dispute'))) as strangers,
        (select coalesce(sum(balance_minor), 0)::text from ledger_accounts
          where account = 'clearing') as clearing,
        -- What the rail has of ours: taken, less given back, paid out and taken back.
        ((select coalesce(sum(p.amount_minor), 0) from sandbox_payments p
            join charges c on c.id = p.id where c.status in ('succeeded', 'refunded'))
          - (select coalesce(sum(amount_minor), 0) from refunds where status = 'succeeded')
          - (select coalesce(sum(amount_minor), 0) from payouts where status = 'paid')
          - (select coalesce(sum(reversed_amount_minor), 0) from charges))::text as paid,
        -- The last statement by its subject: statements of one millisecond are listed in any order.
        coalesce((select closing_balance_minor from statements
          order by last_sequence desc limit 1), 0)::text as stated`,
    }),
  )
  return rows[0]!
}
