import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import test, { type ExecutionContext } from 'ava'
import { Client } from 'pg'
import { svc } from '../../flows/vault/command.js'
import { readMigrationFiles } from '../../../storage/platform/schema-version.js'
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

type Words = readonly string[]

async function ran(t: ExecutionContext, args: Words, environment: Record<string, string>) {
  const command = svc(t, { args: ['migrate', ...args], environment })
  const code = await command.ended()
  return { code, output: command.output() }
}

const jsonIn = (output: string) =>
  JSON.parse(output.slice(output.indexOf('{'))) as Record<string, unknown>

test('status and check compare the build with the database', async (t) => {
  const { url } = await emptyDatabase(t)
  const environment = { DATABASE_URL: url }
  const files = (await readMigrationFiles()).map(({ name }) => name)

  const empty = jsonIn((await ran(t, ['status', '--json'], environment)).output)
  t.deepEqual(empty['applied'], [])
  t.deepEqual(empty['pending'], files)
  const behind = await ran(t, ['check'], environment)
  t.is(behind.code, 1)
  t.regex(behind.output, /behind: the database lacks \d+ migrations.*npm run migrate/)
  const told = await ran(t, ['up', '--dry-run'], environment)
  t.is(told.code, 0)
  t.regex(told.output, /These migrations would run[\s\S]*0001_foundation/)
  t.deepEqual(jsonIn((await ran(t, ['status', '--json'], environment)).output)['applied'], [])

  t.is((await ran(t, ['up'], environment)).code, 0)
  const current = jsonIn((await ran(t, ['status', '--json'], environment)).output)
  t.deepEqual(current['applied'], files)
  t.deepEqual(current['pending'], [])
  t.is((await ran(t, ['check'], environment)).code, 0)

  const client = new Client({ connectionString: url })
  await client.connect()
  t.teardown(() => client.end())
  const finishing = files.filter((name) => /^\d+_finish_/.test(name))
  await client.query(`delete from svc_migrations where name ~ '^\\d+_finish_'`)
  const unfinished = await ran(t, ['status', '--json'], environment)
  t.like(jsonIn(unfinished.output), { pending: [], finishing })
  t.regex(
    (await ran(t, ['status'], environment)).output,
    /^finish +svc migrate finish: \d+_finish_/m,
  )
  t.is((await ran(t, ['check'], environment)).code, 0, 'a process does not need it')
  t.regex((await ran(t, ['finish'], environment)).output, /Applied: \d+_finish_/)
  t.regex((await ran(t, ['finish'], environment)).output, /The database is finished/)

  const changed = async (statement: string, verdict: string) => {
    await client.query(`begin; ${statement}; commit`)
    const { code, output } = await ran(t, ['check', '--json'], environment)
    t.is(code, 1)
    t.like(jsonIn(output), { verdict, compatible: false })
  }
  const last = files.at(-1)
  const later = (name: string, oldestBuild: number | null) =>
    client.query(
      `insert into svc_migrations (name, checksum, duration_ms, oldest_build) values ($1, 'x', 1, $2)`,
      [name, oldestBuild],
    )
  await later('9998_added', 0)
  const ahead = await ran(t, ['check'], environment)
  t.is(ahead.code, 0)
  t.regex(ahead.output, /^ahead, compatible: the database has 9998_added/m)
  t.is((await ran(t, ['up'], environment)).code, 0, 'the job of a rollback')

  await changed(`update svc_migrations set checksum = 'x' where name = '${last}'`, 'edited')
  await changed(
    `insert into svc_migrations (name, checksum, duration_ms) values ('9999_later', 'x', 1)`,
    'ahead',
  )
})

test('without a database, status and check describe the embedded one', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'svc-migrate-'))
  t.teardown(() => rmSync(folder, { recursive: true, force: true }))
  const environment = { SVC_DATA_DIR: join(folder, 'data') }
  const { code, output } = await ran(t, ['check'], environment)
  t.is(code, 1, output)
  t.regex(output, /the database lacks/)
  t.false(existsSync(join(folder, 'data')), 'looking creates nothing')
})
