/** A new client secret over HTTP, when nothing is said about the old one. decisions.md 7.6, rotate-secret. */
import test from 'ava'
import { testService, type TestService } from '../support/service.js'
import { callAt, tenantAgent } from '../support/tenant-agent.js'

let running: TestService
test.before(async () => {
  running = await testService()
})
test.after.always(() => running?.end())

test('a secret is rotated without a body: every member of it has a default', async (t) => {
  const agent = await tenantAgent(running.baseUrl)
  const created = await agent.ask('POST', '/api/v1/applications', {
    name: 'Rotating',
    grant_types: ['client_credentials'],
  })
  t.is(created.status, 201, created.text)
  const { id, client_id: clientId, client_secret: first } = created.body
  const authenticates = async (secret: unknown) => {
    const { status } = await callAt(running.baseUrl, '/oauth/token', {
      method: 'POST',
      body: new URLSearchParams({
        grant_type: 'client_credentials',
        client_id: String(clientId),
        client_secret: String(secret),
      }),
    })
    return status
  }
  t.is(await authenticates(first), 200)

  const rotated = await agent.ask('POST', `/api/v1/applications/${String(id)}/rotate-secret`)
  t.is(rotated.status, 200, rotated.text)
  t.is(await authenticates(rotated.body['client_secret']), 200)
  t.is(await authenticates(first), 401, 'without an overlap the one of before ends at once')
})
