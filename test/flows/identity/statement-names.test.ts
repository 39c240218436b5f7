/**
 * Requests of different areas share connections. Here each pool has one connection, so the statements of every request meet
 * the prepared statements of all others.
 */
import test from 'ava'
import { apiOf, type Json } from '../../support/api.js'
import { expectStatus, walletAgent, WALLETS } from '../../support/commerce/wallet.js'
import { ethereumWallet, linkWallet } from '../../support/identity/ethereum.js'
import { bootstrapped, signIn } from '../../support/identity/person.js'
import { operatorOfDeployment } from '../../support/oauth/operator.js'
import { openBrowser } from '../../support/pages/browser.js'
import { testService } from '../../support/service.js'

const ROUNDS = 3
const running = await testService({
  environment: {
    ...WALLETS,
    SVC_SIWE__ENABLED: 'true',
    SVC_DATABASE__MIN_CONNECTIONS: '1',
    SVC_DATABASE__MAX_CONNECTIONS: '1',
    SVC_DATABASE__IDENTITY_MAX_CONNECTIONS: '1',
  },
})
const api = apiOf(running)

test.serial('accounts are suspended while users are made', async (t) => {
  const { token } = await api.workspace()
  const operator = await operatorOfDeployment(api)
  for (let round = 0; round < ROUNDS; round += 1) {
    const email = `round-${round}@example.com`
    expectStatus(201, await api.post('/api/v1/tenant-users', token, { email }))
    const { rows } = await api.list(`/api/v1/accounts?email=${email}`, operator.token)
    const account = `/api/v1/accounts/${String(rows[0]?.['id'])}`
    const suspended = expectStatus(200, await api.post(`${account}/suspend`, operator.token))
    t.is(suspended['status'], 'suspended')
    await api.post('/api/v1/tenant-users', token, { email }).gives(409)
  }
})

test.serial('account pages list wallets of people while agents list and make theirs', async (t) => {
  const person = await bootstrapped(running)
  const browser = openBrowser(running)
  await browser.follow(await signIn(browser, person))
  const workspace = await api.workspace()
  for (let round = 0; round < ROUNDS; round += 1) {
    const agent = await walletAgent(api, workspace, {})
    const linked = ethereumWallet()
    t.is((await linkWallet(browser, linked)).location, '/auth/account')
    const listed = await api.list('/api/v1/wallets', workspace.token)
    t.true(listed.rows.some((row: Json) => row['address'] === agent.address))
    const page = await browser.get('/auth/account').gives(200)
    t.true(page.html.toLowerCase().includes(linked.address.toLowerCase()))
  }
})
