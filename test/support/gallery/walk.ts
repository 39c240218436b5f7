/** Visits all hosted pages in a real browser, as users do. */
import { ownDomain } from '../identity/squatting.js'
import type { Window } from '../pages/chromium.js'
import { openBrowser } from '../pages/browser.js'
import { signIn } from '../identity/person.js'
import { relyingParty } from '../oauth/relying-party.js'
import { pathIn } from '../operations/mail.js'
import { plugIn, SECURITY_KEY, SYNCED } from '../identity/virtual-authenticator.js'
import { loginCodes } from '../identity/totp.js'
import type { See } from './pictures.js'
import { answering } from './questions.js'
import type { Scene } from './stage.js'
import { otherWays } from './ways.js'

const TELEPHONE = 'Mozilla/5.0 (Android 14; Mobile; rv:128.0) Gecko/128.0 Firefox/128.0'

const PATIENCE_MS = 120_000

export const PASSWORD = 'seven boats left at noon'
const READY = 'form[data-passkey]:not([hidden])'

/** One walk. `scene` and `window` cannot be used again. */
export async function walkGallery(scene: Scene, window: Window, see: See): Promise<void> {
  const { api, mail, running, workspace, tenantSlug } = scene
  const { page, context } = window
  // The machine may be busy with other tests.
  page.setDefaultTimeout(PATIENCE_MS)
  const unique = tenantSlug.slice(-6)
  const [ada, bob] = [`ada.${unique}@harbour.works`, `bob.${unique}@harbour.works`]
  const { token } = workspace
  const users = '/api/v1/tenant-users'
  await api.call('POST', users, { token, json: { email: ada, display_name: 'Ada Moreno' } })
  // A tenant can set passwords only for users of its domains.
  await ownDomain(api, workspace, bob)
  const json = { email: bob, display_name: 'Bob Carter', password: PASSWORD }
  await api.call('POST', users, { token, json })
  const to = (path: string) => page.goto(new URL(path, running.baseUrl).href)
  const account = () => page.waitForURL('**/auth/account')
  const enter = async (email: string, password = PASSWORD) => {
    await page.fill('#email', email)
    await page.fill('#password', password)
    await page.press('#password', 'Enter')
  }
  const login = async () => {
    await context.clearCookies()
    await to(`/auth/login?tenant_slug=${tenantSlug}`)
    await page.waitForSelector(READY)
  }

  await login()
  await see('sign-in')
  await enter(`unknown.${unique}@harbour.works`, 'wrong password')
  await page.waitForSelector('#error-summary')
  await see('sign-in-wrong')
  for (let status = 200; status !== 429; ) {
    // The page also asks for the options of a passkey.
    const answered = page.waitForResponse(
      (one) => one.request().method() === 'POST' && one.url().endsWith('/auth/login'),
    )
    const loaded = page.waitForEvent('load')
    await enter(`unknown.${unique}@harbour.works`, 'wrong password')
    status = (await answered).status()
    await loaded
  }
  await see('sign-in-locked')

  // An invitation, and sign-in by mail.
  await to(pathIn(await mail.letterTo(ada), '/auth/invitations/'))
  await see('invitation')
  await page.fill('#password', PASSWORD)
  await page.press('#password', 'Enter')
  await account()
  await login()
  await page.fill('#email', ada)
  await page.click('button[formaction="/auth/login/mail"]')
  await page.waitForSelector('#code')
  await see('mail-sent')
  await page.fill('#code', 'BBBB-BBBB')
  await page.press('#code', 'Enter')
  await page.waitForSelector('#error-summary')
  await see('mail-wrong')
  const letter = await mail.letterTo(ada, /\/auth\/magic\//)
  await to(pathIn(letter, '/auth/magic/'))
  await see('mail-link')
  await page.click('main button')
  await account()
  await to(pathIn(letter, '/auth/magic/'))
  await page.waitForSelector('.tenant')
  await see('link-gone')

  // Sign-up.
  const carl = `carl.${unique}@harbour.works`
  await login()
  await page.click('a[href^="/auth/register"]')
  await page.waitForSelector('form[action="/auth/register"]')
  await see('register')
  await page.fill('#email', carl)
  await page.press('#email', 'Enter')
  await page.waitForSelector('[data-register-sent]')
  await see('register-sent')
  await to(pathIn(await mail.letterTo(carl, /\/auth\/register\//), '/auth/register/'))
  await see('register-link')
  await page.fill('#password', PASSWORD)
  await page.press('#password', 'Enter')
  await account()
  await to('/dev/mail')
  await see('dev-mail')
  await page.click('.rows a')
  await page.waitForSelector('[data-mail-text]')
  // Chromium paints a frame when it comes into view.
  await page.locator('iframe').scrollIntoViewIfNeeded()
  await see('dev-mail-message')
  await to(`/auth/register?tenant_id=${workspace.controlPlane}`)
  await see('register-closed')
  await otherWays(scene, window, see)

  // A forgotten password.
  await login()
  await page.click('a[href^="/auth/password/forgot"]')
  await page.waitForSelector('form[action="/auth/password/forgot"]')
  await see('forgot')
  await page.fill('#email', ada)
  await page.press('#email', 'Enter')
  await page.waitForSelector('#email', { state: 'detached' })
  await to(pathIn(await mail.letterTo(ada, /password\/reset/), '/auth/password/reset/'))
  await see('password-reset')
  await page.fill('#password', ada)
  await page.press('#password', 'Enter')
  await page.waitForSelector('#error-summary')
  await see('password-weak')
  await page.fill('#password', PASSWORD)
  await page.press('#password', 'Enter')
  await page.waitForSelector('a.button[href^="/auth/login"]')
  await see('password-done')
  await to(scene.operators.inviteUrl)
  await see('invite')
  const owner = `eve.${unique}@harbour.works`
  await page.fill('#name', 'Eve Stone')
  await page.fill('#email', owner)
  await page.fill('#password', PASSWORD)
  await page.press('#password', 'Enter')
  await page.waitForSelector('[data-page="invite-sent"]')
  await see('invite-sent')
  const letters = '/auth/invites/letters/'
  await to(pathIn(await mail.letterTo(owner, /\/auth\/invites\/letters\//), letters))
  await see('invite-letter')
  // Not from a page of the service: it asks before it redirects to the provider.
  await to(`/auth/sso/start?tenant_id=${workspace.tenantId}&provider=oidc`)
  await see('sso-confirm')

  await throughProvider(scene, window, see, login)

  // An account with only a password, and the set-up of factors.
  await login()
  await enter(bob)
  await account()
  await see('account-new')
  // The provider answers 204, so that the browser stays on the redirecting page.
  const elsewhere = `${scene.resources.home.baseUrl}/**`
  await page.route(elsewhere, (route) => route.fulfill({ status: 204 }))
  await page.click('[data-link="oidc"]', { noWaitAfter: true })
  await page.waitForSelector('[data-page="onward"]')
  await see('provider-away')
  await page.unroute(elsewhere)
  await to('/auth/account')
  await page.click('form[action="/auth/account/email/verification"] button')
  await page.waitForSelector('[data-page="notice"]')
  await see('email-sent')
  await to(pathIn(await mail.letterTo(bob, /\/auth\/email\//), '/auth/email/'))
  await see('email-confirm')
  await page.click('main button')
  await page.waitForSelector('[data-page="notice"]')
  await to('/auth/account/password')
  await see('password-change')
  await to('/auth/account/passkeys/new')
  await page.waitForSelector(READY)
  await see('passkey-new')
  const phone = await plugIn(page, SYNCED)
  await page.fill('#passkey-name', 'Telephone')
  await page.click('form[data-passkey] button')
  await page.waitForSelector('[data-recovery-code]')
  await see('recovery-codes')
  // Step-up with the passkey, to add an authenticator app.
  await to('/auth/account')
  await page.click('form[action="/auth/account/factors"] button')
  await page.waitForURL('**/auth/mfa?flow=*')
  await page.waitForSelector(READY)
  await page.click('form[data-passkey] button')
  await page.waitForURL('**/auth/account/totp/new')
  await see('authenticator-new')
  await phone.remove()

  // A user in another browser, who needs a second factor for the request of an agent.
  const telephone = openBrowser({ baseUrl: running.baseUrl, userAgent: TELEPHONE })
  await signIn(telephone, { tenantSlug, email: ada, password: PASSWORD })
  await telephone.close()
  await context.clearCookies()
  const first = await answering(scene, window, see)
  await first.agentAsks()
  await page.waitForURL('**/auth/login?flow=*')
  await enter(ada)
  await page.waitForURL('**/auth/mfa/enroll?flow=*')
  await page.waitForSelector(READY)
  await see('enrolment')
  const secret = (await page.getAttribute('[data-totp-secret]', 'data-totp-secret'))!
  await page.fill('#code', '12345')
  await page.press('#code', 'Enter')
  await page.waitForSelector('#error-summary')
  await see('enrolment-wrong')
  const codes = loginCodes(secret)
  await page.fill('#code', codes.next())
  await page.press('#code', 'Enter')
  await page.waitForSelector('[data-recovery-code]')
  await page.click('a.button')
  await first.agentAnswered()
  await first.consents()
  await first.offers()
  await first.devices()
  await first.inbox(ada)

  // An account with a provider and a passkey.
  await to('/auth/account')
  await page.click('[data-link="oidc"]')
  await page.waitForURL(`${scene.resources.home.baseUrl}/auth/login*`)
  await enter(scene.resources.person.email, scene.resources.person.password)
  await page.waitForSelector('button[value="allow"], [data-identity]')
  if (page.url().startsWith(scene.resources.home.baseUrl)) await page.click('button[value="allow"]')
  await page.waitForSelector('[data-identity]')
  const party = await relyingParty(running, workspace)
  await to(await first.journeyTo(party, { acr_values: 'aal3' }))
  await page.waitForURL('**/auth/mfa/enroll?flow=*')
  await page.waitForSelector(READY)
  await see('enrolment-device')
  const key = await plugIn(page, SECURITY_KEY)
  await page.fill('#passkey-name', 'Blue security key')
  await page.click('form[data-passkey] button')
  await page.waitForURL((url) => !url.pathname.startsWith('/auth/mfa'))
  await key.remove()
  await to('/auth/account')
  await page.waitForSelector('[data-delegation]')
  await see('account')
  // All walks share one user at the provider, with different accounts.
  await page.click('[data-identity]')
  await page.waitForSelector('[data-identity]', { state: 'detached' })
  await page.click('form[action="/auth/logout"] button')
  await page.waitForSelector('[data-page="logout"]')
  await see('signed-out')
  await login()
  await enter(ada)
  await page.waitForURL('**/auth/mfa?flow=*')
  await page.waitForSelector(READY)
  await see('second-factor')
  await page.fill('#code', '123456')
  await page.press('#code', 'Enter')
  await page.waitForSelector('#error-summary')
  await see('second-factor-wrong')
  await context.clearCookies()
  await first.signOut()
  await see('signed-out-by-application')
  await first.payments()
  await to('/auth/mfa?flow=gone')
  await see('error')
  await to('/auth/nowhere')
  await see('error-unknown')
  await to('/')
  await see('home')
  await to('/errors/rate-limited')
  await see('problem-type')
  await to('/errors')
  await see('problem-types')
  await to('/errors/invalid-grant')
  await see('oauth-error')
}

async function throughProvider(
  { resources, running }: Scene,
  { page }: Window,
  see: See,
  login: () => Promise<void>,
): Promise<void> {
  await login()
  await page.click('[data-upstream="oidc"]')
  await page.waitForURL(`${resources.home.baseUrl}/auth/login*`)
  await page.fill('#email', resources.person.email)
  await page.fill('#password', resources.person.password)
  await page.press('#password', 'Enter')
  // A provider with a session shows no consent page.
  await page.waitForSelector('button[value="allow"], [data-page="error"]')
  if (page.url().startsWith(resources.home.baseUrl)) await page.click('button[value="allow"]')
  await page.waitForURL(`${running.baseUrl}/**`)
  await page.waitForSelector('[data-page="error"]')
  await see('provider-refused')
}
