/** People with passkeys, without a screen: the requests that the pages' script makes. */
import type { TestBrowser, Page } from './browser.js'
import type { CreationOptions, RequestOptions } from './authenticator.js'

type Options = CreationOptions & RequestOptions & { readonly allowCredentials?: { id: string }[] }
export type Begun = { readonly options?: Options; readonly location?: string }

/** The form of a page that takes a passkey. */
export function passkeyForm(page: Page, action: string) {
  const form = page.forms.find((one) => one.action === action)
  if (form === undefined) throw new Error(`no form for ${action} on ${page.path}: ${page.html}`)
  return form
}

/** Asks for the options of a ceremony as the script does. */
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

export const SIGN_IN = '/auth/passkeys/sign-in'
export const SECOND_FACTOR = '/auth/mfa/passkey'
export const ENROL = '/auth/mfa/enroll/passkey'
export const ADD = '/auth/account/passkeys'
