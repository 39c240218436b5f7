/** The consent pages of the gallery: for agents, applications and shops. */
import * as oidc from 'openid-client'
import { ask, type Asked } from '../agents/delegation.js'
import type { Window } from '../pages/chromium.js'
import { ciba, CIBA_GRANT, INBOX } from '../oauth/ciba.js'
import { journey, type RelyingParty, relyingParty } from '../oauth/relying-party.js'
import { issuing, offer } from '../oauth/wallet.js'
import type { See } from './pictures.js'
import type { Scene } from './stage.js'

const DEVICE_GRANT = 'urn:ietf:params:oauth:grant-type:device_code'
const PAYMENT = [
  {
    type: 'payment',
    actions: ['initiate'],
    instructedAmount: { currency: 'EUR', amount: '123.50' },
    creditorName: 'Merchant A',
  },
]

export async function answering(scene: Scene, { page, context }: Window, see: See) {
  const { api, running, workspace, shop } = scene
  const to = (path: string) => page.goto(new URL(path, running.baseUrl).href)
  const begin = (scope: string): Promise<Asked> => ask(api, workspace.token, { scope })
  const first = await begin('openid vault:list vault:read users:manage')
  const journeyTo = async (party: RelyingParty, more: Readonly<Record<string, string>>) =>
    (await journey(party, more)).url.href

  let idToken = ''
  /** The claims of a user who consented before. */
  const idTokenOf = async (party: RelyingParty) => {
    const begun = await journey(party, { scope: 'openid profile email offline_access' })
    const answer = await context.request.get(begun.url.href, { maxRedirects: 0 })
    const callback = new URL(answer.headers()['location']!)
    const tokens = await oidc.authorizationCodeGrant(party.config, callback, begun.checks)
    return tokens.id_token!
  }

  return {
    journeyTo,

    signOut: () => to(`/oauth/end-session?id_token_hint=${idToken}`),

    agentAsks: () => to(`/device/delegation/${first.userCode}`),

    async agentAnswered() {
      await page.waitForURL(`**/device/delegation/${first.userCode}`)
      await see('delegation')
      await page.click('form[action$="/approve"] button')
      await page.waitForSelector('[data-decision="approved"]')
      await see('delegation-approved')
      const second = await begin('openid')
      await to(`/device/delegation/${second.userCode}`)
      await page.click('form[action$="/deny"] button')
      await page.waitForSelector('[data-decision="denied"]')
      await see('delegation-denied')
    },

    async consents() {
      const party = await relyingParty(running, workspace, {
        name: 'Tide Tables',
        authorizationDetailsTypes: ['payment'],
      })
      const asked = await journey(party, { scope: 'openid profile email offline_access' })
      await page.goto(asked.url.href)
      await page.waitForSelector('button[value=allow]')
      const form = await page.evaluate('document.querySelector("form").outerHTML')
      await see('consent')
      // The application does not exist, so its response is simulated.
      await page.route('https://app.example/**', (route) => route.fulfill({ body: 'back' }))
      await page.click('button[value=allow]')
      await page.waitForURL('https://app.example/**')
      await oidc.authorizationCodeGrant(party.config, new URL(page.url()), asked.checks)
      await to('/')
      const again = `document.body.innerHTML = ${JSON.stringify(form)}`
      await page.evaluate(`${again}; document.querySelector('button[value=allow]').click()`)
      await page.waitForSelector('[data-answered-before]')
      await see('answered-before')
      idToken = await idTokenOf(party)
      await page.goto(await journeyTo(party, { prompt: 'select_account' }))
      await page.waitForSelector('[data-account]')
      await see('accounts')
      await page.goto(await journeyTo(party, { authorization_details: JSON.stringify(PAYMENT) }))
      await page.waitForSelector('button[value=allow]')
      await see('consent-details')
      const away = new URL(await journeyTo(party, {}))
      away.searchParams.set('redirect_uri', 'https://elsewhere.example/')
      await page.goto(away.href)
      await see('authorize-refused')
    },

    async offers() {
      const tenant = await issuing(api, workspace)
      const { body } = await offer(api, tenant, { tx_code: true })
      await page.goto(String(body['page_url']))
      await page.waitForSelector('[data-deep-link]')
      await see('credential-offer')
    },

    async devices() {
      const { clientId } = await relyingParty(running, workspace, {
        clientType: 'public',
        grantTypes: [DEVICE_GRANT],
        name: 'Harbour TV',
      })
      const connect = async () => {
        const body = new URLSearchParams({ client_id: clientId, scope: 'openid profile email' })
        const answer = await fetch(`${running.baseUrl}/oauth/device/code`, { method: 'POST', body })
        return (await answer.json()) as Record<string, string>
      }
      const [kept, refused] = [await connect(), await connect()]
      await page.goto(kept['verification_uri']!)
      await see('device')
      await page.fill('#user_code', 'WRNG-CDXX')
      await page.press('#user_code', 'Enter')
      await page.waitForSelector('#error-summary')
      await see('device-unknown')
      await page.goto(kept['verification_uri_complete']!)
      await page.waitForSelector('[data-user-code]')
      await see('device-confirm')
      await page.click('button[value="approve"]')
      await page.waitForSelector('[data-decided="approved"]')
      await see('device-approved')
      await page.goto(refused['verification_uri_complete']!)
      await page.click('button[value="deny"]')
      await page.waitForSelector('[data-decided="denied"]')
      await see('device-denied')
    },

    async inbox(email: string) {
      const bank = await relyingParty(running, workspace, {
        grantTypes: [CIBA_GRANT],
        name: 'Harbour Bank',
      })
      const { start } = ciba(running, bank)
      for (const binding_message of ['Transfer 4711', 'Order 0815'])
        await start({ login_hint: email, scope: 'openid profile', binding_message })
      await to(INBOX)
      await page.waitForSelector('[data-request]')
      await see('inbox')
      await page.click('button[value="approve"]')
      await page.waitForSelector('[data-decided="approved"]')
      await see('inbox-approved')
      await page.click(`a[href="${INBOX}"]`)
      await page.click('button[value="deny"]')
      await page.waitForSelector('[data-decided="denied"]')
      await to(INBOX)
      await page.waitForSelector('[data-inbox-empty]')
      await see('inbox-empty')
    },

    async payments() {
      await context.clearCookies()
      const [bought, declined] = [await shop.checkout({ quantity: 2 }), await shop.checkout()]
      const link = await shop.make('payment-links', { price_id: shop.priceId, quantity: 2 })
      await page.goto(String(link['url']))
      await see('pay-link')
      await page.goto(String(bought['checkout_url']))
      await see('pay')
      await page.click('button[value=succeed]')
      await page.waitForSelector('[data-state=succeeded]')
      await see('paid')
      await page.goto(String(declined['checkout_url']))
      await page.click('button[value=decline]')
      await page.waitForSelector('[data-state=failed]')
      await see('declined')
    },
  }
}
