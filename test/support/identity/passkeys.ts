/** Users with passkeys, without a browser: the requests that the pages' script makes. */
import {
  type CreationOptions,
  type RequestOptions,
  type SoftAuthenticator,
  softAuthenticator,
} from './authenticator.js'
import { dataIn, openBrowser, type Page, type TestBrowser } from '../pages/browser.js'
import type { PasskeySignals } from '../../../actors/identity/sign-in/protocol.js'
import { sql } from '../storage/sql.js'
import { SESSION_COOKIE, signIn, type Workspace } from './person.js'
import type { TestService } from '../service.js'

type Options = CreationOptions & RequestOptions & { readonly allowCredentials?: { id: string }[] }
export type Begun = { readonly options?: Options; readonly location?: string }

/** The passkey form of a page. */
export function passkeyForm(page: Page, action: string) {
  const form = page.forms.find((one) => one.action === action)
  if (form === undefined) throw new Error(`no form for ${action} on ${page.path}: ${page.html}`)
  return form
}

/** Requests the options of a ceremony as the script does. */
export async function begin(browser: TestBrowser, page: Page, action: string): Promise<Begun> {
  const { fields } = passkeyForm(page, action)
  const { credential: _, ...sent } = fields
  const answer = await browser.post(`${action}/options`, sent, { accept: 'application/json' })
  if (answer.status !== 200) throw new Error(`${answer.status} ${answer.html}`)
  return JSON.parse(answer.html) as Begun
}

export async function optionsOf(browser: TestBrowser, page: Page, action: string) {
  const { options } = await begin(browser, page, action)
  if (options === undefined) throw new Error('the browser was sent elsewhere')
  return options
}

/** The arguments of the signal methods that a page calls. */
export function signalsIn({ html }: Page): PasskeySignals {
  const [text] = dataIn(html, 'passkey-signals')
  return text === undefined ? {} : (JSON.parse(text) as PasskeySignals)
}

/** The sign-in form, sent by a browser whose script asks for the page that syncs passkeys. */
export async function signInAndSync(browser: TestBrowser, workspace: Workspace) {
  const { email, password } = workspace
  browser.cookies.delete(SESSION_COOKIE)
  const page = await loginPage(browser, workspace)
  return browser.submit(page, { email, password, passkey_sync: 'yes' }, '/auth/login')
}

/** The options with which the browser may create a passkey without asking. Null: it is not asked to. */
export function conditionalOptions({ html }: Page): Options | null {
  const [text] = dataIn(html, 'passkey-conditional')
  return text === undefined ? null : (JSON.parse(text) as Options)
}

export const CONDITIONAL = '/auth/passkeys/conditional'
export const SIGN_IN = '/auth/passkeys/sign-in'
export const SECOND_FACTOR = '/auth/mfa/passkey'
export const ENROL = '/auth/mfa/enroll/passkey'
export const ADD = '/auth/account/passkeys'
export type PasskeyWorkspace = { readonly running: TestService; readonly workspace: Workspace }

/** A user with a passkey, added on the account page with only a password before. */
export async function withPasskey(of: PasskeyWorkspace, synced = false) {
  const { running, workspace } = of
  const browser = openBrowser(running)
  await browser.follow(await signIn(browser, workspace))
  const page = await browser.get(`${ADD}/new`)
  const key = softAuthenticator({ origin: running.baseUrl, synced })
  const credential = key.create(await optionsOf(browser, page, ADD))
  const added = await browser.submit(page, { credential, name: 'Blue key' }, ADD)
  return { ...of, browser, key, added, recoveryCodes: dataIn(added.html, 'recovery-code') }
}

export const loginPage = (browser: TestBrowser, { tenantSlug }: Workspace) =>
  browser.get(`/auth/login?tenant_slug=${tenantSlug}`)

/** Uses a passkey at a sign-in page. */
export async function useKey(
  browser: TestBrowser,
  page: Page,
  key: SoftAuthenticator,
  claims: Parameters<SoftAuthenticator['get']>[1] = {},
  action = SIGN_IN,
): Promise<Page> {
  const options = await optionsOf(browser, page, action)
  return browser.submit(page, { credential: key.get(options, claims) }, action)
}

/** Events of a workspace's tenant. */
export async function eventsOf({ running, workspace }: PasskeyWorkspace, type: string) {
  const rows = await sql<{ data: Record<string, unknown> }>(running)`
    select data from all_events where tenant_id = ${workspace.tenantId} and type = ${type}
    order by sequence`
  return rows.map(({ data }) => data)
}

export function passkeysOf({ running, workspace }: PasskeyWorkspace) {
  return sql<{ id: string }>(running)`
    select p.id from passkeys p join tenant_users u on u.account_id = p.account_id
    where u.tenant_id = ${workspace.tenantId}`
}
