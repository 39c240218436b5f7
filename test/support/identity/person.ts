/** Users for tests of the pages: a workspace with its fixture user, and how they sign in. */
import { loginCodes } from './totp.js'
import { nonceFor } from './nonce.js'
import { THROUGH_TRANSPORT } from '../fleet/through.js'
import { openBrowser, type Page, type TestBrowser, dataIn } from '../pages/browser.js'
import { createAgentKey } from '../../../runtime/clients/client/agent.js'
import { Agent, request } from 'undici'
import { DEFAULT_TRANSPORT, type TestService } from '../service.js'

/** The session cookie of services on the default transport. */
export const SESSION_COOKIE =
  (THROUGH_TRANSPORT ?? DEFAULT_TRANSPORT) === 'plain_http' ? 'svc_session' : '__Host-svc_session'

export type Workspace = {
  readonly tenantId: string
  readonly tenantSlug: string
  readonly email: string
  readonly password: string
  readonly clientId: string
  readonly clientSecret: string
  readonly inviteUrl: string
}

/** Bootstraps a workspace over HTTP, as an agent does. */
export async function bootstrapped({
  baseUrl,
  ca,
}: Pick<TestService, 'baseUrl' | 'ca'>): Promise<Workspace> {
  const dispatcher = new Agent({ allowH2: true, ...(ca === undefined ? {} : { connect: { ca } }) })
  const call = async (path: string, body?: unknown) => {
    const answer = await request(new URL(path, baseUrl), {
      dispatcher,
      method: body === undefined ? 'GET' : 'POST',
      headers: { 'content-type': 'application/json' },
      body: body === undefined ? null : JSON.stringify(body),
    })
    return (await answer.body.json()) as Record<string, never>
  }
  try {
    const path = '/api/v1/agents/workspace/bootstrap'
    const metadata = await call(path)
    const key = createAgentKey()
    const { issuer, control_plane_tenant_id: tenantId } = metadata
    const start = await call(`${path}/pow`, {
      name: 'Bootstrapper',
      ...key.registration({ issuer: String(issuer), tenantId: String(tenantId) }),
    })
    const nonce = nonceFor({
      challengeToken: String(start['challenge_token']),
      difficultyBits: Number(start['difficulty_bits']),
    })
    const made = await call(`${path}/pow/complete`, {
      challenge_id: start['challenge_id'],
      nonce,
      organization_name: 'Harbour Works',
      redirect_uris: ['http://localhost:3000/callback'],
      issue_operator_invite: true,
      framework: 'generic',
    })
    const fixture = made['fixture_end_user'] as unknown as { email: string; password: string }
    return {
      tenantId: made['tenant_id']!,
      tenantSlug: made['tenant_slug']!,
      email: fixture.email,
      password: fixture.password,
      clientId: made['client_id']!,
      clientSecret: made['client_secret']!,
      inviteUrl: (made['operator_invite'] as unknown as { url: string }).url,
    }
  } finally {
    await dispatcher.close()
  }
}

/** Submits the sign-in page of the tenant. Returns the response. */
export async function signIn(
  browser: TestBrowser,
  { tenantSlug, email, password }: Pick<Workspace, 'tenantSlug' | 'email' | 'password'>,
  returnTo = '/auth/account',
): Promise<Page> {
  const query = new URLSearchParams({ tenant_slug: tenantSlug, return_to: returnTo })
  const page = await browser.get(`/auth/login?${query.toString()}`)
  return browser.submit(page, { email, password })
}

export type Enrolment = {
  readonly secret: string
  readonly recoveryCodes: readonly string[]
  readonly codes: ReturnType<typeof loginCodes>
  readonly page: Page
}

/** Completes the enrolment page. */
export async function enrol(browser: TestBrowser, page: Page): Promise<Enrolment> {
  const [secret = ''] = dataIn(page.html, 'totp-secret')
  const codes = loginCodes(secret)
  const done = await browser.submit(page, { code: codes.next() }, '/auth/mfa/enroll')
  return { secret, codes, recoveryCodes: dataIn(done.html, 'recovery-code'), page: done }
}

/** A browser whose user has enrolled a second factor through the account page. */
export async function enrolledBrowser(
  running: Pick<TestService, 'baseUrl' | 'ca'>,
  workspace: Workspace,
): Promise<Enrolment & { readonly browser: TestBrowser }> {
  const browser = openBrowser(running)
  const account = await browser.follow(await signIn(browser, workspace))
  const enrolment = await browser.follow(await browser.submit(account, {}, '/auth/account/factors'))
  return { browser, ...(await enrol(browser, enrolment)) }
}
