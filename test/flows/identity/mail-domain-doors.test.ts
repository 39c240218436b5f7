/** An address in letters is the one in A-labels where people, merchants and applications name it. docs/reference/identity.md */
import { domainToASCII } from 'node:url'
import test from 'ava'
import { apiOf } from '../../support/api.js'
import { openShop } from '../../support/commerce/shop.js'
import { mailDomain } from '../../support/identity/addresses.js'
import { bootstrapped, signIn } from '../../support/identity/person.js'
import { ownDomain } from '../../support/identity/squatting.js'
import { ciba, CIBA_GRANT } from '../../support/oauth/ciba.js'
import { relyingParty } from '../../support/oauth/relying-party.js'
import { openBrowser } from '../../support/pages/browser.js'
import { sharedService } from '../../support/service.js'
import { sql } from '../../support/storage/sql.js'

const PASSWORD = 'seven boats left at noon'

/** Makes what the stored address names. The result names it by a spelling, and returns the address that was found. */
type Door = (stored: string) => Promise<(spelling: string) => Promise<unknown>>

const DOORS: Readonly<Record<string, Door>> = {
  async 'check-sso'(stored) {
    const api = apiOf(await sharedService('enterprise'))
    const workspace = await api.workspace()
    const provider = { name: 'Acme', issuer: 'https://id.example.org', client_id: 'a' }
    const json = { ...provider, client_secret: 'a secret' }
    const made = await api.post('/api/v1/sso/providers', workspace.token, json).gives(201)
    await ownDomain(api, workspace, stored, String(made.body['id']))
    return async (email) => {
      const asked = { email, tenant_id: workspace.tenantId }
      const { body } = await api.call('POST', '/auth/check-sso', { json: asked }).gives(200)
      const url = new URL(String(body['authorize_url'] ?? 'urn:none'))
      return url.searchParams.get('login_hint')
    }
  },
  async 'login_hint of CIBA'(stored) {
    const running = await sharedService('clients')
    const api = apiOf(running)
    const workspace = await api.workspace()
    await ownDomain(api, workspace, stored)
    const json = { email: stored, password: PASSWORD }
    await api.post('/api/v1/tenant-users', workspace.token, json).gives(201)
    const party = await relyingParty(running, workspace, { grantTypes: [CIBA_GRANT] })
    return async (email) => {
      const { body } = await ciba(running, party).start({ login_hint: email })
      const code = Buffer.from(String(body['auth_req_id']))
      const [row] = await sql<{ email: string }>(running)`
        select a.email from backchannel_requests r join tenant_users u on u.tenant_id = r.tenant_id
        and u.sub = r.subject join accounts a on a.id = u.account_id
        where r.code_sha256 = sha256(${code}::bytea)`
      return row?.email
    }
  },
  async 'customer_email of a checkout'() {
    const shop = await openShop(await sharedService('commerce'))
    return async (email) => {
      const session = await shop.checkout({ customer_email: email })
      return (await shop.charge(session['charge_id']))['customer_email']
    }
  },
  async 'the page of a checkout'() {
    const shop = await openShop(await sharedService('commerce'))
    return async (email) => {
      const session = await shop.checkout()
      await shop.pay(session['checkout_url'], 'succeed', email)
      return (await shop.charge(session['charge_id']))['customer_email']
    }
  },
  async 'an operator invite'() {
    const running = await sharedService('people')
    return async (email) => {
      const { inviteUrl, tenantId, tenantSlug } = await bootstrapped(running)
      const browser = openBrowser(running)
      const form = await browser.get(new URL(inviteUrl).pathname)
      const accepted = await browser.submit(form, { name: 'Anna', email, password: PASSWORD })
      const { location } = await signIn(openBrowser(running), {
        tenantSlug,
        email,
        password: PASSWORD,
      })
      const [row] = await sql<{ email: string }>(running)`
        select a.email from accounts a join tenant_users u on u.account_id = a.id
        where u.tenant_id = ${tenantId} and not u.fixture`
      return location === '/auth/account' ? row?.email : accepted.html
    }
  },
}

for (const [name, door] of Object.entries(DOORS))
  test(`${name} takes each spelling for the same address`, async (t) => {
    // Invites for a reserved name send no mail.
    const letters = `bücher-${mailDomain()}${name.endsWith('invite') ? '.test' : ''}`
    const stored = `anna@${domainToASCII(letters)}`
    const find = await door(stored)
    for (const spelling of [stored, `anna@${letters}`, `anna@${letters.toUpperCase()}`])
      t.is(await find(spelling), stored, spelling)
  })
