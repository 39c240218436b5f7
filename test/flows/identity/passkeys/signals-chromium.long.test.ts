/** Passkeys in Chromium: the page after a sign-in, and what a virtual authenticator does with the signals of pages. */
import { openChromium } from '../../../support/pages/chromium.js'
import { bootstrapped } from '../../../support/identity/person.js'
import { plugIn, SYNCED } from '../../../support/identity/virtual-authenticator.js'
import { testWithProgram } from '../../../support/service/programs.js'
import { sharedService } from '../../../support/service.js'
import { sql } from '../../../support/storage/sql.js'

testWithProgram(
  'chromium',
  'a removed and an unknown passkey disappear from the authenticator, and the page after a sign-in leads on',
  async (t, path) => {
    t.timeout(180_000)
    const running = await sharedService('people')
    t.teardown(() => running.end())
    const workspace = await bootstrapped(running)
    const { page, complaints, close } = await openChromium(path)
    t.teardown(close)
    const key = await plugIn(page, SYNCED)
    const seen: string[] = []
    page.on('framenavigated', (frame) => seen.push(new URL(frame.url()).pathname))
    const signInPage = `${running.baseUrl}/auth/login?tenant_slug=${workspace.tenantSlug}`
    const signIn = async () => {
      await page.goto(signInPage)
      await page.waitForFunction('document.querySelector("[name=passkey_sync]").value !== ""')
      await page.fill('#email', workspace.email)
      await page.fill('#password', workspace.password)
      await page.press('#password', 'Enter')
      await page.waitForURL('**/auth/account')
    }
    const create = async () => {
      await page.goto(`${running.baseUrl}/auth/account/passkeys/new`)
      await page.click('form[data-passkey] button')
      await page.waitForSelector('[data-recovery-code]')
      await page.goto(`${running.baseUrl}/auth/account`)
    }
    const count = async () => (await key.credentials()).length
    const becomes = async (wanted: number) => {
      for (let tries = 0; tries < 50 && (await count()) !== wanted; tries += 1)
        await page.waitForTimeout(100)
      t.is(await count(), wanted)
    }

    await signIn()
    t.true(seen.includes('/auth/passkeys/sync'), seen.join(' '))
    t.log(`the browser created ${await count()} passkeys without being asked`)
    await sql(running)`
      delete from passkeys where account_id in
        (select account_id from tenant_users where tenant_id = ${workspace.tenantId})`
    await page.goto(`${running.baseUrl}/auth/account`)
    await becomes(0)

    const signOut = async () => {
      await page.click('form[action="/auth/logout"] button')
      await page.waitForSelector('a.button[href^="/auth/login"]')
    }
    await create()
    t.is(await count(), 1)
    await signOut()
    // The authenticator answers the conditional request of the page without interaction.
    await page.goto(signInPage)
    await page.waitForURL('**/auth/account')
    await page.click('[data-passkey-id]')
    await page.waitForURL('**/auth/account')
    await becomes(0)

    await create()
    t.is(await count(), 1)
    await signOut()
    await sql(running)`
      delete from passkeys where account_id in
        (select account_id from tenant_users where tenant_id = ${workspace.tenantId})`
    // Now the authenticator answers with a passkey that no account has.
    await page.goto(signInPage)
    await page.waitForSelector('#error-summary')
    await becomes(0)
    t.deepEqual(complaints, [], 'the content security policy blocked nothing')
  },
)
