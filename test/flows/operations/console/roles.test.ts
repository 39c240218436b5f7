/** Roles that owners and admins give and take in the console. */
import test from 'ava'
import { fixtureOf, newFixture, present } from '../../../support/agents/delegation.js'
import { apiOf } from '../../../support/api.js'
import { consoleOwner, openConsole } from '../../../support/identity/console.js'
import type { TestBrowser } from '../../../support/pages/browser.js'
import { sharedApi, sharedService } from '../../../support/service.js'

const { api } = await sharedApi('enterprise')
const workspace = await api.workspace()
const { tenantId, token } = workspace

const userPath = (id: string) => `/api/v1/tenant-users/${id}`
const rolesOf = async (id: string) => (await api.get(userPath(id), token)).body['roles']

async function idOf(email: string): Promise<string> {
  const { rows } = await api.list('/api/v1/tenant-users', token)
  return String(rows.find((row) => row['email'] === email)!['id'])
}

/** A person with these roles and a second factor, signed in to the console. */
async function signedIn(human: ReturnType<typeof fixtureOf>, roles: readonly string[]) {
  const id = await idOf(human.email)
  await api.patch(userPath(id), token, { roles }).gives(200)
  const { browser } = await present(api, human)
  await openConsole(browser, `/console?tenant_id=${tenantId}`)
  return browser
}

const give = async (browser: TestBrowser, id: string, roles: readonly string[]) => {
  const path = `/console/people/${id}/do/change`
  return browser.submit(await openConsole(browser, path), { roles: roles.join('\n') }, path)
}

test('an owner with a second factor gives and takes every role', async (t) => {
  const owner = await signedIn(fixtureOf(workspace), ['owner'])
  t.teardown(() => owner.close())
  const id = await idOf((await newFixture(api, workspace)).email)
  for (const roles of [['admin'], ['owner'], ['member'], ['owner', 'admin', 'editor'], []]) {
    const given = await give(owner, id, roles)
    t.is(given.status, 303, given.html)
    t.deepEqual(await rolesOf(id), roles)
  }
  const form = '/console/scim-tokens/do/create'
  for (const roles of ['admin', 'admin\nowner']) {
    const fields = { description: 'Directory', roles }
    const made = await owner.submit(await openConsole(owner, form), fields, form)
    t.is(made.status, 200, made.html)
    t.regex(made.html, /data-secret="token"/)
  }
})

test('an admin gives and takes the role of an admin, and none above', async (t) => {
  const admin = await signedIn(await newFixture(api, workspace), ['admin'])
  t.teardown(() => admin.close())
  const id = await idOf((await newFixture(api, workspace)).email)
  for (const roles of [['admin'], []]) {
    t.is((await give(admin, id, roles)).status, 303)
    t.deepEqual(await rolesOf(id), roles)
  }
  const refused = await give(admin, id, ['owner'])
  t.is(refused.status, 403)
  t.regex(refused.html, /owner/)
  t.deepEqual(await rolesOf(id), [])
})

test('the navigation leads a member only to what members may open', async (t) => {
  const member = await signedIn(await newFixture(api, workspace), ['member'])
  t.teardown(() => member.close())
  const { html } = await openConsole(member, '/console')
  const paths = new Set([...html.matchAll(/href="(\/console\/[a-z-]+)"/g)].map(([, path]) => path!))
  t.false(paths.has('/console/vault-credentials'))
  for (const path of paths) {
    const { html: opened } = await openConsole(member, path)
    t.notRegex(opened, /insufficient_scope|forbidden/, path)
  }
})

test('the navigation has no features that are off', async (t) => {
  const plain = await sharedService('plain')
  const without = apiOf(plain)
  const { browser } = await consoleOwner(without)
  t.teardown(async () => {
    await plain.end()
  })
  const { html } = await openConsole(browser, '/console')
  const paths = new Set([...html.matchAll(/href="(\/console\/[a-z-]+)"/g)].map(([, path]) => path!))
  t.true(paths.has('/console/people'))
  for (const path of ['/console/domains', '/console/identity-providers']) {
    t.false(paths.has(path), path)
    t.is((await browser.get(path)).status, 404, path)
  }
  for (const path of paths) {
    const { html: opened } = await openConsole(browser, path)
    t.notRegex(opened, /turned off|is disabled|not_found/, path)
  }
})
