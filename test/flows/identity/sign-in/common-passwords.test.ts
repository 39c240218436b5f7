/** Too short or too common passwords are refused wherever one is set, without a breach service. */
import test from 'ava'
import { apiOf } from '../../../support/api.js'
import { openBrowser } from '../../../support/pages/browser.js'
import { sql } from '../../../support/storage/sql.js'
import { mailbox } from '../../../support/identity/addresses.js'
import { pathIn, sharedMail } from '../../../support/operations/letters.js'
import { ownerHome } from '../../../support/identity/owner.js'
import { bootstrapped, signIn } from '../../../support/identity/person.js'
import { sharedService } from '../../../support/service.js'

const USERS = '/api/v1/tenant-users'
const GOOD = 'a password of the harbour master'
const [ADA, BOB] = [mailbox('ada'), mailbox('bob')]
const SHORT = 'elevenchars'
const COMMON = ['password1234', 'QWERTYUIOP12', '123456789012', 'Welcome2026!!']

const running = await sharedService('people')
const mail = await sharedMail()
const api = apiOf(running)
test.after.always(async () => {
  await api.close()
  await running.end()
})

test.serial('the API refuses a short and a common password', async (t) => {
  const { token } = await api.workspace()
  for (const password of [SHORT, ...COMMON]) {
    const json = { email: BOB, password }
    const { status, body } = await api.call('POST', USERS, { token, json })
    t.is(status, 400, password)
    t.is((body['errors'] as { pointer: string }[])[0]!.pointer, '#/password')
  }
  t.deepEqual(await sql(running.db.database, 'select from accounts where email = $1', [BOB]), [])
  const json = { email: BOB, password: GOOD }
  t.is((await api.call('POST', USERS, { token, json })).body['status'], 'pre_provisioned')
})

test.serial('every page that sets one refuses a short and a common password', async (t) => {
  const workspace = await bootstrapped(running)
  const browser = openBrowser(running)
  t.teardown(() => browser.close())
  const refuses = async (form: Awaited<ReturnType<typeof browser.get>>, more = {}) => {
    for (const password of [SHORT, ...COMMON]) {
      const answer = await browser.submit(form, { ...more, password })
      t.is(answer.status, 200, form.path)
      t.true(answer.html.includes('role="alert"'), `${form.path} ${password}`)
      const words = password === SHORT ? '12 to 256 characters' : 'too common'
      t.true(answer.html.includes(words), answer.html)
    }
  }
  const person = { name: 'Ada', email: mailbox('owner') }
  const invite = await browser.get(new URL(workspace.inviteUrl).pathname)
  await refuses(invite, person)
  const accepted = await browser.submit(invite, { ...person, password: GOOD })
  t.is(accepted.location, await ownerHome(running, workspace.tenantId))
  await refuses(await browser.get('/auth/account/password'), { current: GOOD })

  const { token, body } = await api.workspace()
  await api.call('POST', USERS, { token, json: { email: ADA } })
  const invitation = await browser.get(pathIn(await mail.letterTo(ADA), '/auth/invitations/'))
  await refuses(invitation)
  t.is((await browser.submit(invitation, { password: GOOD })).location, '/auth/account')

  const login = openBrowser(running)
  t.teardown(() => login.close())
  const tenantSlug = String(body['tenant_slug'])
  const page = await signIn(login, { tenantSlug, email: ADA, password: 'not this one' })
  const forgot = await login.get(/href="(\/auth\/password\/forgot\?[^"]*)"/.exec(page.html)![1]!)
  await login.submit(forgot, { email: ADA })
  const reset = pathIn(await mail.letterTo(ADA, /reset/), '/auth/password/reset/')
  await refuses(await browser.get(reset))
})
