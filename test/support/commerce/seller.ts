/** Tenants that sell by x402 and by transfers on the chain. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Json } from '../api.js'
import { openBrowser } from '../pages/browser.js'
import { sql } from '../storage/sql.js'
import { NETWORK, newAccount } from './chain.js'
import { openShop } from './shop.js'
import type { Shop } from './x402-shop.js'

/** A production tenant with a payee address of its own. */
export async function sellerAt(at: Shop, environment = 'production') {
  const tenant = await openShop(at.running)
  const payTo = newAccount().address
  await at.receive(payTo)
  const { status, body } = await tenant.api.call('PATCH', '/api/v1/tenant/settings', {
    token: tenant.token,
    json: { x402_pay_to: { [NETWORK]: payTo } },
  })
  if (status !== 200) throw new Error(JSON.stringify(body))
  await sql(at.running.db.database, 'update tenants set environment = $2 where id = $1', [
    tenant.workspace.tenantId,
    environment,
  ])
  const events = async (chargeId: unknown) =>
    (
      await sql<{ type: string }>(
        at.running.db.database,
        `select type from all_events where tenant_id = $1 and data ->> 'charge_id' = $2
         order by sequence`,
        [tenant.workspace.tenantId, String(chargeId)],
      )
    ).map(({ type }) => type)
  const page = async (session: Json) => {
    const browser = openBrowser(at.running)
    const shown = await browser.get(new URL(String(session['checkout_url'])).pathname)
    await browser.close()
    return shown
  }
  return { ...tenant, payTo, events, page }
}

export async function until<T>(look: () => Promise<T>, fits: (found: T) => boolean): Promise<T> {
  for (let turn = 0; turn < 300; turn += 1) {
    const found = await look()
    if (fits(found)) return found
    await sleep(100)
  }
  return look()
}
