/** A password replaced while it is being verified, and one hashed at another cost. docs/guides/identity/sign-in-and-sign-up.md, sessions. */
import test, { type ExecutionContext } from 'ava'
import { setTimeout as sleep } from 'node:timers/promises'
import { loadEngine } from '../../../../actors/identity/passwords/engine.js'
import { apiOf, type Json } from '../../../support/api.js'
import { openBrowser } from '../../../support/pages/browser.js'
import { sql } from '../../../support/storage/sql.js'
import { bootstrapped, signIn } from '../../../support/identity/person.js'
import { sharedService } from '../../../support/service.js'

const engine = await loadEngine()
const bytes = (text: string) => new Uint8Array(Buffer.from(text, 'utf8'))

/** A user whose password takes half a second to verify. New ones take no time. */
async function slowPerson(t: ExecutionContext) {
  const running = await sharedService('plain')
  const api = apiOf(running)
  t.teardown(() => api.end())
  const { token, body } = await api.workspace()
  const fixture = body['fixture_end_user'] as Json
  const [email, password] = [String(fixture['email']), String(fixture['password'])]
  const cost = { memoryKib: 65_536, iterations: 4, parallelism: 1 }
  const phc = await engine.hash(bytes(password), bytes('salt of this one'), cost)
  await sql(running)`update accounts set password_hash = ${phc} where email = ${email}`
  const person = { tenantSlug: String(body['tenant_slug']), email, password }
  return {
    rotate: () =>
      api.post(`/api/v1/sandbox/fixture-users/${String(fixture['id'])}/rotate-password`, token),
    enter() {
      const browser = openBrowser(running)
      return { browser, answer: signIn(browser, person) }
    },
  }
}

test('opens nothing', async (t) => {
  const { enter, rotate } = await slowPerson(t)
  const { browser, answer } = enter()
  // The hash has been read by now, and is being verified.
  await sleep(150)
  t.is((await rotate()).status, 200)
  await answer
  t.is((await browser.get('/auth/account')).status, 303, 'not signed in by a replaced password')
})

test('by another hash of the same password, signs in', async (t) => {
  const { enter } = await slowPerson(t)
  const both = [enter(), enter()]
  for (const { browser, answer } of both) {
    const { location, status, html } = await answer
    t.is(location, '/auth/account', `${status}: ${html}`)
    t.is((await browser.get('/auth/account')).status, 200)
  }
})

test('a password is hashed again at the first correct sign-in with other costs', async (t) => {
  const running = await sharedService('plain')
  t.teardown(() => running.end())
  const person = await bootstrapped(running)
  const hash = async () => {
    const query = 'select password_hash as hash from accounts where email = $1'
    const [row] = await sql<{ hash: string }>(running.db.database, query, [person.email])
    return row!.hash
  }
  const attempt = async (password = person.password) => {
    const browser = openBrowser(running)
    const { status } = await signIn(browser, { ...person, password })
    return status
  }
  const first = await hash()
  t.regex(first, /^\$argon2id\$v=19\$m=64,t=1,p=1\$/)
  t.is(await attempt(), 303)
  t.is(await hash(), first, 'the same costs, the same hash')

  const cost = { memoryKib: 128, iterations: 2, parallelism: 1 }
  const other = await engine.hash(bytes(person.password), bytes('salt of this one'), cost)
  await sql(running)`update accounts set password_hash = ${other} where email = ${person.email}`
  t.is(await attempt('not the password'), 200)
  t.is(await hash(), other, 'a wrong password changes nothing')
  t.is(await attempt(), 303)
  const second = await hash()
  t.regex(second, /^\$argon2id\$v=19\$m=64,t=1,p=1\$/)
  t.is(await attempt(), 303)
  t.is(await hash(), second, 'once is enough')
  t.is(await attempt('not the password'), 200)
})
