/** Owners of workspaces in the console. */
import type { Api } from '../api.js'
import type { Page, TestBrowser } from '../pages/browser.js'
import { type Owned, owned } from './owner.js'

export type Owner = Owned & { readonly browser: TestBrowser }

/** The page of the console, after the sign-in that it needs. */
export async function openConsole(browser: TestBrowser, path: string): Promise<Page> {
  const page = await browser.follow(await browser.get(path))
  if (page.status !== 200) throw new Error(`${path}: ${page.status} ${page.html}`)
  return page
}

/** The owner of a new workspace, signed in to its console. */
export async function consoleOwner(api: Api, { factor = true } = {}): Promise<Owner> {
  const owner = await owned(api, { factor })
  const { browser } = owner.person
  await openConsole(browser, `/console?tenant_id=${owner.made.tenantId}`)
  return { ...owner, browser }
}
