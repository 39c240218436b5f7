/** A merchant over HTTP, with its buyers. */
import { type Api, apiOf, expected, type Json, type Workspace } from '../api.js'
import { openBrowser, type Page } from '../pages/browser.js'
import type { TestService } from '../service.js'

export const COMMERCE = { SVC_COMMERCE__ENABLED: 'true' } as const
export const PUBLIC = '/api/v1/public/commerce'

export interface Shop {
  readonly api: Api
  readonly workspace: Workspace
  readonly token: string
  readonly productId: string
  readonly priceId: string
  /** Creates a resource and returns its record. */
  make(path: string, body: Json): Promise<Json>
  price(more?: Json): Promise<string>
  checkout(more?: Json): Promise<Json>
  /** Acts as a browser: opens the page of a checkout and submits one of its buttons. */
  pay(checkoutUrl: unknown, outcome?: string, email?: string): Promise<Page>
  charge(id: unknown): Promise<Json>
  /** Polls until the charge matches. */
  chargeWhen(id: unknown, fits: (charge: Json) => boolean): Promise<Json>
}

/** @param from the network that registers it. */
export async function openShop(running: TestService, from?: string): Promise<Shop> {
  const api = apiOf(running)
  const workspace = await api.workspace('Tea House', from)
  const { token } = workspace
  const make = (path: string, body: Json) =>
    expected(201, api.post(`/api/v1/commerce/${path}`, token, body))
  const product = await make('products', { name: 'Tea' })
  const productId = String(product['id'])
  const price = async (more: Json = {}) => {
    const body = { product_id: productId, amount_minor: 1999, currency: 'USD', ...more }
    return String((await make('prices', body))['id'])
  }
  const priceId = await price()
  const charge = (id: unknown) =>
    expected(200, api.get(`/api/v1/commerce/charges/${String(id)}`, token))
  return {
    api,
    workspace,
    token,
    productId,
    priceId,
    make,
    price,
    checkout: (more = {}) =>
      expected(
        200,
        api.post(`${PUBLIC}/checkout-sessions`, undefined, { price_id: priceId, ...more }),
      ),
    async pay(checkoutUrl, outcome = 'succeed', email = '') {
      const browser = openBrowser(running)
      const path = new URL(String(checkoutUrl)).pathname
      const shown = await browser.get(path)

      return await browser.submit(shown, { outcome, customer_email: email })
    },
    charge,
    async chargeWhen(id, fits) {
      for (let turn = 0; turn < 500; turn += 1) {
        const found = await charge(id)
        if (fits(found)) return found
        await new Promise((resolve) => setTimeout(resolve, 20))
      }
      throw new Error(`the charge ${String(id)} did not become what was expected`)
    },
  }
}
