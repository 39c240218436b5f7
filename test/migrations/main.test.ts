import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import test, { type ExecutionContext } from 'ava'
import { Client } from 'pg'
import { dumpSchema } from '../support/storage/dump-schema.js'
import { runMigrations } from '../../migrations/main.js'
import { silentLogger } from '../../runtime/kernel/log.js'
import {
  MIGRATIONS_FOLDER,
  readAppliedMigrations,
  readMigrationFiles,
  requireMigratedSchema,
  rowSecurityBinds,
  SchemaMismatch,
} from '../../storage/platform/schema-version.js'
import { until } from '../support/service/watch.js'
import { emptyDatabase, freshDatabase } from '../support/storage/database.js'

/** A temporary folder of migrations. */
async function folderOf(t: ExecutionContext, files: Record<string, string>): Promise<URL> {
  const folder = await mkdtemp(join(tmpdir(), 'svc-migrations-'))
  t.teardown(() => rm(folder, { recursive: true, force: true }))
  for (const [name, sql] of Object.entries(files)) await writeFile(join(folder, name), sql)
  return pathToFileURL(`${folder}/`)
}

async function connect(t: ExecutionContext, url: string): Promise<Client> {
  const client = new Client({ connectionString: url })
  await client.connect()
  client.on('error', () => undefined)
  t.teardown(() => client.end())
  return client
}

const log = silentLogger
const ONE = { '0001_one.sql': '-- adds\ncreate table one (id integer);' }
const TWO = { ...ONE, '0002_two.sql': '-- adds\ncreate table two (id integer);' }

test('an empty database gets every file once, and a separate role the rows but not the tables', async (t) => {
  const { url, superuserUrl } = await emptyDatabase(t)
  const admin = await connect(t, superuserUrl)
  const role = `svc_test_guest_${Date.now()}`
  await admin.query(`create role ${role} nologin`)
  const files = (await readMigrationFiles()).map(({ name }) => name)
  t.true(files.includes('0001_foundation'))
  t.deepEqual(await runMigrations({ url, log, runtimeRoles: [role] }), files)
  t.deepEqual(await runMigrations({ url, log, runtimeRoles: [role] }), [])
  t.deepEqual(
    (await readAppliedMigrations(admin)).map(({ name }) => name),
    files,
  )
  await admin.query(`set role ${role}`)
  t.true(await rowSecurityBinds(admin))
  await t.notThrowsAsync(requireMigratedSchema(admin))
  await t.notThrowsAsync(admin.query('select from events'))
  await t.throwsAsync(admin.query('drop table events'), { message: /owner/ })
  await t.throwsAsync(admin.query('delete from svc_migrations'), { message: /permission denied/ })
  await admin.query('reset role')
  t.false(await rowSecurityBinds(admin), 'a superuser is not bound')
  await admin.query(`drop owned by ${role}; drop role ${role}`)
})

test('of five concurrent runners one migrates and four find nothing to do', async (t) => {
  const { url } = await emptyDatabase(t)
  const folder = await folderOf(t, TWO)
  const run = () => runMigrations({ url, log, folder })
  const runs = await Promise.all(Array.from({ length: 5 }, run))
  t.is(runs.filter(({ length }) => length > 0).length, 1)
})

test('a file that fails is undone as a whole, and those before it stay', async (t) => {
  const { url } = await emptyDatabase(t)
  const folder = await folderOf(t, {
    ...ONE,
    '0002_two.sql': 'create table two (id integer);\nselect 1 / 0;',
  })
  await t.throwsAsync(runMigrations({ url, log, folder }), {
    message: /0002_two failed and was rolled back: division by zero/,
  })
  const client = await connect(t, url)
  const { rows } = await client.query(`select to_regclass('one') as one, to_regclass('two') as two`)
  t.deepEqual(rows, [{ one: 'one', two: null }])
  t.deepEqual(await runMigrations({ url, log, folder: await folderOf(t, TWO) }), ['0002_two'])
})

test('a runner that is killed in the middle leaves the lock and the half-made file behind it', async (t) => {
  const { url, superuserUrl } = await emptyDatabase(t)
  const folder = await folderOf(t, {
    '0001_slow.sql': 'create table slow (id integer); select pg_sleep(30);',
  })
  const killed = runMigrations({ url, log, folder })
  const admin = await connect(t, superuserUrl)
  const kill = `select pg_terminate_backend(pid) from pg_stat_activity
    where application_name = 'svc migrate' and datname = current_database() and query like '%pg_sleep%'`
  const dying = t.throwsAsync(killed)
  while ((await admin.query(kill)).rowCount === 0);
  await dying
  t.deepEqual(await runMigrations({ url, log, folder: await folderOf(t, ONE) }), ['0001_one'])
})

for (const [title, before, after, message] of [
  [
    'a database that is ahead is refused by name',
    TWO,
    ONE,
    /has 0002_two, which are unknown to this version/,
  ],
  [
    'a file that was edited after it ran is refused by name',
    ONE,
    { '0001_one.sql': '-- edited' },
    /0001_one was changed after/,
  ],
  [
    'a file that would run after a later one is refused',
    { '0002_two.sql': TWO['0002_two.sql'] },
    TWO,
    /0001_one would run after 0002_two/,
  ],
] as const) {
  test(title, async (t) => {
    const { url } = await emptyDatabase(t)
    await runMigrations({ url, log, folder: await folderOf(t, before) })
    const folder = await folderOf(t, after)
    await t.throwsAsync(runMigrations({ url, log, folder }), {
      instanceOf: SchemaMismatch,
      message,
    })
    const client = await connect(t, url)
    await t.throwsAsync(requireMigratedSchema(client, folder), {
      instanceOf: SchemaMismatch,
      message,
    })
  })
}

test('the service refuses a database that is behind and names what it lacks', async (t) => {
  const { url } = await emptyDatabase(t)
  const client = await connect(t, url)
  const folder = await folderOf(t, TWO)
  await t.throwsAsync(requireMigratedSchema(client, folder), {
    message: /lacks 0001_one and 0002_two: run the migrations/,
  })
  await runMigrations({ url, log, folder: await folderOf(t, ONE) })
  await t.throwsAsync(requireMigratedSchema(client, folder), { message: /lacks 0002_two/ })
})

for (const name of ['1_one.sql', '0001-one.sql', '0001_One.sql', 'one.sql']) {
  test(`a file called ${name} is refused`, async (t) => {
    await t.throwsAsync(readMigrationFiles(await folderOf(t, { [name]: '' })), {
      message: /not a valid migration name/,
    })
  })
}

test('two files with one number are refused', async (t) => {
  const folder = await folderOf(t, { '0001_a.sql': '', '0001_b.sql': '' })
  await t.throwsAsync(readMigrationFiles(folder), { message: /two migrations 0001/ })
})

test('every file says in its first line whether old processes may keep running', async (t) => {
  for (const { name, oldestBuild } of await readMigrationFiles()) {
    t.true(oldestBuild !== null && oldestBuild <= Number(name.slice(0, 4)), name)
  }
})

/** The build has 0003_build and what is before it. The database has `later` too. */
for (const [title, later, obstacle] of [
  ['permits old builds', { '0004_later': 'may keep running: only adds.' }, null],
  ['permits this build', { '0004_later': 'may keep running from 0003: only adds.' }, null],
  [
    'needs a later build',
    { '0005_later': 'may keep running from 0004: they read the column.' },
    /0005_later needs a version with migration 0004; start that version$/,
  ],
  [
    'permits no older build',
    { '0004_later': 'must not keep running: it drops a table.' },
    /no older version may run on 0004_later/,
  ],
  [
    'is the second of two, and permits no older build',
    {
      '0004_later': 'may keep running: only adds.',
      '0005_more': 'must not keep running: it drops a table.',
    },
    /no older version may run on 0005_more/,
  ],
  [
    'does not say whom it permits',
    { '0004_later': 'will see.' },
    /0004_later does not say which older versions may run on it/,
  ],
  [
    'is of another history',
    { '0002_other': 'may keep running: only adds.' },
    /0002_other belongs before 0003_build/,
  ],
] as const) {
  test(`a newer migration ${title}`, async (t) => {
    const { url, superuserUrl } = await emptyDatabase(t)
    const first = (words: string) => `-- Old processes ${words}\nselect 1;`
    const own = {
      '0001_one.sql': ONE['0001_one.sql'],
      '0003_build.sql': first('may keep running: only adds.'),
    }
    const newer = Object.entries(later).map(([name, words]) => [`${name}.sql`, first(words)])
    const build = await folderOf(t, own)
    await runMigrations({
      url,
      log,
      folder: await folderOf(t, { ...own, ...Object.fromEntries(newer) }),
    })
    const client = await connect(t, superuserUrl)
    if (obstacle === null) {
      t.deepEqual(await requireMigratedSchema(client, build), Object.keys(later))
      t.deepEqual(await runMigrations({ url, log, folder: build }), [])
      // A file of this build that was edited is refused as before.
      await client.query(`update svc_migrations set checksum = 'x' where name = '0003_build'`)
      await t.throwsAsync(requireMigratedSchema(client, build), {
        message: /0003_build was changed/,
      })
    } else {
      const refused = { instanceOf: SchemaMismatch, message: obstacle }
      await t.throwsAsync(requireMigratedSchema(client, build), refused)
      await t.throwsAsync(runMigrations({ url, log, folder: build }), refused)
    }
  })
}

test('a database in use gets finishing migrations when it is finished, or with the next release', async (t) => {
  const first = (words: string) => `-- Old processes ${words}\nselect 1;`
  const release = {
    ...ONE,
    '0202_finish_one.sql': first('must not keep running: they read one.'),
  }
  const more = { ...release, '0203_more.sql': first('may keep running: only adds.') }
  const used = async () => {
    const { url } = await emptyDatabase(t)
    await runMigrations({ url, log, folder: await folderOf(t, ONE) })
    return { url, client: await connect(t, url) }
  }
  const folder = await folderOf(t, release)

  const empty = await emptyDatabase(t)
  t.deepEqual(await runMigrations({ url: empty.url, log, folder }), ['0001_one', '0202_finish_one'])

  const { url, client } = await used()
  t.deepEqual(await runMigrations({ url, log, folder }), [])
  t.deepEqual(await requireMigratedSchema(client, folder), [], 'a process can start without it')
  t.deepEqual(await requireMigratedSchema(client, await folderOf(t, ONE)), [], 'and an older one')
  t.deepEqual(await runMigrations({ url, log, folder, finish: true }), ['0202_finish_one'])
  t.deepEqual(await runMigrations({ url, log, folder, finish: true }), [])
  t.deepEqual(await requireMigratedSchema(client, folder), [])
  await t.throwsAsync(requireMigratedSchema(client, await folderOf(t, ONE)), {
    message: /no older version may run on 0202_finish_one/,
  })

  const later = await used()
  const longer = await folderOf(t, more)
  t.deepEqual(await runMigrations({ url: later.url, log, folder: longer }), ['0203_more'])
  t.deepEqual(await runMigrations({ url: later.url, log, folder: longer, finish: true }), [
    '0202_finish_one',
  ])

  // A file of the last release has its number.
  const released = { ...ONE, '0002_finish_two.sql': first('must not keep running: they read two.') }
  const old = await used()
  t.deepEqual(await runMigrations({ url: old.url, log, folder: await folderOf(t, released) }), [
    '0002_finish_two',
  ])
})

test('a database of a release that did not record old builds gets the column', async (t) => {
  const { url } = await emptyDatabase(t)
  await runMigrations({ url, log, folder: await folderOf(t, ONE) })
  const client = await connect(t, url)
  await client.query('alter table svc_migrations drop column oldest_build')
  const older = await readAppliedMigrations(client)
  t.deepEqual(
    older.map(({ oldestBuild }) => oldestBuild),
    [null],
  )
  await runMigrations({ url, log, folder: await folderOf(t, TWO) })
  t.deepEqual(
    (await readAppliedMigrations(client)).map(({ name }) => name),
    ['0001_one', '0002_two'],
  )
})

/** Policies that show rows to a transaction of one tenant: all except `crossing`. */
async function policiesForTenants(client: Client, table: string): Promise<number> {
  const { rows } = await client.query<{ count: number }>(
    `select count(*)::int as count from pg_policy
     where polrelid = $1::regclass and polname <> 'crossing'`,
    [table],
  )
  return rows[0]!.count
}

test('every table with a tenant is behind forced row-level security, its keys led by the tenant', async (t) => {
  const { superuserUrl } = await freshDatabase(t)
  const client = await connect(t, superuserUrl)
  const { rows } = await client.query(
    `select c.relname, c.relforcerowsecurity and c.relrowsecurity as secured,
            exists (select from pg_policy where polrelid = c.oid) as ruled, a.attnotnull as owned,
            (select a2.attname from pg_index i
             join pg_attribute a2 on a2.attrelid = c.oid and a2.attnum = i.indkey[0]
             where i.indrelid = c.oid and i.indisprimary) as leads
     from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attname = 'tenant_id'
     where c.relkind = 'r' and c.relnamespace = 'public'::regnamespace`,
  )
  t.true(rows.length > 3)
  for (const { relname, secured, ruled, owned, leads } of rows) {
    t.true(secured && ruled, relname)
    // Rows without a tenant are visible only to transactions that cross tenants.
    if (owned) t.is(leads, 'tenant_id', relname)
    else t.is(await policiesForTenants(client, relname), 0, relname)
  }
})

test('schema.sql is what the migrations come to', async (t) => {
  const { superuserUrl } = await freshDatabase(t)
  const dumped = await dumpSchema(await connect(t, superuserUrl))
  const written = await readFile(new URL('schema.sql', MIGRATIONS_FOLDER), 'utf8')
  t.is(dumped, written, 'run node dist/test/support/storage/write-schema.js')
})

test('a migration does not wait long for a table, and is tried again', async (t) => {
  const { url } = await emptyDatabase(t)
  await runMigrations({ url, log, folder: await folderOf(t, ONE) })
  const holder = await connect(t, url)
  await holder.query('begin; lock table one')
  const folder = await folderOf(t, {
    ...ONE,
    '0002_more.sql': '-- adds\nalter table one add column more text;',
  })
  let waits = () => undefined as void
  const waiting = new Promise<void>((resolve) => (waits = resolve))
  const running = runMigrations({ url, folder, log: { ...log, info: () => waits() } })
  await waiting
  await holder.query('commit')
  t.deepEqual(await running, ['0002_more'])
})

test('a migration that a deadlock with a request ended is tried again', async (t) => {
  const { url, superuserUrl } = await emptyDatabase(t)
  await runMigrations({ url, log, folder: await folderOf(t, TWO) })
  // The request has locked two and waits for one, which the migration has locked before it wants two. The runner does not find
  // the name of two, and does not lock it first.
  const folder = await folderOf(t, {
    ...TWO,
    '0003_both.sql': `-- adds
      alter table one add column more text;
      do $$ begin
        while exists (select from pg_locks where relation = ('t' || 'wo')::regclass and pid <> pg_backend_pid())
          and not exists (select from pg_locks where relation = 'one'::regclass and not granted)
        loop perform pg_sleep(0.01); end loop;
      end $$;
      do $$ begin execute 'alter table t' || 'wo add column more text'; end $$;`,
  })
  const request = await connect(t, superuserUrl)
  // Only the migration looks for a deadlock, so it is the one that is ended.
  await request.query(`set deadlock_timeout = '1h'; begin; lock table two in row exclusive mode`)
  const tries: unknown[] = []
  const running = runMigrations({
    url,
    folder,
    log: { ...log, info: (fields: unknown) => void tries.push(fields) },
  })
  const watch = await connect(t, superuserUrl)
  const isLocked = async () => {
    const { rowCount } = await watch.query(
      `select from pg_locks where relation = 'one'::regclass and mode = 'AccessExclusiveLock' and granted`,
    )
    return rowCount === 1
  }
  await until('the lock of the migration', isLocked)
  await request.query('lock table one in row exclusive mode; commit')
  t.deepEqual(await running, ['0003_both'])
  t.like(tries, [{ migration: '0003_both', tries: 1 }])
})
