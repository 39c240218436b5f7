/**
 * Writes docs/pages/*.png anew: the hosted pages of a running service, in both schemes.
 * `node dist/test/support/take-pictures.js [name...]`, after a page was changed.
 */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import { openChromium } from './chromium.js'
import { sql } from './identity.js'
import { bootstrapped, type Workspace } from './person.js'
import { program } from './program.js'
import { journey, relyingParty } from './relying-party.js'
import { type TestService, testService } from './service.js'
import { smallPng } from './small-png.js'
import { loginCodes } from './totp.js'
import { plugIn, SECURITY_KEY } from './virtual-authenticator.js'

const FOLDER = 'docs/pages'
const BYTES_MAX = 60_000
const wanted = process.argv.slice(2)
const path = program('chromium')
if (path === undefined) throw new Error('chromium is not installed')

const running = await testService({
  transport: 'plain_http',
  environment: {
    SVC_PASSKEY__ENABLED: 'true',
    SVC_USER_SELF_SERVICE__ENABLED: 'true',
    SVC_INVITATIONS__ENABLED: 'true',
  },
})
mkdirSync(FOLDER, { recursive: true })
try {
  for (const colorScheme of ['light', 'dark'] as const) {
    const workspace = await bootstrapped(running)
    await sql(running.db.database, 'update tenants set settings = $2 where id = $1', [
      workspace.tenantId,
      JSON.stringify({ branding: { name: 'Harbour Works', color: '#0b7285' } }),
    ])
    const window = await openChromium(path, { colorScheme })
    await window.page.setViewportSize({ width: 620, height: 560 })
    await walk(window.page, running, workspace, async (name) => {
      if (wanted.length > 0 && !wanted.includes(name)) return
      const file = join(FOLDER, `${name}-${colorScheme}.png`)
      // No caret: whether it is there depends on the moment.
      const picture = smallPng(await window.page.screenshot({ fullPage: true, caret: 'hide' }))
      if (picture.length > BYTES_MAX) throw new Error(`${file} has ${picture.length} bytes`)
      writeFileSync(file, picture)
    })
    await window.close()
  }
} finally {
  await running.end()
}

/** Every page once, in the order in which a person meets them. */
async function walk(
  page: Page,
  { baseUrl }: TestService,
  workspace: Workspace,
  picture: (name: string) => Promise<void>,
): Promise<void> {
  const to = (where: string) => page.goto(`${baseUrl}${where}`)
  const account = () => page.waitForURL('**/auth/account')
  const login = `/auth/login?tenant_slug=${workspace.tenantSlug}`
  const party = await relyingParty(running, workspace)
  const password = async () => {
    await page.fill('#email', workspace.email)
    await page.fill('#password', workspace.password)
    await page.press('#password', 'Enter')
  }

  await to(login)
  await page.waitForSelector('form[data-passkey]:not([hidden])')
  await picture('sign-in')
  await page.fill('#email', workspace.email)
  await page.fill('#password', 'wrong password')
  await page.press('#password', 'Enter')
  await page.waitForSelector('#error-summary')
  await picture('sign-in-wrong')
  await to('/auth/password/forgot?tenant_slug=' + workspace.tenantSlug)
  await picture('forgot-password')
  await to(login)
  await password()
  await account()
  await picture('account')

  await page.goto((await journey(party)).url.href)
  await page.waitForSelector('button[value=allow]')
  await picture('consent')
  await to('/oauth/device/verify')
  await picture('device')

  await to('/auth/account')
  await page.click('form[action="/auth/account/factors"] button')
  await page.waitForURL('**/auth/mfa/enroll?flow=*')
  await picture('enrolment')
  const secret = (await page.getAttribute('[data-totp-secret]', 'data-totp-secret'))!
  const codes = loginCodes(secret)
  await page.fill('#code', codes.next())
  await page.press('#code', 'Enter')
  await page.waitForSelector('[data-recovery-code]')
  await picture('recovery-codes')
  await page.click('a.button')
  await account()
  await page.click('a[href="/auth/account/passkeys/new"]')
  await page.waitForSelector('form[data-passkey]:not([hidden])')
  await picture('passkey-new')
  const key = await plugIn(page, SECURITY_KEY)
  await page.fill('#passkey-name', 'Blue security key')
  await page.click('form[data-passkey] button')
  await account()
  await picture('account-protected')
  await key.remove()

  await page.click('form[action="/auth/logout"] button')
  await page.waitForSelector('a.button')
  await picture('signed-out')
  await to(login)
  await password()
  await page.waitForURL('**/auth/mfa?flow=*')
  await page.waitForSelector('form[data-passkey]:not([hidden])')
  await picture('second-factor')
  await page.goto((await journey(party, { acr_values: 'aal3' })).url.href)
  await page.waitForURL('**/auth/**')
  await picture('step-up')

  await page.goto(workspace.inviteUrl)
  await picture('invite')
  await to('/auth/mfa?flow=gone')
  await picture('error')
}
