/** Ways to sign in besides the password, and the second factor by risk, in a real browser: keyboard, accessibility checks. */
import test, { type ExecutionContext } from 'ava'
import { apiOf } from '../../../support/api.js'
import { mailbox } from '../../../support/identity/addresses.js'
import { ethereumWallet } from '../../../support/identity/ethereum.js'
import { bootstrapped, signIn } from '../../../support/identity/person.js'
import { codeOf, openTextServer } from '../../../support/identity/text-provider.js'
import { codeIn, sharedMail } from '../../../support/operations/letters.js'
import { openBrowser } from '../../../support/pages/browser.js'
import { openChromium } from '../../../support/pages/chromium.js'
import { looksRight } from '../../../support/pages/visual-checks.js'
import { PROFILES } from '../../../support/fleet/profiles.js'
import { testWithProgram } from '../../../support/service/programs.js'
import { sharedService, testService, type TestService } from '../../../support/service.js'
import { sql } from '../../../support/storage/sql.js'

const CODE = /[A-Z]{4}-[A-Z]{4}/
const mail = await sharedMail()
const texts = await openTextServer()
test.after.always(() => texts.close())

async function stage(t: ExecutionContext, running: TestService) {
  const api = apiOf(running)
  t.teardown(() => api.end())
  const workspace = await bootstrapped(running)
  return { running, api, workspace, number: '+493012345678', texts, mail }
}

testWithProgram(
  'chromium',
  'a person adds a phone number and signs in with it',
  async (t, path) => {
    t.timeout(120_000)
    const at = await stage(t, await testService({ environment: texts.http }))
    const { api } = at
    const { page, context, close, complaints } = await openChromium(path)
    t.teardown(close)
    const { keyboard } = page
    const url = (own: string) => `${at.running.baseUrl}${own}`
    const login = url(`/auth/login?tenant_slug=${at.workspace.tenantSlug}`)
    await page.goto(login)
    await page.fill('#email', at.workspace.email)
    await page.fill('#password', at.workspace.password)
    await keyboard.press('Enter')
    await page.waitForURL('**/auth/account')
    await page.click('a[href="/auth/account/phone"]')
    await looksRight(t, page, 'phone-own')
    await page.focus('#phone_number')
    await keyboard.type(at.number.replace('+4930', '+49 30 '))
    await keyboard.press('Enter')
    await page.waitForSelector('#code')
    await looksRight(t, page, 'phone-own-code')
    await page.fill('#code', codeOf(await at.texts.textTo(at.number)))
    await keyboard.press('Enter')
    await page.waitForURL('**/auth/account')
    await looksRight(t, page, 'phone-account')

    await context.clearCookies()
    await page.goto(login)
    await page.click('a[href^="/auth/login/phone"]')
    await looksRight(t, page, 'phone-sign-in')
    await page.focus('#phone_number')
    await keyboard.type('1')
    await keyboard.press('Enter')
    await page.waitForSelector('#error-summary')
    await looksRight(t, page, 'phone-sign-in-invalid')
    await page.fill('#phone_number', at.number)
    await keyboard.press('Enter')
    await page.waitForURL('**/auth/login/phone/code?flow=*')
    await looksRight(t, page, 'phone-code')
    await page.focus('#code')
    await keyboard.type(codeOf(await at.texts.textTo(at.number, 1)))
    await keyboard.press('Enter')
    await page.waitForURL('**/auth/account')
    t.deepEqual(complaints, [], 'the content security policy blocked nothing')
    const { body } = await api.get('/api/v1/capabilities')
    const names = body['capabilities'] as unknown as string[]
    t.true(names.includes('phone') && names.includes('sign_in.sms'))
  },
)

testWithProgram('chromium', 'a person links a wallet and signs in with it', async (t, path) => {
  t.timeout(120_000)
  const at = await stage(t, await sharedService('people'))
  const { api } = at
  const wallet = ethereumWallet()
  const { page, context, close, complaints } = await openChromium(path)
  t.teardown(close)
  const url = (own: string) => `${at.running.baseUrl}${own}`
  const login = url(`/auth/login?tenant_slug=${at.workspace.tenantSlug}`)
  await page.goto(login)
  await page.fill('#email', at.workspace.email)
  await page.fill('#password', at.workspace.password)
  await page.keyboard.press('Enter')
  await page.waitForURL('**/auth/account')
  await page.click('a[href="/auth/account/wallets/new"]')
  await page.waitForSelector('form[data-wallet]')
  await looksRight(t, page, 'wallet-new')
  await page.click('form[data-wallet] button')
  await page.waitForSelector('[role=status]:not(:empty)')
  t.regex(await page.innerText('[role=status]'), /no Ethereum wallet/)

  // An injected provider (EIP-1193), whose key is outside of the page.
  await context.exposeFunction('walletSigns', (hex: string) =>
    wallet.sign(Buffer.from(hex.slice(2), 'hex').toString('utf8')),
  )
  await context.addInitScript(`window.ethereum = {
    declines: false,
    request({ method, params }) {
      if (method === 'eth_requestAccounts') return Promise.resolve(['${wallet.address}'])
      if (method === 'eth_chainId') return Promise.resolve('0x1')
      if (window.ethereum.declines) return Promise.reject(Object.assign(new Error('no'), { code: 4001 }))
      return window.walletSigns(params[0])
    },
  }`)
  await page.reload()
  await page.evaluate('window.ethereum.declines = true')
  await page.click('form[data-wallet] button')
  await page.waitForSelector('[role=status]:not(:empty)')
  t.regex(await page.innerText('[role=status]'), /You declined/)
  await page.evaluate('window.ethereum.declines = false')
  await page.focus('form[data-wallet] button')
  await page.keyboard.press('Enter')
  await page.waitForURL('**/auth/account')
  await looksRight(t, page, 'wallet-account')

  await context.clearCookies()
  await page.goto(login)
  await page.click('a[href^="/auth/login/ethereum"]')
  await page.waitForSelector('form[data-wallet]')
  await looksRight(t, page, 'wallet-sign-in')
  await page.click('form[data-wallet] button')
  await page.waitForURL('**/auth/account')
  t.deepEqual(complaints, [], 'the content security policy blocked nothing')
  const { body } = await api.get('/api/v1/capabilities')
  t.true((body['capabilities'] as unknown as string[]).includes('sign_in.siwe'))
})

testWithProgram('chromium', 'a guest keeps the account', async (t, path) => {
  t.timeout(120_000)
  const at = await stage(t, await sharedService('people'))
  await sql(at.running)`
    update tenants set settings = ${JSON.stringify({ anonymous: { enabled: true } })}
    where id = ${at.workspace.tenantId}`
  const { page, close, complaints } = await openChromium(path)
  t.teardown(close)
  const { keyboard } = page
  const email = mailbox('ada-by-keyboard')
  await page.goto(`${at.running.baseUrl}/auth/login?tenant_slug=${at.workspace.tenantSlug}`)
  await looksRight(t, page, 'guest-sign-in')
  await page.focus('form[action="/auth/login/guest"] button')
  await keyboard.press('Enter')
  await page.waitForURL('**/auth/account')
  await looksRight(t, page, 'guest-account')
  await page.click('a[href="/auth/account/email/new"]')
  await looksRight(t, page, 'guest-address')
  await page.focus('#email')
  await keyboard.type(email)
  await keyboard.press('Enter')
  await page.waitForSelector('#code')
  await looksRight(t, page, 'guest-code')
  await page.focus('#code')
  await keyboard.type(codeIn(await at.mail.letterTo(email)))
  await keyboard.press('Enter')
  await page.waitForURL('**/auth/account')
  t.true((await page.content()).includes(email))
  t.deepEqual(complaints, [], 'the content security policy blocked nothing')
  const { body } = await at.api.get('/api/v1/capabilities')
  t.true((body['capabilities'] as unknown as string[]).includes('sign_in.anonymous'))
})

testWithProgram('chromium', 'a person confirms a sign-in from a new browser', async (t, path) => {
  t.timeout(120_000)
  const environment = { ...PROFILES.people, ...mail.environment, SVC_ADAPTIVE_MFA__ENABLED: 'true' }
  const at = await stage(t, await testService({ environment }))
  const { api } = at
  const email = mailbox('ada')
  // The fixture user gets a mailbox that was proved before.
  await sql(
    at.running.db.database,
    'update accounts set email = $2, email_key = $2, email_verified = true where email = $1',
    [at.workspace.email, email],
  )
  const elsewhere = openBrowser(at.running)
  t.teardown(() => elsewhere.close())
  await signIn(elsewhere, { ...at.workspace, email })
  const { page, close, complaints } = await openChromium(path)
  t.teardown(close)
  await page.goto(`${at.running.baseUrl}/auth/login?tenant_slug=${at.workspace.tenantSlug}`)
  await page.fill('#email', email)
  await page.fill('#password', at.workspace.password)
  await page.keyboard.press('Enter')
  await page.waitForURL('**/auth/mfa?flow=*')
  await looksRight(t, page, 'confirm-sign-in')
  await page.focus('#code')
  await page.keyboard.type(codeIn(await at.mail.letterTo(email, CODE)))
  await page.keyboard.press('Enter')
  await page.waitForURL('**/auth/account')
  t.deepEqual(complaints, [], 'the content security policy blocked nothing')
  const { body } = await api.get('/api/v1/capabilities')
  t.true((body['capabilities'] as unknown as string[]).includes('sign_in.adaptive_mfa'))
})
