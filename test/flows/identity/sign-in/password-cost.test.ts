/** Raised password costs apply to users as they sign in (ASVS 5.0, 11.4.2). */
import test from 'ava'
import { openBrowser } from '../../../support/pages/browser.js'
import { sql } from '../../../support/storage/sql.js'
import { bootstrapped, signIn } from '../../../support/identity/person.js'
import { testService } from '../../../support/service.js'

test('a password is rehashed at the first correct sign-in with other costs', async (t) => {
  const before = await testService()
  t.teardown(() => before.end())
  const raised = { SVC_AUTH__ARGON2_ITERATIONS: '2', SVC_AUTH__ARGON2_MEMORY_KIB: '128' }
  const after = await testService({ beside: before, environment: raised })
  t.teardown(() => after.end())
  const person = await bootstrapped(before)
  const hash = async () => {
    const query = 'select password_hash as hash from accounts where email = $1'
    const [row] = await sql<{ hash: string }>(before.db.database, query, [person.email])
    return row!.hash
  }
  const attempt = async (at: typeof before, password = person.password) => {
    const browser = openBrowser(at)
    const { status } = await signIn(browser, { ...person, password })
    await browser.close()
    return status
  }

  const first = await hash()
  t.regex(first, /^\$argon2id\$v=19\$m=64,t=1,p=1\$/)
  t.is(await attempt(before), 303)
  t.is(await hash(), first, 'the same costs, the same hash')
  t.is(await attempt(after, 'not the password'), 200)
  t.is(await hash(), first, 'a wrong password changes nothing')

  t.is(await attempt(after), 303)
  const second = await hash()
  t.regex(second, /^\$argon2id\$v=19\$m=128,t=2,p=1\$/)
  t.is(await attempt(after), 303)
  t.is(await hash(), second, 'once is enough')
  t.is(await attempt(after, 'not the password'), 200)
})
