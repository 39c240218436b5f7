/** The console as an OpenID Connect client: sign-in, session, sign-out. */
import test from 'ava'
import { apiOf } from '../../../support/api.js'
import { consoleOwner, openConsole } from '../../../support/identity/console.js'
import { testService } from '../../../support/service.js'

const running = await testService()
const api = apiOf(running)
test.after.always(async () => {
  await api.close()
  await running.end()
})

test('an owner signs in, creates an application and reads it', async (t) => {
  const { browser, made } = await consoleOwner(api)
  const list = await openConsole(browser, '/console/applications')
  t.true(list.html.includes('client_type') || list.html.includes('Client type'))
  const form = await openConsole(browser, '/console/applications/do/create')
  const done = await browser.submit(
    form,
    {
      name: 'Ferry',
      redirect_uris: 'https://app.example/cb',
    },
    '/console/applications/do/create',
  )
  t.is(done.status, 200, done.html)
  t.regex(done.html, /data-secret="client_secret"/)
  t.true(made.tenantId !== '')
  const again = await openConsole(browser, '/console/applications')
  t.regex(again.html, /Ferry/)
})
