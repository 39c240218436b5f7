/** Two services: an identity provider, and one that uses it for sign-in. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { dataIn, openBrowser, type Page, type TestBrowser } from '../pages/browser.js'
import { type TestDns, startDns } from '../storage/dns.js'
import { sql } from '../storage/sql.js'
import { bootstrapped, type Workspace } from '../identity/person.js'
import { authorized, relyingParty } from '../oauth/relying-party.js'
import { sharedService, testService, type TestService } from '../service.js'
import { helperEnds } from '../endings.js'

export interface UpstreamHouse {
  /** The identity provider, which other test files use too. */
  readonly home: TestService
  readonly person: Workspace
  /** The service under test; its provider `oidc` is `home`. */
  readonly running: TestService
  readonly dns: TestDns
  /** An application of `home` for another provider of `running`. */
  application(redirectUri: string): Promise<{ clientId: string; clientSecret: string }>
  /** Registers another redirect URI for an application of `home`. */
  move(clientId: string, redirectUri: string): Promise<void>
  end(): Promise<void>
}

export type UpstreamHouseOptions = {
  readonly environment?: Readonly<Record<string, string>>
  /** PEM of further providers. */
  readonly trusted?: readonly string[]
  readonly transport?: 'plain_http'
  /** For a browser with both services: each has its own cookies. */
  readonly homeHost?: '127.0.0.1'
}

/** Settings to reach providers on loopback. */
export async function reachable(
  pems: readonly string[],
): Promise<{ environment: Record<string, string>; remove(): Promise<void> }> {
  const folder = await mkdtemp(join(tmpdir(), 'svc-upstream-'))
  const caPath = join(folder, 'ca.pem')
  await writeFile(caPath, pems.join('\n'))
  return {
    environment: {
      SVC_VAULT__EGRESS_ALLOW_PRIVATE_NETWORKS: 'true',
      SVC_VAULT__EGRESS_ALLOW_NON_STANDARD_PORTS: 'true',
      SVC_VAULT__EGRESS_CA_PEM_PATH: caPath,
    },
    remove: helperEnds(() => rm(folder, { recursive: true, force: true })),
  }
}

export async function upstreamFixture(options: UpstreamHouseOptions = {}): Promise<UpstreamHouse> {
  const home = await sharedService('plain', { transport: 'tls_h2_only', host: options.homeHost })
  const person = await bootstrapped(home)
  await sql(home)`update accounts set email_verified = true where email = ${person.email}`
  const party = await relyingParty(home, person, { name: 'The other house' })
  const way = await reachable([home.ca!, ...(options.trusted ?? [])])
  const dns = await startDns()
  const running = await testService({
    transport: options.transport,
    environment: {
      ...way.environment,
      SVC_GENERIC_OAUTH__ENABLED: 'true',
      SVC_GENERIC_OAUTH__NAME: 'Home',
      SVC_GENERIC_OAUTH__ISSUER: home.issuer,
      SVC_GENERIC_OAUTH__CLIENT_ID: party.clientId,
      SVC_GENERIC_OAUTH__CLIENT_SECRET: party.secret,
      SVC_SOCIAL__ACCOUNT_LINKING__ENABLED: 'true',
      SVC_ENTERPRISE_SSO__ENABLED: 'true',
      SVC_VERIFIED_DOMAINS__ENABLED: 'true',
      SVC_VERIFIED_DOMAINS__DNS_SERVERS: `["${dns.server}"]`,
      ...options.environment,
    },
  })
  const move = async (clientId: string, redirectUri: string) => {
    const text = 'update applications set redirect_uris = $2 where id = $1'
    await sql(home.db.database, text, [clientId, [redirectUri]])
  }
  await move(party.clientId, `${running.issuer}/auth/sso/callback/oidc`)
  return {
    home,
    person,
    running,
    dns,
    move,
    async application(redirectUri) {
      const made = await relyingParty(home, person, { redirectUris: [redirectUri] })
      return { clientId: made.clientId, clientSecret: made.secret }
    },
    end: helperEnds(async () => {
      await running.end()
      await home.end()
      await dns.close()
      await way.remove()
    }),
  }
}

export const ownPathOf = (url: string) => new URL(url).pathname + new URL(url).search

/** The link of a sign-in page to a provider. */
export function linkTo(page: Page, provider: string): string {
  const [, href] = new RegExp(`href="([^"]*provider=${provider})"`).exec(page.html) ?? []
  if (href === undefined) throw new Error(`no way to ${provider}: ${page.status} ${page.html}`)
  return href.replaceAll('&amp;', '&')
}

/** Follows the provider's pages back to the callback. @returns its response. */
export async function throughHome(
  { home, running }: Pick<UpstreamHouse, 'home' | 'running'>,
  browser: TestBrowser,
  url: string,
  person: Pick<Workspace, 'email' | 'password'>,
): Promise<Page> {
  const there = openBrowser(home)

  const answered = await authorized(there, person, ownPathOf(url))
  if (answered.location === null || !answered.location.startsWith(running.issuer)) {
    throw new Error(`${answered.status} ${answered.path} ${answered.location} ${answered.html}`)
  }
  return await browser.get(ownPathOf(answered.location))
}

/** Request headers of browsers for a same-origin link. */
export const FROM_OUR_PAGE = { 'sec-fetch-site': 'same-origin' }

/** Opens the sign-in page of a tenant and follows the link to a provider. @returns the redirect. */
export async function departed(
  browser: TestBrowser,
  { tenantSlug }: Pick<Workspace, 'tenantSlug'>,
  provider = 'oidc',
  returnTo = '/auth/account',
): Promise<Page> {
  const query = new URLSearchParams({ tenant_slug: tenantSlug, return_to: returnTo })
  const page = await browser.get(`/auth/login?${query.toString()}`)
  return browser.get(linkTo(page, provider), FROM_OUR_PAGE)
}

/** Continues from the last page of a provider sign-in. */
export function onwardFrom(browser: TestBrowser, page: Page): Promise<Page> {
  const [onward] = dataIn(page.html, 'onward')
  if (page.status !== 200 || onward === undefined) {
    throw new Error(`nothing follows: ${page.status} ${page.html}`)
  }
  return browser.get(onward)
}
