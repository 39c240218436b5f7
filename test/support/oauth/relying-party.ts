/** A relying party with openid-client, and the browser of its user. */
import * as oidc from 'openid-client'
import { systemClock } from '../../../runtime/kernel/clock.js'
import { systemRandom } from '../../../runtime/kernel/random.js'
import {
  insertApplication,
  type NewApplication,
  newClientSecret,
} from '../../../storage/oauth/applications.js'
import { openBrowser, type Page, type TestBrowser } from '../pages/browser.js'
import type { Workspace } from '../identity/person.js'
import type { TestService } from '../service.js'

export const CALLBACK = 'https://app.example/callback'
const random = systemRandom(systemClock)

export type RelyingParty = {
  readonly config: oidc.Configuration
  readonly clientId: string
  readonly secret: string
  readonly audience: string
  /** An authorization request with PKCE, state and nonce. */
  journey(parameters?: Readonly<Record<string, string>>): Promise<Journey>
  /** The whole code flow in its own browser. */
  signedIn(
    person: Pick<Workspace, 'email' | 'password'>,
    parameters?: Readonly<Record<string, string>>,
    options?: oidc.AuthorizationCodeGrantOptions,
  ): ReturnType<typeof signedIn>
}

/** Registers an application in the tenant and lets openid-client discover the service. */
export async function relyingParty(
  running: TestService,
  { tenantId }: Pick<Workspace, 'tenantId'>,
  more: Partial<NewApplication> = {},
  authentication?: oidc.ClientAuth,
): Promise<RelyingParty> {
  const { baseUrl, db } = running
  const { secret, sha256 } = newClientSecret(random)
  const isPublic = more.clientType === 'public'
  const row = await db.database.tenant(tenantId, (tx) =>
    insertApplication(tx, {
      id: random.uuid(),
      tenantId,
      name: 'Lighthouse',
      redirectUris: [CALLBACK],
      postLogoutRedirectUris: ['https://app.example/bye'],
      scopes: ['openid', 'profile', 'email', 'offline_access', 'org:read', 'vault:list'],
      createdAt: new Date(),
      secretSha256: isPublic ? null : sha256,
      ...more,
    }),
  )
  const config = await oidc.discovery(
    new URL(baseUrl),
    row.id,
    // Clients expect RS256 by default.
    { id_token_signed_response_alg: row.idTokenSignedResponseAlg },
    authentication ?? (isPublic ? oidc.None() : oidc.ClientSecretBasic(secret)),
    { execute: [oidc.allowInsecureRequests] },
  )
  const party: RelyingParty = {
    config,
    clientId: row.id,
    secret,
    audience: row.audience,
    journey: (parameters) => journey(party, parameters),
    signedIn: (person, parameters, options) =>
      signedIn(running, party, person, parameters, options),
  }
  return party
}

export type Journey = {
  readonly url: URL
  readonly verifier: string
  readonly state: string
  readonly nonce: string
  /** What openid-client compares at the token endpoint. */
  readonly checks: oidc.AuthorizationCodeGrantChecks
}

/** An authorization request with PKCE, state and nonce. */
export async function journey(
  { config }: Pick<RelyingParty, 'config'>,
  parameters: Readonly<Record<string, string>> = {},
): Promise<Journey> {
  const verifier = oidc.randomPKCECodeVerifier()
  const state = oidc.randomState()
  const nonce = oidc.randomNonce()
  const url = oidc.buildAuthorizationUrl(config, {
    redirect_uri: CALLBACK,
    scope: 'openid profile email',
    code_challenge: await oidc.calculatePKCECodeChallenge(verifier),
    code_challenge_method: 'S256',
    state,
    nonce,
    ...parameters,
  })
  const expected = { expectedState: state, expectedNonce: parameters['nonce'] ?? nonce }
  const checks = { pkceCodeVerifier: verifier, ...expected }
  return { url, verifier, state, nonce, checks }
}

export const pathOf = (url: URL): string => url.pathname + url.search

/** Takes a browser from the request to the response: signs in if needed, and consents. */
export async function authorized(
  browser: TestBrowser,
  person: Pick<Workspace, 'email' | 'password'>,
  url: URL | string,
): Promise<Page> {
  let page = await browser.follow(await browser.get(typeof url === 'string' ? url : pathOf(url)))
  if (page.path.startsWith('/auth/login'))
    page = await browser.follow(
      await browser.submit(page, { email: person.email, password: person.password }),
    )
  return isConsent(page) ? browser.submit(page, { action: 'allow' }) : page
}

export function isConsent(page: Page): boolean {
  return page.status === 200 && page.html.includes('name="action" value="allow"')
}

/** The redirect to the application, as a URL. */
export function callbackOf(page: Page): URL {
  if (page.status !== 302 || page.location === null || !page.location.startsWith(CALLBACK))
    throw new Error(`no answer to the application: ${page.status} ${page.location} ${page.html}`)
  return new URL(page.location)
}

/** The whole code flow in its own browser. */
export async function signedIn(
  running: TestService,
  party: Pick<RelyingParty, 'config'>,
  person: Pick<Workspace, 'email' | 'password'>,
  parameters: Readonly<Record<string, string>> = {},
  options: oidc.AuthorizationCodeGrantOptions = {},
) {
  const browser = openBrowser(running)
  const begun = await journey(party, parameters)
  const callback = callbackOf(await authorized(browser, person, begun.url))
  const tokens = await oidc.authorizationCodeGrant(
    party.config,
    callback,
    begun.checks,
    undefined,
    options,
  )
  return { ...begun, browser, callback, tokens, claims: tokens.claims()! }
}
