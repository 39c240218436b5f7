import test from 'ava'
import { Client } from 'pg'
import { silentLogger } from '../../../runtime/kernel/log.js'
import { openDatabase } from '../../../storage/platform/database.js'
import { DatabaseUnavailable } from '../../../storage/platform/unavailable.js'
import { type FreshDatabase, freshDatabase, sameUrls } from '../../support/storage/database.js'

const A = '018f0000-0000-7000-8000-00000000000a'
const B = '018f0000-0000-7000-8000-00000000000b'

let fresh: FreshDatabase
test.before(async () => {
  fresh = await freshDatabase()
  const client = new Client({ connectionString: fresh.url })
  await client.connect()
  await client.query(`
    create table notes (tenant_id uuid not null, id integer not null, text text, primary key (tenant_id, id));
    alter table notes enable row level security;
    alter table notes force row level security;
    create policy tenant on notes using (svc_visible(tenant_id)) with check (svc_visible(tenant_id));
    create table tally (id integer primary key, n integer not null);
    insert into tally values (1, 0), (2, 0);
    begin; set local svc.scope = 'system';
    insert into notes values ('${A}', 1, 'of a'), ('${B}', 1, 'of b');
    commit`)
  await client.end()
})
test.after.always(() => fresh?.drop())

const ALL_NOTES = { name: 'notes.all', text: 'select text from notes order by text' }

test('a query that forgot its WHERE sees the rows of its tenant only', async (t) => {
  const seen = (tenant: string) => fresh.database.tenant(tenant, (tx) => tx.query(ALL_NOTES))
  t.deepEqual((await seen(A)).rows, [{ text: 'of a' }])
  t.deepEqual((await seen(B)).rows, [{ text: 'of b' }])
})

test('a transaction that crosses tenants sees them all', async (t) => {
  const { rows } = await fresh.database.system((tx) => tx.query(ALL_NOTES))
  t.deepEqual(rows, [{ text: 'of a' }, { text: 'of b' }])
})

test('outside of a bound transaction there is no row of any tenant', async (t) => {
  const before = await fresh.database.single(ALL_NOTES)
  t.deepEqual(before.rows, [])
  await fresh.database.tenant(A, (tx) => tx.query(ALL_NOTES))
  const after = await fresh.database.single(ALL_NOTES)
  t.deepEqual(after.rows, [], 'the binding ended with its transaction')
})

test('a tenant cannot write or move a row into another tenant', async (t) => {
  const into = (text: string, name: string) =>
    fresh.database.tenant(A, (tx) => tx.query({ name, text, values: [B] }))
  await t.throwsAsync(into(`insert into notes values ($1, 9, 'x')`, 'notes.foreign'), {
    message: /row-level security/,
  })
  await t.throwsAsync(into('update notes set tenant_id = $1', 'notes.move'), {
    message: /row-level security/,
  })
  const { rowCount } = await fresh.database.tenant(A, (tx) =>
    tx.query({ name: 'notes.delete', text: 'delete from notes where tenant_id = $1', values: [B] }),
  )
  t.is(rowCount, 0)
})

for (const id of [`${A}'; drop table notes; --`, A.toUpperCase(), '', `${A}\n`]) {
  test(`a tenant id that is no lower-case UUID opens no transaction: ${JSON.stringify(id)}`, async (t) => {
    await t.throwsAsync(
      fresh.database.tenant(id, async () => 1),
      { message: /lower-case UUID/ },
    )
  })
}

test('a failure rolls back, and its connection serves on', async (t) => {
  const failed = fresh.database.tenant(A, async (tx) => {
    await tx.query({
      name: 'notes.add',
      text: `insert into notes values ($1, 5, 'gone')`,
      values: [A],
    })
    throw new Error('on purpose')
  })
  await t.throwsAsync(failed, { message: 'on purpose' })
  const { rows } = await fresh.database.tenant(A, (tx) => tx.query(ALL_NOTES))
  t.deepEqual(rows, [{ text: 'of a' }])
})

test('a transaction whose failure was swallowed does not pass for committed', async (t) => {
  const swallowed = fresh.database.system(async (tx) => {
    await tx
      .query({ name: 'fails', text: 'select 1 / $1::int', values: [0] })
      .catch(() => undefined)
    return 'done'
  })
  await t.throwsAsync(swallowed, { code: '22012' })
})

test('a statement after the end of its transaction is refused', async (t) => {
  const leaked = await fresh.database.system(async (tx) => tx)
  await t.throwsAsync(leaked.query(ALL_NOTES), { message: /over/ })
})

test('aborting stops the statement on the server and rolls back', async (t) => {
  const abort = new AbortController()
  const sleeping = fresh.database.system(
    async (tx) => {
      await tx.query({ name: 'tally.bump2', text: 'update tally set n = n + 1 where id = 2' })
      await tx.query({ name: 'sleep', text: `select pg_sleep(25), 'abort me'` })
    },
    { signal: abort.signal },
  )
  const watching = (async () => {
    const running = {
      name: 'watch',
      text: `select pid from pg_stat_activity where state = 'active' and query like '%pg_sleep(25), ''abort me''%' and pid <> pg_backend_pid()`,
    }
    while ((await fresh.database.single(running)).rowCount === 0);
    abort.abort(new Error('the client went away'))
    await t.throwsAsync(sleeping, { message: 'the client went away' })
    t.is((await fresh.database.single(running)).rowCount, 0, 'nothing runs on')
  })()
  await watching
  const { rows } = await fresh.database.single({
    name: 'tally.2',
    text: 'select n from tally where id = 2',
  })
  t.deepEqual(rows, [{ n: 0 }])
})

test('aborting while waiting for a connection leaves the pool whole', async (t) => {
  const db = await openDatabase({
    settings: { ...fresh.settings, max_connections: 1 },
    urls: fresh.urls,
    plane: 'all',
    log: silentLogger,
  })
  try {
    let enter: () => void = () => undefined
    let free: () => void = () => undefined
    const inside = new Promise<void>((resolve) => (enter = resolve))
    const freed = new Promise<void>((resolve) => (free = resolve))
    const held = db.system(async (tx) => {
      await tx.query(ALL_NOTES)
      enter()
      await freed
    })
    await inside
    const abort = new AbortController()
    const waiting = db.system((tx) => tx.query(ALL_NOTES), { signal: abort.signal })
    setTimeout(() => abort.abort(new Error('too long')), 30)
    await t.throwsAsync(waiting, { message: 'too long' })
    free()
    await held
    t.is((await db.system((tx) => tx.query(ALL_NOTES))).rowCount, 2)
  } finally {
    await db.close()
  }
})

test.serial(
  'a killed backend fails its transaction as unavailable, and the pool recovers',
  async (t) => {
    const killed = fresh.database.system(async (tx) => {
      const { rows } = await tx.query<{ pid: number }>({
        name: 'pid',
        text: 'select pg_backend_pid() as pid',
      })
      const killer = new Client({ connectionString: fresh.superuserUrl })
      await killer.connect()
      await killer.query('select pg_terminate_backend($1)', [rows[0]!.pid])
      await killer.end()
      await tx.query(ALL_NOTES)
    })
    await t.throwsAsync(killed, { instanceOf: DatabaseUnavailable })
    await t.notThrowsAsync(fresh.database.ping())
    // The error of a server after it has become a standby.
    const demoted = fresh.database.system(async (tx) => {
      await tx.query({ name: 'demote', text: 'set transaction read only' })
      await tx.query({ name: 'write', text: 'delete from coordination_values' })
    })
    await t.throwsAsync(demoted, { instanceOf: DatabaseUnavailable })
    const suicide = fresh.database.single({
      name: 'suicide',
      text: 'select pg_terminate_backend(pg_backend_pid())',
    })
    await t.throwsAsync(suicide, { instanceOf: DatabaseUnavailable })
    await t.notThrowsAsync(fresh.database.ping())
  },
)

test.serial('connections that died while idle are replaced without a failed request', async (t) => {
  const db = await openDatabase({
    settings: { ...fresh.settings, min_connections: 4 },
    urls: fresh.urls,
    plane: 'all',
    log: silentLogger,
  })
  try {
    t.is(db.stats().find(({ pool }) => pool === 'plane')?.open, 4, 'the minimum stands open')
    const killer = new Client({ connectionString: fresh.superuserUrl })
    await killer.connect()
    const round = async () => {
      await killer.query(
        `select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'svc plane' and datname = current_database() and state = 'idle'`,
      )
      await Promise.all(Array.from({ length: 8 }, () => db.tenant(A, (tx) => tx.query(ALL_NOTES))))
    }
    for (let i = 0; i < 5; i += 1) await t.notThrowsAsync(round())
    await killer.end()
  } finally {
    await db.close()
  }
})

test('prepared statements stay within the capacity, whatever is asked', async (t) => {
  const db = await openDatabase({
    settings: { ...fresh.settings, max_connections: 1, statement_cache_capacity: 8 },
    urls: fresh.urls,
    plane: 'all',
    log: silentLogger,
  })
  try {
    await db.system(async (tx) => {
      for (let round = 0; round < 3; round += 1) {
        for (let i = 0; i < 30; i += 1) {
          const { rows } = await tx.query({
            name: `n${i}`,
            text: `select ${i} as i, $1::int as r`,
            values: [round],
          })
          t.deepEqual(rows, [{ i, r: round }])
        }
      }
      const { rows } = await tx.query<{ n: number }>({
        name: 'count',
        text: 'select count(*) as n from pg_prepared_statements',
      })
      t.true(rows[0]!.n <= 8, `${rows[0]!.n} are prepared`)
    })
  } finally {
    await db.close()
  }
})

test('serializable transactions that race are run again until both have counted', async (t) => {
  const bump = () =>
    fresh.database.system(
      async (tx) => {
        const { rows } = await tx.query<{ n: number }>({
          name: 'tally.read',
          text: 'select n from tally where id = 1',
        })
        await new Promise((resolve) => setTimeout(resolve, 5))
        await tx.query({
          name: 'tally.write',
          text: 'update tally set n = $1 where id = 1',
          values: [rows[0]!.n + 1],
        })
      },
      { isolation: 'serializable' },
    )
  await Promise.all([bump(), bump(), bump()])
  const { rows } = await fresh.database.single({
    name: 'tally.1',
    text: 'select n from tally where id = 1',
  })
  t.deepEqual(rows, [{ n: 3 }])
})

test('each purpose has its own statement limit', async (t) => {
  const db = await openDatabase({
    settings: {
      ...fresh.settings,
      statement_timeout_secs: 3,
      background_statement_timeout_secs: 7,
    },
    urls: fresh.urls,
    plane: 'all',
    log: silentLogger,
  })
  try {
    const limit = async (pool: 'identity' | 'plane' | 'background') => {
      const { rows } = await db.system(
        (tx) =>
          tx.query({
            name: 'limit',
            text: `select current_setting('statement_timeout') as s, current_setting('idle_in_transaction_session_timeout') as i`,
          }),
        { pool },
      )
      return rows[0]
    }
    t.deepEqual(await limit('identity'), { s: '3s', i: '1min' })
    t.deepEqual(await limit('plane'), { s: '3s', i: '1min' })
    t.deepEqual(await limit('background'), { s: '7s', i: '1min' })
    t.deepEqual(await limit('plane'), { s: '3s', i: '1min' }, 'the longer limit does not stay')
  } finally {
    await db.close()
  }
})

test('a bigint that a number cannot hold is refused, a date stays a day', async (t) => {
  const ask = (text: string) => fresh.database.single({ name: text, text })
  t.deepEqual((await ask(`select 9007199254740991 as n, date '2030-01-31' as d`)).rows, [
    { n: Number.MAX_SAFE_INTEGER, d: '2030-01-31' },
  ])
  await t.throwsAsync(ask('select 9007199254740993 as n'), { instanceOf: RangeError })
})

test('a server that does not listen is unavailable, immediately and by name', async (t) => {
  const nowhere = new URL(fresh.url)
  nowhere.searchParams.set('host', '/nowhere')
  const urls = sameUrls(nowhere.href)
  const db = await openDatabase({ settings: fresh.settings, urls, plane: 'all', log: silentLogger })
  await t.throwsAsync(db.ping(), { instanceOf: DatabaseUnavailable })
  await db.close()
})
