/** Own service: it changes the schema, and reads the log. */
/** A process of this build starts on the schema of the next one (docs/guides/operations/upgrade.md#roll-back). */
import test from 'ava'
import { Client } from 'pg'
import { runMigrations } from '../../../migrations/main.js'
import { silentLogger } from '../../../runtime/kernel/log.js'
import { bootstrap, callerOf, clientToken, demand, login } from '../../support/agents/journey.js'
import { ownService } from '../../support/service/own-service.js'
import { LATER, laterMigrations } from '../../support/storage/later-migrations.js'

test('a build starts and serves on a newer schema that permits it, and refuses another one', async (t) => {
  const first = await ownService()
  t.teardown(() => first.end())
  const space = await bootstrap(callerOf(first.baseUrl))
  const later = laterMigrations()
  t.teardown(() => later.remove())
  const { url, superuserUrl } = first.db
  t.deepEqual(await runMigrations({ url, log: silentLogger, folder: later.folder }), [LATER])

  const lines: string[] = []
  const second = await ownService({ peerOf: first, onLog: (line) => lines.push(line) })
  try {
    const http = callerOf(second.baseUrl)
    demand(await clientToken(http, space), 200)
    const session = demand(await login(http, space), 200)
    const bearer = { authorization: `Bearer ${session.body['access_token']}` }
    const created = await http.post(
      '/api/v1/applications',
      { name: 'On a newer schema', redirect_uris: ['https://app.example/cb'] },
      bearer,
    )
    demand(created, 201)
    demand(await http.call(`/api/v1/applications/${created.body['id']}`, { headers: bearer }), 200)
    await bootstrap(http)
    t.true(lines.some((line) => line.includes('newer than this build') && line.includes(LATER)))
  } finally {
    await second.end()
  }

  const admin = new Client({ connectionString: superuserUrl })
  await admin.connect()
  t.teardown(() => admin.end())
  await admin.query(`update svc_migrations set oldest_build = 9000 where name = $1`, [LATER])
  await t.throwsAsync(ownService({ peerOf: first }), {
    message: /has 9000_later.* no older version may run on 9000_later; start that version/,
  })
})
