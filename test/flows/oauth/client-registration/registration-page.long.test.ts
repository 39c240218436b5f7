/** Runs the code of docs/guides/oauth/client-registration.md. */
import test, { type ExecutionContext } from 'ava'
import { docsPage, testCommands } from '../../../support/pages/docs-page.js'
import { sharedService } from '../../../support/service.js'
import { tenantAgent } from '../../../support/identity/tenant-agent.js'

async function opened(t: ExecutionContext) {
  const running = await sharedService('clients')
  t.teardown(() => running.end())
  const agent = await tenantAgent(running.baseUrl)
  return { BASE: running.baseUrl, TOKEN: agent.token, agent }
}

test('the program of docs/guides/oauth/client-registration.md registers itself', async (t) => {
  const { BASE, agent } = await opened(t)
  const made = await agent.ask('POST', '/api/v1/oauth/registration-tokens', {})
  const env = { BASE, INITIAL_TOKEN: String(made.body['token']) }
  t.regex(
    await docsPage(t, 'guides/oauth/client-registration').run('js', 0, env),
    /^Photo frame is [0-9a-f-]{36}$/,
  )
})

testCommands(
  'the commands of docs/guides/oauth/client-registration.md register an application',
  async (t) => {
    const { BASE, TOKEN } = await opened(t)
    const page = docsPage(t, 'guides/oauth/client-registration')
    const INITIAL_TOKEN = await page.run('sh', 0, { BASE, TOKEN })
    const shown = await page.run('sh', 1, { BASE, INITIAL_TOKEN })
    t.is(shown, 'Photo frame\nPicture frame\n204')
  },
)
