/** The pages of the gallery for sign-in by phone, with Ethereum and as a guest. */
import type { Window } from '../pages/chromium.js'
import type { See } from './pictures.js'
import type { Scene } from './stage.js'

export async function otherWays(
  { running, tenantSlug }: Scene,
  { page, context }: Window,
  see: See,
): Promise<void> {
  const login = async () => {
    await context.clearCookies()
    await page.goto(`${running.baseUrl}/auth/login?tenant_slug=${tenantSlug}`)
  }
  await login()
  await page.click('a[href^="/auth/login/phone"]')
  await page.waitForSelector('#phone_number')
  await see('phone')
  // The page is the same for a number without an account.
  await page.fill('#phone_number', '+49 30 12345678')
  await page.press('#phone_number', 'Enter')
  await page.waitForSelector('#code')
  await see('phone-code')
  await login()
  await page.click('a[href^="/auth/login/ethereum"]')
  await page.waitForSelector('form[data-wallet]:not([hidden])')
  await see('ethereum')
  await login()
  await page.click('form[action="/auth/login/guest"] button')
  await page.waitForURL('**/auth/account')
  await see('account-guest')
  await page.click('a[href="/auth/account/email/new"]')
  await page.waitForSelector('#email')
  await see('guest-address')
  await page.fill('#email', `guest.${tenantSlug.slice(-6)}@harbour.works`)
  await page.press('#email', 'Enter')
  await page.waitForSelector('#code')
  await see('guest-code')
  await context.clearCookies()
}
