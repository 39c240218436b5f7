/** Tenants that sell by x402 and by transfers on the chain. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Json } from '../api.js'
import { openBrowser } from '../pages/browser.js'
import { sql } from '../storage/sql.js'
import { NETWORK, newAccount } from './chain.js'
import { openShop } from './shop.js'
import type { Shop } from './x402-shop.js'

/** A production tenant with its own payee address. */
export async function sellerAt(at: Shop, environment = 'production') {
  const tenant = await openShop(at.running)
  const payTo = newAccount().address
  await at.receive(payTo)
  const { status, body } = await tenant.api.patch('/api/v1/tenant/settings', tenant.token, {
    x402_pay_to: { [NETWORK]: payTo },
  })
  if (status !== 200) throw new Error(JSON.stringify(body))
  await sql(at.running)`
    update tenants set environment = ${environment} where id = ${tenant.workspace.tenantId}`
  const events = async (chargeId: unknown) =>
    (
      await sql<{ type: string }>(at.running)`
        select type from all_events where tenant_id = ${tenant.workspace.tenantId}
        and data ->> 'charge_id' = ${String(chargeId)}
        order by sequence`
    ).map(({ type }) => type)
  const page = async (session: Json) => {
    return openBrowser(at.running).get(new URL(String(session['checkout_url'])).pathname)
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
