/** Production merchants over HTTP whose buyers pay by card at a provider on loopback. */
import type { Json } from '../api.js'
import { openBrowser, type Page, type TestBrowser } from '../pages/browser.js'
import type { CardProvider } from './card-provider.js'
import { sql } from '../storage/sql.js'
import type { TestService } from '../service.js'
import { openShop, PUBLIC, type Shop } from './shop.js'

export type CardShop = Shop & {
  /** A buyer opens the page of a checkout and submits its card button. */
  begin(opened: Json): Promise<{
    readonly browser: TestBrowser
    readonly path: string
    readonly shown: Page
    readonly sent: Page
  }>
  /** A new browser at another process of the service. */
  browserAt(baseUrl: string): TestBrowser
  /** A charge that was paid by card. */
  bought(more?: Json): Promise<string>
  /** Starts a subscription and pays its first period. */
  subscribed(priceId: string): Promise<{ readonly id: string; readonly chargeId: string }>
  subscription(id: string): Promise<Json>
  subscriptionWhen(id: string, fits: (row: Json) => boolean): Promise<Json>
  /** Delivers every undelivered webhook. @returns the statuses of the responses. */
  deliverAll(): Promise<number[]>
  /** Advances time: makes the waiting rows of a table due. */
  makeDue(table: 'settlements' | 'refunds' | 'subscriptions' | 'charges'): Promise<void>
  /** Expires the pages of the tenant, and makes their charges due. */
  expirePages(): Promise<void>
  untilRow(list: string, fits: (row: Json) => boolean): Promise<Json>
  books(): Promise<Json>
}

export function cardShop(running: TestService, provider: CardProvider) {
  const ends: (() => Promise<void>)[] = []
  let delivered = 0

  async function until<T>(look: () => Promise<T | undefined>, what: string): Promise<T> {
    for (let turn = 0; turn < 750; turn += 1) {
      const found = await look()
      if (found !== undefined) return found
      await new Promise((resolve) => setTimeout(resolve, 20))
    }
    throw new Error(`not within time: ${what}`)
  }

  return {
    async fresh(): Promise<CardShop> {
      const shop = await openShop(running)
      const { tenantId } = shop.workspace
      ends.push(() => shop.api.close())
      await sql(running)`update tenants set environment = 'production' where id = ${tenantId}`

      const begin: CardShop['begin'] = async (opened) => {
        const browser = openBrowser(running)
        ends.push(() => browser.close())
        const path = new URL(String(opened['checkout_url'])).pathname
        const shown = await browser.get(path)
        const sent = await browser.submit(shown, { rail: 'card' })
        return { browser, path, shown, sent }
      }
      const subscription = async (id: string) =>
        (await shop.api.get(`/api/v1/commerce/subscriptions/${id}`, shop.token)).body
      const paid = async (opened: Json) => {
        const { browser, path, sent } = await begin(opened)
        provider.buyerPays(sent.location)
        await browser.get(path)
        const chargeId = String(opened['charge_id'])
        await shop.chargeWhen(chargeId, ({ status }) => status === 'succeeded')
        return chargeId
      }
      return {
        ...shop,
        begin,
        browserAt(baseUrl) {
          const browser = openBrowser({ baseUrl, ca: running.ca })
          ends.push(() => browser.close())
          return browser
        },
        bought: async (more = {}) => paid(await shop.checkout(more)),
        async subscribed(priceId) {
          const { status, body } = await shop.api.post(
            `${PUBLIC}/subscription-checkout-sessions`,
            undefined,
            { price_id: priceId, customer_email: 'ada@example.com' },
          )
          if (status !== 200) throw new Error(JSON.stringify(body))
          return { id: String(body['subscription_id']), chargeId: await paid(body) }
        },
        subscription,
        subscriptionWhen: (id, fits) =>
          until(async () => {
            const row = await subscription(id)
            return fits(row) ? row : undefined
          }, `subscription ${id}`),
        async deliverAll() {
          const statuses: number[] = []
          for (; delivered < provider.events.length; delivered += 1) {
            const event = provider.events[delivered]!
            const status = await provider.deliver(running, event)
            if (status !== 200) throw new Error(`the webhook ${event.type} got a ${status}`)
            statuses.push(status)
          }
          return statuses
        },
        async makeDue(table) {
          await sql(
            running,
            `update ${table} set due_at = now() where due_at is not null and tenant_id = $1`,
            [tenantId],
          )
        },
        async expirePages() {
          await sql(running)`
            update checkout_sessions set expires_at = now() - interval '1 second'
            where tenant_id = ${tenantId}`
          await sql(running)`
            update charges set due_at = now() where tenant_id = ${tenantId} and status = 'pending'`
        },
        untilRow: (list, fits) =>
          until(async () => {
            const { rows } = await shop.api.list(`/api/v1/commerce/${list}`, shop.token)
            return rows.find(fits)
          }, list),
        async books() {
          const [row] = await sql<Json>(
            running,
            `select
               (select coalesce(sum(balance_minor), 0)::text from ledger_accounts
                where tenant_id = $1) as total,
               (select coalesce(sum(balance_minor), 0)::text from ledger_accounts
                where tenant_id = $1 and account = 'clearing' and rail = 'card') as clearing,
               (select count(*)::int from (select entry_id from ledger_lines where tenant_id = $1
                group by entry_id having sum(amount_minor) <> 0) e) as unbalanced`,
            [tenantId],
          )
          return row!
        },
      }
    },
    async close() {
      await Promise.all(ends.map((end) => end()))
    },
  }
}
