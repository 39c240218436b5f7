/** One type of e-mail address: the API finds what SCIM takes, and both refuse the same. */
import test from 'ava'
import { type Api, apiOf } from '../../../support/api.js'
import { type Directory, openDirectory, SCIM_USER } from '../../../support/identity/directory.js'
import { sharedService, type TestService } from '../../../support/service.js'

let running: TestService
let api: Api
let directory: Directory
test.before(async () => {
  running = await sharedService('enterprise')
  api = apiOf(running)
  directory = await openDirectory(api)
})
test.after.always(async () => {
  await api?.close()
  await running?.end()
})

let users = 0
const provision = (email: string) => {
  users += 1
  const emails = [{ value: email, type: 'work', primary: true }]
  const json = { schemas: [SCIM_USER], userName: `user-${users}`, emails }
  return directory.send('POST', '/Users', json)
}
const lookUp = (email: string) =>
  api.get(`/api/v1/tenant-users?email=${encodeURIComponent(email)}`, directory.workspace.token)

for (const email of [
  'q&a@example.com',
  'o%neil@example.com',
  'x~y@example.com',
  'dept/ada@example.com',
  'a!#$^*=?{}|`@example.com',
  'ada@bücher.example.com',
  'jörg@example.com',
]) {
  test(`${email} is one account for SCIM and the API`, async (t) => {
    const made = await provision(email)
    t.is(made.status, 201, JSON.stringify(made.body))
    const found = await lookUp(email)
    t.is(found.status, 200, JSON.stringify(found.body))
    t.deepEqual(
      (found.body as unknown as { email: string }[]).map((user) => user.email),
      [email],
    )
  })
}

for (const email of [
  'a@.example.com',
  'a@example..com',
  'a@example.com.',
  'a..b@example.com',
  '.a@example.com',
  'a.@example.com',
  'a@-example.com',
  'a@b@example.com',
  'a@localhost',
]) {
  test(`${email} is refused everywhere`, async (t) => {
    t.is((await provision(email)).status, 400)
    t.is((await lookUp(email)).status, 400)
    const invited = await api.post('/api/v1/tenant-users', directory.workspace.token, {
      email,
      role: 'member',
    })
    t.is(invited.status, 400)
  })
}
