import test from 'ava'
import { Client } from 'pg'
import { svc } from '../../flows/vault/command.js'
import { emptyDatabase } from '../../support/storage/database.js'

test('a split deployment is migrated without naming a plane', async (t) => {
  const { url } = await emptyDatabase()
  const environment = {
    DATABASE_URL: url,
    SVC_DEPLOYMENT__ALLOW_ALL_IN_ONE_RUNTIME_PLANE: 'false',
  }
  const first = svc(t, { args: ['migrate'], environment })
  t.is(await first.ended(), 0, first.output())
  t.regex(first.output(), /Applied: 0001/)
  const client = new Client({ connectionString: url })
  await client.connect()
  t.teardown(() => client.end())
  const { rows } = await client.query('select count(*)::int as tables from pg_tables')
  t.true(rows[0].tables > 50)

  // A process that serves requests must still name its plane.
  const serving = svc(t, { args: ['serve'], environment })
  t.is(await serving.ended(), 78)
  t.regex(serving.output(), /SVC_RUNTIME_PLANE/)
})
