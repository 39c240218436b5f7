/** What a tenant sees of an account before its user has signed in. docs/reference/identity.md, "Users of a tenant". */
import test, { type ExecutionContext } from 'ava'
import { apiOf } from '../../../support/api.js'
import { openBrowser } from '../../../support/pages/browser.js'
import { sql } from '../../../support/storage/sql.js'
import { mailDomain } from '../../../support/identity/addresses.js'
import { pathIn, sharedMail } from '../../../support/operations/letters.js'
import { sharedService } from '../../../support/service.js'
import { ownDomain } from '../../../support/identity/squatting.js'

const USERS = '/api/v1/tenant-users'
const NOTHING = { display_name: '', email_verified: false }

/** A service that sends invitations, and a browser to open them. */
async function inviting(t: ExecutionContext) {
  const [running, mail] = [await sharedService('people'), await sharedMail()]
  const api = apiOf(running)
  const browser = openBrowser(running)
  t.teardown(async () => {
    await browser.close()
    await api.close()
    await running.end()
  })
  return { mail, running, api, browser, ada: `ada@${mailDomain()}` }
}

test('an invited user has no name until accepting', async (t) => {
  const { mail, running, api, browser, ada } = await inviting(t)
  const home = await api.workspace()
  await ownDomain(api, home, ada)
  const json = { email: ada, password: 'the password of ada', display_name: 'Ada Lovelace' }
  t.is((await api.call('POST', USERS, { token: home.token, json })).status, 201)
  await sql(running.db.database, 'update accounts set email_verified = true where email = $1', [
    ada,
  ])

  const { token } = await api.workspace()
  const made = await api.call('POST', USERS, { token, json: { email: ada } })
  t.like(made.body, { status: 'invited', ...NOTHING })
  const user = `${USERS}/${String(made.body['id'])}`
  t.like((await api.get(user, token)).body, NOTHING)
  const patch = (name: string | null) =>
    api.call('PATCH', user, { token, json: { display_name: name } })
  t.is((await patch('Our Ada')).body['display_name'], 'Our Ada')
  t.like((await patch(null)).body, NOTHING)
  t.like((await api.post(`${user}/suspend`, token)).body, NOTHING)
  t.like((await api.post(`${user}/reactivate`, token)).body, { status: 'invited', ...NOTHING })
  const { rows } = await api.list(`${USERS}?status=invited`, token)
  t.deepEqual(
    rows.map(({ display_name: name }) => name),
    [''],
  )
  t.is((await api.call('DELETE', user, { token })).status, 204)
  const removed = await api.list(`${USERS}?status=removed`, token)
  t.like(removed.rows[0]!, NOTHING)

  t.is((await api.call('POST', USERS, { token, json: { email: ada } })).status, 201)
  const path = pathIn(await mail.letterTo(ada, /(?:)/, 1), '/auth/invitations/')
  t.is((await browser.submit(await browser.get(path))).status, 303)
  const known = { status: 'active', display_name: 'Ada Lovelace', email_verified: true }
  t.like((await api.get(user, token)).body, known)
})

test('a typed name cannot change the direction of other text', async (t) => {
  const { mail, api, browser, ada } = await inviting(t)
  const { token } = await api.workspace()
  const made = await api.call('POST', USERS, { token, json: { email: ada } })
  const path = pathIn(await mail.letterTo(ada), '/auth/invitations/')
  const page = await browser.get(path)
  const name = ' \u202eAda\u2066 Lovelace\u2069\t'
  await browser.submit(page, { name, password: 'the password of ada' })
  const user = await api.get(`${USERS}/${String(made.body['id'])}`, token)
  t.like(user.body, { status: 'active', display_name: 'Ada Lovelace' })
})
