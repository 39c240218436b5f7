/** Runs the commands of docs/guides/agents/agents.md. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { docsPage, testCommands } from '../../support/pages/docs-page.js'
import { sharedService } from '../../support/service.js'

testCommands(
  'the commands of docs/guides/agents/agents.md take an agent from a key to a token',
  async (t) => {
    const running = await sharedService('patient')
    t.teardown(() => running.end())
    const page = docsPage(t, 'guides/agents/agents')
    t.is(page.blocks('sh').length, 7)
    t.is(await page.runCommands({ BASE: running.baseUrl }), 'users:read vault:list')
    t.regex(readFileSync(join(page.folder, '.env.local'), 'utf8'), /^SVC_CLIENT_SECRET=svcs_/m)
  },
)

testCommands('a challenge that starts with a hyphen is not an option', async (t) => {
  const page = docsPage(t, 'guides/agents/agents')
  const work = page.blocks('sh').findIndex((block) => block.startsWith('NONCE='))
  const challenge = { challenge_token: '-e1', difficulty_bits: 4, min_duration_seconds: 0 }
  await t.notThrowsAsync(page.run('sh', work, { STARTED: JSON.stringify(challenge) }))
})
