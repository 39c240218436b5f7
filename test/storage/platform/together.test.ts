/** Transactions in one round trip: bound to a tenant, atomic, on a connection that stays usable. */
import test from 'ava'
import { Client } from 'pg'
import { silentLogger } from '../../../runtime/kernel/log.js'
import { type OpenDatabase, openDatabase } from '../../../storage/platform/database.js'
import type { Statement } from '../../../storage/platform/sql.js'
import { DatabaseUnavailable } from '../../../storage/platform/unavailable.js'
import { type FreshDatabase, freshDatabase } from '../../support/storage/database.js'

const A = '018f0000-0000-7000-8000-00000000000a'
const B = '018f0000-0000-7000-8000-00000000000b'

let fresh: FreshDatabase
/** One connection, so that leftovers of a transaction would affect the next. */
let db: OpenDatabase
test.before(async () => {
  fresh = await freshDatabase()
  const client = new Client({ connectionString: fresh.url })
  await client.connect()
  await client.query(`
    create table notes (tenant_id uuid not null, id integer not null, primary key (tenant_id, id));
    alter table notes enable row level security;
    alter table notes force row level security;
    create policy tenant on notes using (svc_visible(tenant_id)) with check (svc_visible(tenant_id))`)
  await client.end()
  db = await open({})
})
test.after.always(async () => {
  await db?.close()
  await fresh?.drop()
})

const open = (more: { readonly statement_cache_capacity?: number }) =>
  openDatabase({
    settings: { ...fresh.settings, max_connections: 1, identity_max_connections: 1, ...more },
    urls: fresh.urls,
    plane: 'all',
    log: silentLogger,
  })

const add = (tenantId: string, id: number): Statement => ({
  name: 'notes.add',
  text: 'insert into notes values ($1, $2) returning id',
  values: [tenantId, id],
})
const ALL: Statement = { name: 'notes.all', text: 'select tenant_id as tenant, id from notes' }
const ids = async (tenantId: string | null) => {
  const [found] = await db.together(tenantId, [ALL])
  return found!.rows.map(({ id }) => id).sort()
}

test.serial(
  'each statement answers at its place, and the tenant is bound for all of them',
  async (t) => {
    const results = await db.together(A, [add(A, 1), add(A, 2), ALL])
    t.deepEqual(
      results.map(({ rowCount }) => rowCount),
      [1, 1, 2],
    )
    t.deepEqual(results[0]?.rows, [{ id: 1 }])
    await db.together(B, [add(B, 3)])
    t.deepEqual(await ids(A), [1, 2])
    t.deepEqual(await ids(B), [3])
    t.deepEqual(await ids(null), [1, 2, 3])
    t.deepEqual((await db.single(ALL)).rows, [], 'the binding ended with its transaction')
    await t.throwsAsync(db.together(`${A}'`, [ALL]), { message: /lower-case UUID/ })
  },
)

test.serial(
  'what fails undoes what came before it, prepared or not, and the connection serves on',
  async (t) => {
    const twice = db.together(A, [add(A, 10), { ...add(A, 1), name: 'notes.add_again' }])
    await t.throwsAsync(twice, { code: '23505' })
    const foreign = db.together(A, [add(A, 11), add(B, 11)])
    await t.throwsAsync(foreign, { code: '42501' })
    const neverParsed = { name: 'notes.broken', text: 'select nothing from nowhere' }
    await t.throwsAsync(db.together(A, [add(A, 12), neverParsed, ALL]), { code: '42P01' })
    t.deepEqual(await ids(null), [1, 2, 3])
    await db.together(A, [{ ...add(A, 4), name: 'notes.add_again' }, add(A, 5)])
    t.deepEqual(await ids(A), [1, 2, 4, 5])
  },
)

test.serial(
  'values that cannot be written change nothing and affect no other transaction',
  async (t) => {
    const circular: Record<string, unknown> = {}
    circular['self'] = circular
    const unwritable = { name: 'notes.odd', text: 'select $1::jsonb', values: [circular] }
    await t.throwsAsync(db.together(A, [add(A, 20), unwritable]))
    t.deepEqual(await ids(A), [1, 2, 4, 5])
  },
)

test.serial('listeners are woken once it is committed, and not by what failed', async (t) => {
  const woken: string[] = []
  await db.listener.listen('svc_together', {
    notified: (payload) => {
      woken.push(payload)
    },
  })
  await t.throwsAsync(db.together(A, [add(A, 1)], { wakes: () => ['svc_together'] }))
  await db.together(A, [ALL], { wakes: ([all]) => (all?.rowCount === 4 ? ['svc_together'] : []) })
  for (let waited = 0; woken.length === 0 && waited < 500; waited += 1) {
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
  t.is(woken.length, 1)
})

test.serial(
  'statements stay within the capacity, and statements of other transactions can be used',
  async (t) => {
    const small = await open({ statement_cache_capacity: 8 })
    try {
      for (let round = 0; round < 3; round += 1) {
        for (let at = 0; at < 12; at += 1) {
          const one = {
            name: `n${at}`,
            text: `select ${at} as at, $1::int as round`,
            values: [round],
          }
          const [both] = await small.together(null, [one, ALL])
          t.deepEqual(both?.rows, [{ at, round }])
          const { rows } = await small.system((tx) => tx.query(one))
          t.deepEqual(rows, [{ at, round }])
        }
      }
      const count = { name: 'count', text: 'select count(*) as n from pg_prepared_statements' }
      const [counted] = await small.together(null, [count])
      t.true(Number(counted?.rows[0]?.['n']) <= 8, JSON.stringify(counted?.rows))
    } finally {
      await small.close()
    }
  },
)

test.serial(
  'rows look as their statement does now, also where it was prepared again',
  async (t) => {
    const small = await open({ statement_cache_capacity: 4 })
    const client = new Client({ connectionString: fresh.url })
    await client.connect()
    try {
      await client.query('create table shapes (a bigint); insert into shapes values (7)')
      const all = { name: 'shapes.all', text: 'select * from shapes' }
      const none = { name: 'shapes.none', text: 'select * from shapes where false' }
      const look = async () => {
        const [found, twice, empty] = await small.together(null, [all, all, none])
        t.deepEqual(twice, found)
        t.deepEqual(empty, { rows: [], rowCount: 0 })
        return found!.rows
      }
      t.deepEqual(await look(), [{ a: 7 }])
      t.deepEqual(await look(), [{ a: 7 }], 'as it is known')
      await client.query('alter table shapes rename a to b; alter table shapes add c text')
      // The row description of a prepared statement must not change.
      await t.throwsAsync(small.together(null, [all]), { code: '0A000' })
      for (let at = 0; at < 6; at += 1) {
        await small.together(null, [{ name: `shapes.${at}`, text: `select ${at} as at` }])
      }
      t.deepEqual(await look(), [{ b: 7, c: null }])
    } finally {
      await client.query('drop table if exists shapes')
      await client.end()
      await small.close()
    }
  },
)

test.serial('a value beyond what a program can hold fails', async (t) => {
  const huge = { name: 'notes.huge', text: 'select 9007199254740993::bigint as n' }
  await t.throwsAsync(
    db.tenant(A, async (tx) => {
      await tx.query(add(A, 41))
      await tx.query(huge)
    }),
    { instanceOf: RangeError },
  )
  t.false((await ids(A)).includes(41))
})

test.serial('a connection that dies under it is unavailable; the next gets another', async (t) => {
  const stop = {
    name: 'stop',
    text: 'select pg_terminate_backend(pg_backend_pid())',
  }
  await t.throwsAsync(db.together(A, [add(A, 30), stop]), { instanceOf: DatabaseUnavailable })
  t.deepEqual(await ids(A), [1, 2, 4, 5])
})
