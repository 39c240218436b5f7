/** Statements are prepared under names that their texts give, so no two of them can clash on a connection. */
import test from 'ava'
import { silentLogger } from '../../../runtime/kernel/log.js'
import { openDatabase } from '../../../storage/platform/database.js'
import { preparedNameOf } from '../../../storage/platform/connection.js'
import { type FreshDatabase, freshDatabase } from '../../support/storage/database.js'
import { everyStatement } from '../../support/storage/every-statement.js'

/** Texts that stand-ins for arguments make invalid, and that are no statement of one connection. */
const NOT_RUN =
  /^(agent\.login_candidates_by_(1|null|undefined)|scim_user\.(count|list)|seed\.(1|null|undefined|analyze)|event_numbers\.free)$/
const PARAMETER = /\$(\d+)/g
const PREPARED = {
  name: 'prepared',
  text: 'select name, statement as text from pg_prepared_statements',
}

let fresh: FreshDatabase
test.before(async () => (fresh = await freshDatabase()))
test.after.always(() => fresh?.drop())

/** Every pool has one connection. */
const open = (more: { readonly prepared_statements?: 'unnamed' } = {}) =>
  openDatabase({
    settings: {
      ...fresh.settings,
      max_connections: 1,
      identity_max_connections: 1,
      statement_cache_capacity: 2_048,
      ...more,
    },
    urls: fresh.urls,
    plane: 'all',
    log: silentLogger,
  })

test('all statements of storage run on one connection', async (t) => {
  const db = await open()
  t.teardown(() => db.close())
  const statements = (await everyStatement()).filter(({ name }) => !NOT_RUN.test(name))
  const names = new Set(statements.map(({ name }) => name))
  t.true(names.size > 700)
  t.true(names.size < statements.length, 'names repeat')
  const clashes: string[] = []
  for (const round of ['prepares', 'is prepared']) {
    for (const { name, text } of statements) {
      const last = Math.max(0, ...[...text.matchAll(PARAMETER)].map(([, at]) => Number(at)))
      const values = Array.from({ length: last }, () => null)
      // A row of nulls breaks constraints of data (classes 22 and 23), or is refused by a function.
      const refusal = await db.together(null, [{ name, text, values }]).then(
        () => '23',
        ({ cause, code = (cause as { code?: string } | undefined)?.code }) => String(code),
      )
      if (!/^(22|23|P0001)/.test(refusal)) clashes.push(`${name} ${round}: ${refusal}`)
    }
  }
  t.deepEqual(clashes, [])
  // After a failure a statement that was new is closed, because it may not be prepared.
  const ran = (await db.together(null, [PREPARED]))[0]!.rows
  t.true(ran.length > 500)
  for (const { name, text } of ran) {
    t.is(name, preparedNameOf({ name: 'any', text: String(text) }))
  }
})

for (const prepared of ['named', 'unnamed'] as const) {
  test(`two texts with one name run on one connection, ${prepared}`, async (t) => {
    const db = await open(prepared === 'named' ? {} : { prepared_statements: 'unnamed' })
    t.teardown(() => db.close())
    const one = { name: 'same', text: 'select $1::int as a', values: [1] }
    const two = { name: 'same', text: 'select $1::text as b, 2 as c', values: ['x'] }
    for (let round = 0; round < 2; round += 1) {
      const together = await db.together(null, [one, two, one])
      t.deepEqual(
        together.map(({ rows }) => rows),
        [[{ a: 1 }], [{ b: 'x', c: 2 }], [{ a: 1 }]],
      )
      t.deepEqual((await db.single(two)).rows, [{ b: 'x', c: 2 }])
      t.deepEqual((await db.single(one)).rows, [{ a: 1 }])
      const inTurn = await db.system(async (tx) => [
        ...(await tx.query(two)).rows,
        ...(await tx.query(one)).rows,
      ])
      t.deepEqual(inTurn, [{ b: 'x', c: 2 }, { a: 1 }])
    }
  })
}
