/** Owners of workspaces in the console. */
import type { Api } from '../api.js'
import type { Page, TestBrowser } from '../pages/browser.js'
import type { PopulatedTenant } from '../service/populated-service.js'
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

/** Makes the user of a populated tenant its owner, signed in to the console. */
export async function ownerOf(
  api: Api,
  { workspace, objects, person: { browser, human } }: PopulatedTenant,
): Promise<TestBrowser> {
  const userId = objects['/api/v1/tenant-users/{user_id}']!
  const { tenantId, organizationId, token, operator } = workspace
  const json = { roles: ['owner'] }
  const changed = await api.patch(`/api/v1/tenant-users/${userId}`, token, json)
  const members = `/api/v1/organizations/${organizationId}/members`
  const { rows } = await api.list(members, operator)
  const member = rows.find(({ email }) => email === human.email)
  const joined = await api.patch(`${members}/${String(member?.['id'])}`, operator, {
    role: 'owner',
  })
  if (changed.status !== 200 || joined.status !== 200)
    throw new Error(JSON.stringify([changed.body, joined.body]))
  await openConsole(browser, `/console?tenant_id=${tenantId}`)
  return browser
}
