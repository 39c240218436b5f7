/** Workspaces whose invite was accepted by a user as owner. */
import type { Api } from '../api.js'
import { openBrowser } from '../pages/browser.js'
import { type Human, ownToken, type Person } from '../agents/delegation.js'
import { bootstrapped, enrol, type Workspace } from './person.js'

export type Owned = {
  readonly made: Workspace
  readonly person: Person
  /** The user's own token, with the requested scopes. */
  readonly token: string
}

/** Where an accepted invite leads: to the console of the tenant where there is one, otherwise to the account page. */
export async function ownerHome({ baseUrl }: Api['at'], tenantId: string): Promise<string> {
  const answer = await fetch(`${baseUrl}/api/v1/capabilities`)
  const { capabilities } = (await answer.json()) as { capabilities: string[] }
  return capabilities.includes('console') ? `/console?tenant_id=${tenantId}` : '/auth/account'
}

/** With a second factor by default. */
export async function owned(
  api: Api,
  { factor = true, scope = 'openid tenant:manage users:manage' } = {},
): Promise<Owned> {
  const made = await bootstrapped(api.at)
  const browser = openBrowser(api.at)
  const email = `owner-${made.tenantSlug}@harbour.test`
  const human: Human = {
    tenantSlug: made.tenantSlug,
    email,
    password: 'correct horse battery staple',
  }
  const form = await browser.get(new URL(made.inviteUrl).pathname)
  await browser.submit(form, { name: 'Owner', email, password: human.password })
  let enrolment = {} as Awaited<ReturnType<typeof enrol>>
  if (factor) {
    const account = await browser.get('/auth/account')
    const page = await browser.follow(await browser.submit(account, {}, '/auth/account/factors'))
    enrolment = await enrol(browser, page)
  }
  const person: Person = { ...enrolment, browser, human }
  return { made, person, token: await ownToken(api, made, person, scope) }
}
