/** Profile claims of people (OpenID Connect Core section 5.1), read with openid-client. */
import test from 'ava'
import * as oidc from 'openid-client'
import type { Json } from '../../support/api.js'
import { openBrowser, type TestBrowser } from '../../support/pages/browser.js'
import { sql } from '../../support/storage/sql.js'
import { signIn } from '../../support/identity/person.js'
import { authorized, relyingParty } from '../../support/oauth/relying-party.js'
import { sharedApi } from '../../support/service.js'

const { api, running } = await sharedApi('plain')

const USERS = '/api/v1/tenant-users'
const PROFILE = '/auth/account/profile'
const ADA = {
  name: 'Ada King',
  given_name: 'Ada',
  family_name: 'Lovelace',
  picture: 'https://images.example.com/ada.png?size=2',
  locale: 'de-DE',
  zoneinfo: 'Europe/Berlin',
  phone_number: '+493012345678',
}
const SCOPES = ['openid', 'profile', 'email', 'phone', 'offline_access']

async function workspace() {
  const own = await api.workspace()
  const fixture = own.body['fixture_end_user'] as { email: string; password: string }
  const person = { ...fixture, tenantId: own.tenantId, tenantSlug: String(own.body['tenant_slug']) }
  const { rows } = await api.list(`${USERS}?email=${fixture.email}`, own.token)
  const path = `${USERS}/${String(rows[0]!['id'])}`
  return {
    ...own,
    person,
    path,
    patch: (json: Json) => api.patch(path, own.token, json),
  }
}
type House = Awaited<ReturnType<typeof workspace>>

/** Userinfo and the ID token of a new sign-in. */
async function seen({ person }: House, parameters: Record<string, string> = {}) {
  const party = await relyingParty(running, person, { scopes: SCOPES })
  const { tokens, claims } = await party.signedIn(person, parameters)
  return { info: await oidc.fetchUserInfo(party.config, tokens.access_token, claims.sub), claims }
}

async function accountOf({ person }: House) {
  const browser = openBrowser(running)
  return { browser, page: await browser.follow(await signIn(browser, person)) }
}

const save = async (browser: TestBrowser, fields: Record<string, string>) =>
  browser.submit(await browser.get('/auth/account'), fields, PROFILE)

async function recordsOf(tenantId: string, type: string) {
  const rows = await sql<{ data: Json }>(running)`
    select data from audit_events where tenant_id = ${tenantId} and type = ${type}
    order by sequence`
  return rows.map(({ data }) => data)
}

test('a person fills in the account page, and applications read it by scope', async (t) => {
  const house = await workspace()
  const { browser } = await accountOf(house)
  const before = await seen(house, { scope: 'openid profile phone' })
  t.is(before.info.given_name, undefined)
  t.is(before.info.phone_number_verified, undefined)
  const typed = {
    ...ADA,
    locale: 'de-de',
    zoneinfo: 'europe/berlin',
    phone_number: '+49 (30) 1234-5678',
  }
  const saved = await save(browser, typed)
  t.is(saved.status, 303, saved.html)
  t.is(saved.location, '/auth/account')
  const page = await browser.follow(saved)
  t.true(page.html.includes('<bdi data-claim="phone_number">+493012345678</bdi>'))
  t.regex(page.html, /Not confirmed/)

  const { info } = await seen(house, { scope: 'openid profile phone' })
  t.like(info, { ...ADA, phone_number_verified: false })
  t.is(info.email, undefined)
  t.true(Number(info.updated_at) >= Number(before.info.updated_at))
  const { info: profile } = await seen(house, { scope: 'openid profile' })
  t.is(profile.zoneinfo, 'Europe/Berlin')
  t.is(profile.phone_number, undefined)
  const { info: bare } = await seen(house, { scope: 'openid phone' })
  t.like(bare, { phone_number: ADA.phone_number, given_name: undefined })

  const records = await recordsOf(house.tenantId, 'account.profile.updated')
  t.is(records.length, 1)
  t.is(records[0]!['changed'], 'name given_name family_name picture locale zoneinfo phone_number')
  t.false(JSON.stringify(records).includes('Lovelace'))
  // The same values again change nothing, and write no record.
  t.is((await save(browser, typed)).status, 303)
  t.is((await recordsOf(house.tenantId, 'account.profile.updated')).length, 1)
  // Empty fields remove the claims.
  t.is((await save(browser, { ...ADA, phone_number: '', picture: '' })).status, 303)
  const { info: less } = await seen(house, { scope: 'openid profile phone' })
  t.like(less, { given_name: 'Ada', picture: undefined, phone_number_verified: undefined })
})

test('the claims parameter puts single claims into the ID token and userinfo', async (t) => {
  const house = await workspace()
  t.is(
    (await house.patch({ given_name: 'Grace', phone_number: '+12025550123', locale: 'en' })).status,
    200,
  )
  const claims = JSON.stringify({
    id_token: { given_name: null, phone_number: { essential: true }, zoneinfo: null },
    userinfo: { phone_number_verified: null },
  })
  const told = await seen(house, { scope: 'openid', claims })
  t.like(told.claims, { given_name: 'Grace', phone_number: '+12025550123' })
  t.false('zoneinfo' in told.claims)
  t.false('locale' in told.claims)
  t.is(told.info.phone_number_verified, false)
  t.is(told.info.given_name, undefined)
})

test('the consent page says what is shared, and discovery lists the claims', async (t) => {
  const house = await workspace()
  const party = await relyingParty(running, house.person, { scopes: SCOPES })
  const texts = []
  for (const ui_locales of ['en', 'de']) {
    const browser = openBrowser(running)
    const scope = 'openid profile phone'
    const { url } = await party.journey({ scope, ui_locales })
    const login = await browser.follow(await browser.get(url.pathname + url.search))
    const { email, password } = house.person
    texts.push((await browser.follow(await browser.submit(login, { email, password }))).html)
  }
  t.true(texts[0]!.includes('See your name, picture, language and time zone'))
  t.true(texts[0]!.includes('See your phone number'))
  t.true(texts[1]!.includes('Ihren Namen, Ihr Bild, Ihre Sprache und Ihre Zeitzone sehen'))
  const { claims_supported: supported = [] } = party.config.serverMetadata()
  for (const claim of [...Object.keys(ADA), 'phone_number_verified', 'updated_at'])
    t.true(supported.includes(claim), claim)
})

test('fields that are not valid are named, and nothing is saved', async (t) => {
  const house = await workspace()
  const { browser } = await accountOf(house)
  const wrong = {
    name: 'a\u202eb',
    given_name: 'x'.repeat(121),
    family_name: '\u0007',
    picture: 'http://images.example.com/ada.png',
    locale: 'de_DE!',
    zoneinfo: 'Europe/Atlantis',
    phone_number: '+49 (0)30 1234',
  }
  for (const [field, value] of Object.entries(wrong)) {
    const page = await save(browser, { ...ADA, [field]: value })
    t.is(page.status, 200, field)
    t.regex(page.html, /role="alert"/)
    t.regex(page.html, new RegExp(`<input id="${field}"[^>]*aria-invalid="true"`))
    t.true(
      page.html.includes('value="Lovelace"') || field === 'family_name',
      'what was typed stays',
    )
    const body = { [field === 'name' ? 'display_name' : field]: value }
    t.is((await house.patch(body)).status, 400, `${field} by API`)
  }
  for (const picture of [
    'https://user:secret@images.example.com/a.png',
    'javascript:alert(1)',
    `https://images.example.com/${'a'.repeat(2048)}`,
    'https://images.example.com/a b.png',
  ])
    t.is((await house.patch({ picture })).status, 400, picture)
  for (const [claim, value] of [
    ['zoneinfo', '+01:00'],
    ['locale', 'x'.repeat(36)],
    ['phone_number', '030123456'],
    ['phone_number', '+1234567890123456'],
    ['given_name', '  '],
  ] as const)
    t.is((await house.patch({ [claim]: value })).status, 400, value)
  const { body } = await api.get(house.path, house.token)
  t.false('given_name' in body)
  t.deepEqual(await recordsOf(house.tenantId, 'account.profile.updated'), [])
})

test('values of the tenant win there, and the account page does not change them', async (t) => {
  const house = await workspace()
  const { browser } = await accountOf(house)
  await save(browser, ADA)
  const set = await house.patch({
    family_name: 'King',
    phone_number: '+442071234567',
    phone_number_verified: true,
  })
  t.is(set.status, 200)
  t.like(set.body, { given_name: 'Ada', family_name: 'King', phone_number_verified: true })
  const page = await browser.get('/auth/account')
  t.regex(page.html, /<input id="family_name"[^>]* disabled value="King"/)
  t.is((await save(browser, { ...ADA, family_name: 'Byron', given_name: 'Augusta' })).status, 303)
  const { info } = await seen(house, { scope: 'openid profile phone' })
  t.like(info, {
    given_name: 'Augusta',
    family_name: 'King',
    phone_number: '+442071234567',
    phone_number_verified: true,
  })

  // A changed number is unverified; the same number stays verified.
  const same = await house.patch({ phone_number: '+442071234567' })
  t.is(same.body['phone_number_verified'], true)
  const other = await house.patch({ phone_number: '+442071234568' })
  t.is(other.body['phone_number_verified'], false)
  // Null returns the claim to the person.
  const back = await house.patch({ phone_number: null, family_name: null })
  t.like(back.body, {
    phone_number: ADA.phone_number,
    phone_number_verified: false,
    family_name: 'Lovelace',
  })
  const records = await recordsOf(house.tenantId, 'admin.user.updated')
  t.deepEqual(records[0]!['changed'], ['family_name', 'phone_number', 'phone_number_verified'])
})

test('an invited user has the claims of the invitation, and hides the claims of the account', async (t) => {
  const one = await workspace()
  const { browser } = await accountOf(one)
  await save(browser, ADA)
  const two = await workspace()
  const { email } = one.person
  const invited = await api.post(USERS, two.token, {
    email,
    given_name: 'Countess',
    locale: 'EN-gb',
  })
  t.is(invited.status, 201)
  t.like(invited.body, { status: 'invited', given_name: 'Countess', locale: 'en-GB' })
  for (const claim of [
    'family_name',
    'picture',
    'zoneinfo',
    'phone_number',
    'phone_number_verified',
  ])
    t.false(claim in invited.body, claim)
  // What this tenant calls the user is not seen elsewhere.
  t.is((await api.get(one.path, one.token)).body['given_name'], 'Ada')
})

test('the form needs the token of its page and a session', async (t) => {
  const house = await workspace()
  const { browser, page } = await accountOf(house)
  const { fields } = page.forms.find((form) => form.action === PROFILE)!
  t.is((await browser.post(PROFILE, { ...fields, csrf_token: 'wrong' })).status, 403)
  const stranger = openBrowser(running)
  const refused = await stranger.post(PROFILE, ADA)
  t.true(
    refused.status === 403 || (refused.location ?? '').startsWith('/auth/login'),
    String(refused.status),
  )
  t.false('given_name' in (await api.get(house.path, house.token)).body)
})

test('a claim that was asked for by an application without the scope is not given', async (t) => {
  const house = await workspace()
  await house.patch({ phone_number: '+12025550123', phone_number_verified: true })
  const party = await relyingParty(running, house.person, { scopes: ['openid', 'profile'] })
  const browser = openBrowser(running)
  const claims = JSON.stringify({ id_token: { phone_number: null, given_name: null } })
  const { url, ...checks } = await party.journey({ scope: 'openid', claims })
  const answer = await authorized(browser, house.person, url)
  const tokens = await oidc.authorizationCodeGrant(
    party.config,
    new URL(answer.location!),
    checks.checks,
  )
  t.false('phone_number' in tokens.claims()!)
})
