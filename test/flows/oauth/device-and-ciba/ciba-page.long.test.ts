/** Runs the code of docs/guides/oauth/ciba.md. */
import test, { type ExecutionContext } from 'ava'
import { ciba, CIBA_GRANT } from '../../../support/oauth/ciba.js'
import { docsPage, type Language, testCommands } from '../../../support/pages/docs-page.js'
import { bootstrapped, enrolledBrowser } from '../../../support/identity/person.js'
import { relyingParty } from '../../../support/oauth/relying-party.js'
import { sharedService } from '../../../support/service.js'

async function asks(t: ExecutionContext, language: Language, last: (email: string) => string) {
  const running = await sharedService('clients')
  t.teardown(() => running.end())
  const person = await bootstrapped(running)
  const party = await relyingParty(running, person, { grantTypes: [CIBA_GRANT] })
  const own = await enrolledBrowser(running, person)
  const application = docsPage(t, 'guides/oauth/ciba').begin(language, 0, {
    BASE: running.baseUrl,
    CLIENT_ID: party.clientId,
    CLIENT_SECRET: party.secret,
    EMAIL: person.email,
  })
  t.is(await application.line(), 'Asked: compare “Transfer 4711”')
  await ciba(running, party).answer(own, 'approve')
  t.is((await application.ended).split('\n').at(-1), last(person.email))
}

test('the program of docs/guides/oauth/ciba.md authenticates a user', (t) =>
  asks(t, 'js', (email) => `${email} said yes at aal2`))

testCommands('the commands of docs/guides/oauth/ciba.md authenticate a user', (t) =>
  asks(t, 'sh', (email) => email),
)
