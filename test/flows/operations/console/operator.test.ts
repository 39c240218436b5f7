/** People who administer the deployment: made on the command line, at work in the console of the control plane. */
import test from 'ava'
import {
  appointPerson,
  type PersonAppointment,
} from '../../../../actors/identity/sign-in/operators/appoint-person.js'
import { inviteDeploymentOperator } from '../../../../actors/identity/users/organizations/first-operator.js'
import { systemClock } from '../../../../runtime/kernel/clock.js'
import { systemRandom } from '../../../../runtime/kernel/random.js'
import { consoleOwner, openConsole } from '../../../support/identity/console.js'
import { sql } from '../../../support/storage/sql.js'
import { enrol } from '../../../support/identity/person.js'
import { openBrowser } from '../../../support/pages/browser.js'
import { mailbox } from '../../../support/identity/addresses.js'
import { sharedApi } from '../../../support/service.js'
import { until } from '../../../support/service/watch.js'

const { api, running } = await sharedApi('plain')
const { database } = running.db
const deps = { clock: systemClock, random: systemRandom(systemClock) }

const controlPlane = async () =>
  (await sql<{ id: string }>(database)`select id from tenants where control_plane`)[0]!.id
const appoint = (appointment: PersonAppointment) =>
  database.system((tx) => appointPerson(tx, deps, appointment))

/** An operator by the invite of the command line, with a second factor, in the console. */
async function invited() {
  const scopes = ['signing_keys:manage', 'deployment:manage']
  const made = await database.system((tx) =>
    inviteDeploymentOperator(tx, deps, { name: 'Operators', scopes }),
  )
  if ('tag' in made) throw new Error(made.tag)
  const browser = openBrowser(running)
  const form = await browser.get(`/auth/invites/${made.inviteToken}`)
  const email = `op-${made.inviteToken
    .slice(0, 8)
    .toLowerCase()
    .replaceAll(/[^a-z0-9]/g, '')}@harbour.test`
  await browser.submit(form, { name: 'Operator', email, password: 'correct horse battery staple' })
  const page = await browser.follow(await browser.get(`/console?tenant_id=${await controlPlane()}`))
  // The control plane asks for a second factor.
  const enrolled = await enrol(browser, page)
  const onward = /href="(\/oauth\/authorize\/resume\/[^"]+)"/.exec(enrolled.page.html)?.[1]
  const overview = await browser.follow(await browser.get(onward!))
  return { browser, email, overview }
}

test('an invited operator suspends and reactivates a tenant', async (t) => {
  const { made } = await consoleOwner(api)
  const { browser, overview } = await invited()
  t.is(overview.status, 200, overview.html)
  t.regex(overview.html, /href="\/console\/all-tenants"/)
  const planes = await openConsole(browser, '/console/planes')
  for (const name of ['auth', 'control', 'async'])
    t.true(planes.html.includes(`<bdi>${name}</bdi>`))
  const actors = await openConsole(browser, '/console/actors')
  t.regex(actors.html, /href="\/console\/actors\/passwords"/)
  const pool = await openConsole(browser, '/console/actors/passwords')
  t.regex(pool.html, /pool passwords/)
  t.regex(pool.html, /Running max/, 'an actor with its mailbox')
  const list = await openConsole(browser, '/console/all-tenants')
  t.true(list.html.includes(made.tenantSlug))
  const item = `/console/all-tenants/${made.tenantId}`
  for (const [name, status] of [
    ['suspend', 'suspended'],
    ['reactivate', 'active'],
  ] as const) {
    const path = `${item}/do/${name}`
    const done = await browser.submit(await openConsole(browser, path), {}, path)
    t.is(done.status, 303, done.html)
    const [row] = await sql<{ status: string }>(database)`
      select status from tenants where id = ${made.tenantId}`
    t.is(row!.status, status)
  }
  const found = await openConsole(
    browser,
    `/console/accounts?email=${encodeURIComponent(`owner-${made.tenantSlug}@harbour.test`)}`,
  )
  t.true(found.html.includes(`owner-${made.tenantSlug}@harbour.test`))
  const rotate = '/console/signing-keys/do/rotate'
  const rotated = await browser.submit(await openConsole(browser, rotate), {}, rotate)
  t.true([303, 409].includes(rotated.status), rotated.html)
})

test('a person is appointed by a verified address, and dismissed immediately', async (t) => {
  const { person } = await consoleOwner(api)
  const { email } = person.human
  t.is(
    (
      await appoint({
        email: mailbox('absent'),
        to: 'appointed',
        scopes: ['deployment:manage'],
      })
    ).tag,
    'unknown_account',
  )
  t.is((await appoint({ email, to: 'appointed', scopes: ['deployment:manage'] })).tag, 'unverified')
  await sql(database)`update accounts set email_verified = true where email = ${email}`
  t.is((await appoint({ email, to: 'appointed', scopes: ['deployment:manage'] })).tag, 'appointed')
  const browser = openBrowser(running)
  const login = await browser.follow(
    await browser.get(`/console?tenant_id=${await controlPlane()}`),
  )
  const next = await browser.follow(
    await browser.submit(login, { email, password: person.human.password }),
  )
  const overview = await browser.follow(await browser.submit(next, { code: person.codes.next() }))
  t.is(overview.status, 200, overview.html)
  t.regex(overview.html, /href="\/console\/all-organizations"/)
  t.notRegex(overview.html, /href="\/console\/signing-keys"/, 'only what was appointed')
  t.is((await appoint({ email, to: 'dismissed', scopes: ['deployment:manage'] })).tag, 'dismissed')
  // The service learns of it from the database.
  await until('dismissed', async () => (await browser.get('/console/all-tenants')).status === 303)
})

test('no other application and no other tenant gives the scopes of an operator', async (t) => {
  const { email } = await invited()
  t.truthy(email)
  const { person, made } = await consoleOwner(api)
  const page = await openConsole(person.browser, `/console?tenant_id=${made.tenantId}`)
  t.notRegex(page.html, /href="\/console\/all-tenants"/)
  await person.browser.get('/console/all-tenants').gives(404)
})
