/** Runs the code of docs/guides/agents/delegation.md. */
import test, { type ExecutionContext } from 'ava'
import { apiOf } from '../../support/api.js'
import { decide, fixtureOf, ownToken, present } from '../../support/agents/delegation.js'
import { docsPage, type Language, testCommands } from '../../support/pages/docs-page.js'
import { sharedService } from '../../support/service.js'

const api = apiOf(await sharedService('clients'))

async function lends(t: ExecutionContext, language: Language) {
  const here = await api.workspace()
  const person = await present(api, fixtureOf(here))
  const page = docsPage(t, 'guides/agents/delegation')
  const env = { BASE: api.at.baseUrl, AGENT_TOKEN: here.token }
  const asking = page.begin(language, 0, env)
  const [, code = ''] = /^Open \S+ and see (\S+)$/.exec(await asking.line())!
  t.is((await decide(person, { userCode: code.replace('-', '') })).status, 303)
  return { here, person, page, env, asking }
}

test('the agent of docs/guides/agents/delegation.md gets a delegation', async (t) => {
  const { asking } = await lends(t, 'js')
  t.is((await asking.ended).split('\n').at(-1), 'openid vault:list: 0 credentials')
})

testCommands(
  'the commands of docs/guides/agents/delegation.md request, list and revoke one',
  async (t) => {
    const { here, person, page, env } = await lends(t, 'sh')
    t.is(await page.run('sh', 1, env), '0')
    const HUMAN_TOKEN = await ownToken(api, here, person)
    t.is(await page.run('sh', 2, { ...env, HUMAN_TOKEN }), 'revoked')
  },
)
