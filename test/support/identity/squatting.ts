/** Accounts that an attacker created for an unverified address (pre-hijacking). */
import type { ExecutionContext } from 'ava'
import type { Api, Workspace } from '../api.js'
import { type SoftAuthenticator, softAuthenticator } from './authenticator.js'
import { dataIn, openBrowser, type TestBrowser } from '../pages/browser.js'
import type { HostileProvider } from './hostile-provider.js'
import { sql } from '../storage/sql.js'
import { ADD, loginPage, optionsOf, useKey } from './passkeys.js'
import { enrol, signIn } from './person.js'
import { departed } from '../vault/upstream.js'

const USERS = '/api/v1/tenant-users'
export const SQUATTERS = 'the password of a squatter'

/** The tenant verifies the domain of an address, and routes it to the given provider. */
export async function ownDomain(
  api: Api,
  { tenantId, organizationId }: { tenantId: string; organizationId: string },
  email: string,
  providerId: string | null = null,
): Promise<void> {
  const domain = email.slice(email.indexOf('@') + 1)
  await sql(api.at)`
    insert into verified_domains (tenant_id, id, domain, proof, sso_provider_id, auto_join,
    created_at, verified_at)
    values (${tenantId}, gen_random_uuid(), ${domain}, 'proof', ${providerId}, false, now(),
    now())`
  await sql(api.at)`
    insert into domain_owners (domain, organization_id, verified_at)
    values (${domain}, ${organizationId}, now())
    on conflict (domain) do nothing`
}

export type Squatted = {
  readonly email: string
  readonly accountId: string
  /** The tenant where the squatter is a user. */
  readonly tenantId: string
  readonly tenantSlug: string
  /** A token of its owner. */
  readonly token: string
  /** Signed in as the account, at aal2. */
  readonly browser: TestBrowser
  readonly key: SoftAuthenticator
  /** The subject linked by the squatter, if a provider is given. */
  readonly subject: string
}

const homes = new WeakMap<Api, Promise<Workspace>>()

/** The tenant of all squatters of a service. */
function squatters(api: Api): Promise<Workspace> {
  const home = homes.get(api) ?? api.workspace('Squatters')
  homes.set(api, home)
  return home
}

/**
 * Creates an account for an address, signs in to it and adds everything an account can have: a password, an
 * authenticator app with recovery codes, a passkey, and a linked identity if a provider is given. The API refuses this
 * for a foreign address, so the tenant owns the domain while the account is created.
 */
export async function squat(
  t: ExecutionContext,
  api: Api,
  email: string,
  provider?: { readonly id: string; readonly at: HostileProvider },
): Promise<Squatted> {
  const workspace = await squatters(api)
  const { token, tenantId } = workspace
  const tenantSlug = String(workspace.body['tenant_slug'])
  await ownDomain(api, workspace, email)
  const made = await api.call('POST', USERS, { token, json: { email, password: SQUATTERS } })
  t.is(made.body['status'], 'pre_provisioned', JSON.stringify(made.body))
  await sql(api.at)`delete from verified_domains where tenant_id = ${tenantId}`
  await sql(api.at)`delete from domain_owners where organization_id = ${workspace.organizationId}`
  const [account] = await sql<{ id: string }>(
    api.at,
  )`select id from accounts where email = ${email}`

  const browser = openBrowser(api.at)
  t.teardown(() => browser.close())
  const own = await browser.follow(
    await signIn(browser, { tenantSlug, email, password: SQUATTERS }),
  )
  await enrol(browser, await browser.follow(await browser.submit(own, {}, '/auth/account/factors')))
  const page = await browser.get(`${ADD}/new`)
  const key = softAuthenticator({ origin: api.at.baseUrl, synced: true })
  const credential = key.create(await optionsOf(browser, page, ADD))
  t.is((await browser.submit(page, { credential, name: 'Trojan' }, ADD)).location, '/auth/account')

  await sql(api.at)`
    insert into account_phones (account_id, phone_number, proved_at)
    values (${account!.id}, '+49' || (1000000000 + floor(random() * 1000000000))::bigint, now())`
  await sql(api.at)`
    insert into account_wallets (account_id, id, address, created_at)
    values (${account!.id}, gen_random_uuid(), '0x' || left(encode(sha256(${Buffer.from(email)}),
    'hex'), 40), now())`
  const subject = `trojan of ${email}`
  if (provider !== undefined) {
    const claims = { sub: subject, email: 'mallory@evil.example', email_verified: true }
    const answer = await link(browser, provider, claims)
    t.is(answer.status, 200, answer.html)
  }
  return { email, accountId: account!.id, tenantId, tenantSlug, token, browser, key, subject }
}

type Claims = Readonly<Record<string, unknown>>

/** Links an identity of the provider on the account page. */
export async function link(
  browser: TestBrowser,
  { id, at }: { readonly id: string; readonly at: HostileProvider },
  claims: Claims,
) {
  const account = await browser.get('/auth/account')
  const form = account.forms.find((one) => one.action === '/auth/account/identities')
  if (form === undefined) throw new Error(`nothing to link: ${account.html}`)
  const away = await browser.post(form.action, { ...form.fields, provider: id })
  return back(browser, at, id, dataIn(away.html, 'onward')[0]!, claims)
}

/** The callback of the provider with these claims. */
export function back(
  browser: TestBrowser,
  provider: HostileProvider,
  id: string,
  away: string,
  claims: Claims,
) {
  const asked = new URL(away).searchParams
  provider.nonce = asked.get('nonce')!
  provider.mood = { claims }
  const query = new URLSearchParams({
    code: 'abc',
    state: asked.get('state')!,
    iss: provider.issuer,
  })
  return browser.get(`/auth/sso/callback/${id}?${query.toString()}`)
}

/** Signs in at a tenant through a provider with these claims. */
export async function arrive(
  t: ExecutionContext,
  api: Api,
  tenantSlug: string,
  { id, at }: { readonly id: string; readonly at: HostileProvider },
  claims: Claims,
) {
  const browser = openBrowser(api.at)
  t.teardown(() => browser.close())
  const away = await departed(browser, { tenantSlug }, id)
  if (away.location === null) throw new Error(`${away.status} ${away.html}`)
  const answer = await back(browser, at, id, away.location, claims)
  return { browser, answer, isSignedIn: (await browser.get('/auth/account')).status === 200 }
}

/** Every sign-in method and session of the squatter is gone. */
export async function nothingIsLeft(
  t: ExecutionContext,
  api: Api,
  squatted: Squatted,
  identities: readonly string[] = [],
): Promise<void> {
  const { accountId, email, tenantSlug, browser, key } = squatted
  const [row] = await sql<Record<string, unknown>>(api.at)`
    select email_verified as proved,
    (select count(*)::int from passkeys where account_id = a.id) as passkeys,
    (select count(*)::int from totp_factors where account_id = a.id) as apps,
    (select count(*)::int from account_phones where account_id = a.id) as phones,
    (select count(*)::int from account_wallets where account_id = a.id) as wallets,
    (select count(*)::int from recovery_codes where account_id = a.id) as codes,
    array(select subject from upstream_identities where account_id = a.id) as identities
    from accounts a where id = ${accountId}`
  t.deepEqual(row, {
    proved: true,
    passkeys: 0,
    apps: 0,
    phones: 0,
    wallets: 0,
    codes: 0,
    identities: [...identities],
  })
  t.is((await browser.get('/auth/account')).status, 303, 'the session of the squatter ended')
  const other = openBrowser(api.at)
  t.teardown(() => other.close())
  const tried = await signIn(other, { tenantSlug, email, password: SQUATTERS })
  t.is(tried.status, 200, 'the password of the squatter')
  const page = await loginPage(other, { tenantSlug } as Parameters<typeof loginPage>[1])
  t.is((await useKey(other, page, key)).status, 200, 'the passkey of the squatter')
  t.is((await other.get('/auth/account')).status, 303)
}
