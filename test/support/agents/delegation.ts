/** Delegations for tests: agents that request them and people who decide in browsers. */
import * as oidc from 'openid-client'
import type { Answer, Api, Json, Workspace } from '../api.js'
import { openBrowser, type Page, type TestBrowser } from '../pages/browser.js'
import { enrol, type Enrolment, signIn } from '../identity/person.js'
import { authorized, callbackOf, journey, relyingParty } from '../oauth/relying-party.js'

export const DEVICE = '/api/v1/agents/delegations/device'

/** A person who can sign in to a tenant. */
export type Human = {
  readonly tenantSlug: string
  readonly email: string
  readonly password: string
}

/** The fixture user of a workspace. */
export function fixtureOf({ body }: Workspace): Human {
  const { email, password } = body['fixture_end_user'] as { email: string; password: string }
  return { tenantSlug: String(body['tenant_slug']), email, password }
}

/** Another human of the tenant. */
export async function newFixture(api: Api, workspace: Workspace): Promise<Human> {
  const made = await api.post('/api/v1/sandbox/fixture-users', workspace.token, {})
  if (made.status !== 201) throw new Error(JSON.stringify(made.body))
  const { email, password } = made.body as { email: string; password: string }
  return { tenantSlug: String(workspace.body['tenant_slug']), email, password }
}

export type Person = Enrolment & { readonly browser: TestBrowser; readonly human: Human }

/** A person with a browser and a fresh two-factor sign-in. */
export async function present(api: Api, human: Human): Promise<Person> {
  const browser = openBrowser(api.at)
  const account = await browser.follow(await signIn(browser, human))
  const enrolment = await browser.follow(await browser.submit(account, {}, '/auth/account/factors'))
  return { browser, human, ...(await enrol(browser, enrolment)) }
}

/** A token of the person for an application of the tenant, by their existing sign-in. */
export async function ownToken(
  api: Api,
  { tenantId }: Pick<Workspace, 'tenantId'>,
  { browser, human }: Pick<Person, 'browser' | 'human'>,
  scope = 'openid delegations:manage',
): Promise<string> {
  const party = await relyingParty(api.at, { tenantId }, { scopes: scope.split(' ') })
  const begun = await journey(party, { scope })
  const answer = callbackOf(await authorized(browser, human, begun.url))
  const tokens = await oidc.authorizationCodeGrant(party.config, answer, begun.checks)
  return tokens.access_token
}

export type Asked = {
  readonly deviceCode: string
  readonly userCode: string
  readonly body: Json
}

export async function ask(api: Api, token: string, request: Json): Promise<Asked> {
  const { status, body } = await api.post(DEVICE, token, request)
  if (status !== 200) throw new Error(`${status}: ${JSON.stringify(body)}`)
  return { deviceCode: String(body['device_code']), userCode: String(body['user_code']), body }
}

export function poll(api: Api, token: string, { deviceCode }: Pick<Asked, 'deviceCode'>) {
  return api.post(`${DEVICE}/token`, token, { device_code: deviceCode })
}

/** Opens the page of a request and submits the decision. @returns the response to the form. */
export async function decide(
  { browser }: Pick<Person, 'browser'>,
  { userCode }: Pick<Asked, 'userCode'>,
  answer: 'approve' | 'deny' = 'approve',
): Promise<Page> {
  const page = await browser.follow(await browser.get(`/device/delegation/${userCode}`))
  if (page.status !== 200) throw new Error(`${page.status}: ${page.html}`)
  return browser.submit(page, {}, `/device/delegation/${userCode}/${answer}`)
}

export type Lent = {
  readonly answer: Answer
  readonly token: string
  readonly refreshToken: string
  readonly delegationId: string
}

/** Requests, approves and polls. */
export async function delegate(
  api: Api,
  agentToken: string,
  person: Person,
  request: Json = { scope: 'openid vault:list vault:read' },
): Promise<Lent> {
  const asked = await ask(api, agentToken, request)
  const decided = await decide(person, asked)
  if (decided.status !== 303) throw new Error(`${decided.status}: ${decided.html}`)
  const answer = await poll(api, agentToken, asked)
  if (answer.status !== 200) throw new Error(JSON.stringify(answer.body))
  const token = String(answer.body['access_token'])
  const [, payload = ''] = token.split('.')
  const claims = JSON.parse(Buffer.from(payload, 'base64url').toString()) as Json
  return {
    answer,
    token,
    refreshToken: String(answer.body['refresh_token']),
    delegationId: String(claims['delegation_id']),
  }
}
