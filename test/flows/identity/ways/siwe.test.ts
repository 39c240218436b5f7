/** Sign-in with Ethereum (ERC-4361). */
import { setTimeout as sleep } from 'node:timers/promises'
import test, { type ExecutionContext } from 'ava'
import {
  ethereumWallet,
  linkWallet,
  messageFor,
  useWallet,
} from '../../../support/identity/ethereum.js'
import { sql } from '../../../support/storage/sql.js'
import { bootstrapped, enrolledBrowser, signIn } from '../../../support/identity/person.js'
import { openBrowser, type Page, type TestBrowser } from '../../../support/pages/browser.js'
import { sharedService, type TestService } from '../../../support/service.js'

async function stage(
  t: ExecutionContext,
  running: TestService | Promise<TestService> = sharedService('people'),
) {
  return stageOf(t, await running)
}

async function stageOf(t: ExecutionContext, running: TestService) {
  t.teardown(() => running.end())
  const workspace = await bootstrapped(running)
  function browser(): TestBrowser {
    const opened = openBrowser(running)
    return opened
  }
  return {
    running,
    workspace,
    browser,
    async signedIn(as = workspace) {
      const opened = browser()
      await opened.follow(await signIn(opened, as))
      return opened
    },
    async walletPage(opened: TestBrowser, as = workspace): Promise<Page> {
      const query = `tenant_slug=${as.tenantSlug}&return_to=/auth/account`
      const login = await opened.get(`/auth/login?${query}`)
      const path = /href="(\/auth\/login\/ethereum\?flow=[^"]+)"/.exec(login.html)![1]!
      return opened.get(path)
    },
  }
}

test.serial('a linked Ethereum account signs in, and each message works once', async (t) => {
  const at = await stage(t)
  const wallet = ethereumWallet()
  const linked = await linkWallet(await at.signedIn(), wallet)
  t.is(linked.location, '/auth/account', linked.html)

  const browser = at.browser()
  const page = await at.walletPage(browser)
  const { message } = await messageFor(browser, page, wallet.address.toLowerCase())
  const { host, origin } = new URL(at.running.baseUrl)
  const lines = message!.split('\n')
  t.is(lines[0], `${host} wants you to sign in with your Ethereum account:`)
  t.is(lines[1], wallet.address, 'with its checksum')
  t.is(lines[5], `URI: ${origin}/auth/login/ethereum`)
  t.deepEqual(lines.slice(6, 8), ['Version: 1', 'Chain ID: 1'])
  t.regex(lines[8]!, /^Nonce: [0-9a-f]{32}$/)
  t.regex(lines[10]!, /^Expiration Time: \d{4}-/)
  const signature = await wallet.sign(message!)

  const stranger = at.browser()
  const elsewhere = await stranger.submit(await at.walletPage(stranger), {
    message: message!,
    signature,
  })
  t.is(elsewhere.status, 200, 'a message is bound to the browser that requested it')
  // Browsers send CRLF.
  const sent = { message: message!.replaceAll('\n', '\r\n'), signature }
  const answers = await Promise.all([browser.submit(page, sent), browser.submit(page, sent)])
  t.deepEqual(answers.map(({ status }) => status).toSorted(), [200, 303])
  t.is((await browser.submit(page, sent)).status, 200, 'a second use')
  const [session] = await sql(at.running)`
    select amr, level from browser_sessions
    where tenant_id = ${at.workspace.tenantId} and 'pop' = any (amr) and ended_at is null`
  t.deepEqual(session, { amr: ['pop'], level: 1 })
  const used = await sql(at.running)`
    select from account_wallets where address = ${wallet.address.toLowerCase()}
    and last_used_at is not null`
  t.is(used.length, 1)
})

test.serial('every part of the message is checked', async (t) => {
  const at = await stage(t)
  const wallet = ethereumWallet()
  await linkWallet(await at.signedIn(), wallet)
  const browser = at.browser()
  const page = await at.walletPage(browser)
  const { host } = new URL(at.running.baseUrl)
  const forged: Readonly<Record<string, (message: string) => string>> = {
    domain: (message) => message.replace(host, 'evil.example'),
    uri: (message) => message.replace('/auth/login/ethereum', '/auth/account/wallets/new'),
    chain: (message) => message.replace('Chain ID: 1', 'Chain ID: 10'),
    nonce: (message) => message.replace(/Nonce: .{8}/, 'Nonce: 00000000'),
    version: (message) => message.replace('Version: 1', 'Version: 2'),
    statement: (message) => message.replace('no transaction', 'a transaction'),
    'issued at': (message) => message.replace(/Issued At: \d{4}/, 'Issued At: 2019'),
    expiration: (message) => message.replace(/\nExpiration Time: .*/, ''),
    'more text': (message) => `${message}\nSend: everything`,
    resources: (message) => `${message}\nResources:\n- https://evil.example`,
  }
  for (const [part, forge] of Object.entries(forged)) {
    const { message } = await messageFor(browser, page, wallet.address)
    const other = forge(message!)
    t.not(other, message, part)
    const answer = await browser.submit(page, {
      message: other,
      signature: await wallet.sign(other),
    })
    t.is(answer.status, 200, part)
    t.true(answer.html.includes('The signature is not valid'), part)
  }
  const { message } = await messageFor(browser, page, wallet.address)
  const signature = await ethereumWallet().sign(message!)
  t.is((await browser.submit(page, { message: message!, signature })).status, 200, 'another key')
  t.is((await messageFor(browser, page, wallet.address, '0xa')).refused, 'chain')
  t.is((await messageFor(browser, page, wallet.address, 'x')).refused, 'chain')
  t.is((await messageFor(browser, page, '0x12')).refused, 'account')
  t.is((await useWallet(browser, page, wallet)).location, '/auth/account')
})

test.serial('a message expires', async (t) => {
  const at = await stage(t, sharedService('fleeting'))
  const wallet = ethereumWallet()
  await linkWallet(await at.signedIn(), wallet)
  const browser = at.browser()
  const page = await at.walletPage(browser)
  const { message } = await messageFor(browser, page, wallet.address)
  const signature = await wallet.sign(message!)
  const expires = Date.parse(/Expiration Time: (.+)/.exec(message!)![1]!)
  await sleep(Math.max(0, expires - Date.now()) + 1)
  t.is((await browser.submit(page, { message: message!, signature })).status, 200)
})

test.serial('a wallet proves one account, and is never taken over', async (t) => {
  const at = await stage(t)
  const wallet = ethereumWallet()
  const browser = at.browser()
  const unknown = await useWallet(browser, await at.walletPage(browser), wallet)
  t.is(unknown.status, 200)
  t.true(unknown.html.includes('No account here uses this Ethereum account.'))
  const accounts = await sql(at.running)`
    select from account_wallets where address = ${wallet.address.toLowerCase()}`
  t.is(accounts.length, 0, 'an unknown wallet creates nothing')

  const owner = await at.signedIn()
  t.is((await linkWallet(owner, wallet)).status, 303)
  t.is((await linkWallet(owner, wallet)).status, 409, 'linked already')
  const second = await bootstrapped(at.running)
  const other = await at.signedIn(second)
  t.is((await linkWallet(other, wallet)).status, 409, 'it belongs to another account')
  const abroad = at.browser()
  const foreign = await useWallet(abroad, await at.walletPage(abroad, second), wallet)
  t.is(foreign.status, 200, 'the account is no user of this tenant')
  t.true(foreign.html.includes('No account here uses this Ethereum account.'))

  const page = await owner.get('/auth/account')
  const remove = page.forms.find(({ action }) => /\/wallets\/[^/]+\/remove$/.test(action))!
  t.is(
    (
      await other.post(remove.action, {
        csrf_token: (await other.get('/auth/account')).forms.at(-1)!.fields['csrf_token']!,
      })
    ).status,
    404,
    'of another account',
  )
  t.is((await owner.submit(page, {}, remove.action)).location, '/auth/account')
  const late = at.browser()
  const gone = await useWallet(late, await at.walletPage(late), wallet)
  t.true(gone.html.includes('No account here uses this Ethereum account.'))
  const types = await sql<{ type: string }>(at.running)`
    select type from audit_events
    where tenant_id = any (${[at.workspace.tenantId, second.tenantId]})
    and type like 'account.wallet.%' order by type`
  t.deepEqual(
    types.map(({ type }) => type),
    ['account.wallet.linked', 'account.wallet.removed'],
  )
})

test.serial('a second factor is asked for, and a stale sign-in links nothing', async (t) => {
  const at = await stage(t)
  const { browser: owner } = await enrolledBrowser(at.running, at.workspace)
  t.teardown(() => owner.close())
  const wallet = ethereumWallet()
  const page = await owner.get('/auth/account/wallets/new')
  t.is((await useWallet(owner, page, wallet)).location, '/auth/account')
  const browser = at.browser()
  const done = await useWallet(browser, await at.walletPage(browser), wallet)
  t.regex(done.location!, /^\/auth\/mfa\?flow=/)
  await sql(at.running)`
    update browser_sessions set auth_time = auth_time - interval '301 seconds'
    where tenant_id = ${at.workspace.tenantId}`
  t.regex((await owner.get('/auth/account/wallets/new')).location!, /^\/auth\/login\?flow=/)
})

test.serial('without the setting nothing of it exists', async (t) => {
  const at = await stage(t, sharedService('plain'))
  const browser = await at.signedIn()
  t.is((await browser.get('/auth/login/ethereum?flow=x')).status, 404)
  t.false((await browser.get('/auth/account')).html.includes('Ethereum'))
})
