/** Client secret rotation over HTTP, without an overlap. */
import test from 'ava'
import { notThrough } from '../../../support/fleet/through.js'
import { sql } from '../../../support/storage/sql.js'
import { testService } from '../../../support/service.js'
import { callAt, tenantAgent } from '../../../support/identity/tenant-agent.js'

const running = await testService()

/** An application that gets its own tokens. */
async function rotating() {
  const agent = await tenantAgent(running.baseUrl)
  const created = await agent.ask('POST', '/api/v1/applications', {
    name: 'Rotating',
    grant_types: ['client_credentials'],
  })
  if (created.status !== 201) throw new Error(created.text)
  const { id, client_id: clientId, client_secret: secret } = created.body
  const path = `/api/v1/applications/${String(id)}`
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
  return { agent, path, secret, authenticates }
}

test.serial('a secret is rotated without a body: every member has a default', async (t) => {
  const { agent, path, secret, authenticates } = await rotating()
  t.is(await authenticates(secret), 200)

  const rotated = await agent.ask('POST', `${path}/rotate-secret`)
  t.is(rotated.status, 200, rotated.text)
  t.is(await authenticates(rotated.body['client_secret']), 200)
  t.is(await authenticates(secret), 401, 'without an overlap the previous secret ends immediately')
})

test.serial(
  'a revocation is effective immediately in its process, however late the notification is',
  async (t) => {
    notThrough('it asserts what one process does before the others')
    const first = await rotating()
    const second = await rotating()
    const third = await rotating()
    const told = (verb: string) =>
      sql(
        running.db.database,
        `do $$ begin
         alter table applications ${verb} trigger applications_standing;
         alter table application_secrets ${verb} trigger application_secrets_standing;
       end $$`,
        [],
      )
    await told('disable')
    t.teardown(() => told('enable'))
    for (const { authenticates, secret } of [first, second, third])
      t.is(await authenticates(secret), 200)
    t.is((await first.agent.ask('POST', `${first.path}/rotate-secret`)).status, 200)
    t.is(await first.authenticates(first.secret), 401)

    const disabled = { name: 'Rotating', grant_types: ['client_credentials'], status: 'disabled' }
    t.is(await second.authenticates(second.secret), 200)
    t.is((await second.agent.ask('PUT', second.path, disabled)).status, 200)
    t.is(await second.authenticates(second.secret), 401)

    t.is(await third.authenticates(third.secret), 200)
    t.is((await third.agent.ask('DELETE', third.path)).status, 204)
    t.is(await third.authenticates(third.secret), 401)
  },
)
