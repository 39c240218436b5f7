import { randomUUID } from 'node:crypto'
import test from 'ava'
import { groupCommit } from '../../../../actors/platform/batching/group-commit.js'
import type { NewEvent, OutboxEvent } from '../../../../storage/platform/outbox.js'
import {
  eachEventValues,
  eventsAfter,
  INSERT_EVENTS,
  insertWonEvents,
} from '../../../../storage/platform/outbox.js'
import { openDatabase } from '../../../../storage/platform/database.js'
import type { Database, Statement, Transaction } from '../../../../storage/platform/sql.js'
import { DatabaseUnavailable } from '../../../../storage/platform/unavailable.js'
import { silentLogger } from '../../../../runtime/kernel/log.js'
import { freshDatabase, sameUrls } from '../../../support/storage/database.js'
import { relayTo } from '../../../support/storage/database-relay.js'
import { buildTokensFixture, type TokensFixture } from '../../oauth/tokens/tokens-fixture.js'

let fixture: TokensFixture
test.before(async () => {
  fixture = await buildTokensFixture()
})
test.after.always(() => fixture?.close())

const event = (tenantId: string, id = randomUUID()): NewEvent => ({
  id,
  tenantId,
  type: 'auth.token.issued',
  data: {},
  occurredAt: new Date('2030-01-01T00:00:00Z'),
})

/** Counts transactions of both kinds, and can hold them back. */
function counted(database: Database) {
  let transactions = 0
  let release: () => void = () => undefined
  const held = new Promise<void>((resolve) => {
    release = resolve
  })
  const count = async () => {
    transactions += 1
    await held
  }
  const watched: Database = {
    ...database,
    together: async (...asked) => {
      await count()
      return database.together(...asked)
    },
    tenant: async (...asked) => {
      await count()
      return database.tenant(...asked)
    },
  }
  return { watched, release, transactions: () => transactions }
}

const context = () => new Promise((resolve) => setImmediate(resolve))

const told = async (tenantId: string) => {
  const rows = await fixture.database.tenant(tenantId, (tx) => eventsAfter(tx, tenantId, 0, 100))
  return rows.map(({ id }) => id)
}

test('too many waiting changes are refused as overload', async (t) => {
  const stuck = { ...fixture.database, together: () => new Promise<never>(() => undefined) }
  const commits = groupCommit(stuck)
  for (let at = 0; at < 10_000; at += 1) {
    void commits.write(randomUUID(), { events: [] })
  }
  const error = await t.throwsAsync(commits.write(randomUUID(), { events: [] }), {
    instanceOf: DatabaseUnavailable,
  })
  t.true((error as DatabaseUnavailable).overloaded)
})

test('changes that arrive during a commit share the next one, decided by one call for each kind', async (t) => {
  const tenantId = await fixture.tenant('together')
  const before = await told(tenantId)
  const { watched, release, transactions } = counted(fixture.database)
  const commits = groupCommit(watched)
  const calls: (readonly number[])[] = []
  const decide = async (_: Transaction, __: string, inputs: readonly number[]) => {
    calls.push(inputs)
    return inputs.map((input) => input % 2 === 1)
  }
  const first = event(tenantId)
  const alone = commits.write(tenantId, { events: [first] })
  await context()
  const odd = [event(tenantId), event(tenantId)]
  const certain = event(tenantId)
  const decided = [1, 2, 3].map((input) =>
    commits.decide(tenantId, {
      row: `row ${3 - input}`,
      decide,
      input,
      events: (won) => (won ? [odd[(input - 1) / 2]!] : []),
    }),
  )
  const applied = commits.commit(tenantId, {
    row: 'row',
    apply: async () => ({ result: 'applied', events: [] }),
  })
  const written = commits.write(tenantId, { events: [certain] })
  release()
  await Promise.all([alone, written])
  t.deepEqual(await Promise.all(decided), [true, false, true])
  t.is(await applied, 'applied')
  t.deepEqual(calls, [[3, 2, 1]], 'in the order of their rows')
  t.is(transactions(), 2)
  const now = (await told(tenantId)).filter((id) => !before.includes(id))
  t.is(now[0], first.id)
  t.deepEqual(now.toSorted(), [first, certain, ...odd].map(({ id }) => id).toSorted())
})

test('a statement decides the changes of a commit and records the events of those that succeed', async (t) => {
  const tenantId = await fixture.tenant('won')
  const before = await told(tenantId)
  const { watched, release, transactions } = counted(fixture.database)
  const commits = groupCommit(watched)
  const odd = (
    _: string,
    inputs: readonly number[],
    events: readonly OutboxEvent[],
  ): Statement => ({
    name: 'test.odd',
    text: `with asked as (select * from unnest($7::int[]) with ordinality a (number, place)),
             won as (select place from asked where number % 2 = 1),
             recorded as (${insertWonEvents('won')})
           select place::integer from won`,
    values: [...eachEventValues(events), inputs],
  })
  const events = Array.from({ length: 4 }, () => event(tenantId))
  const compete = (input: number) =>
    commits.win(tenantId, {
      row: `row ${9 - input}`,
      statement: odd,
      input,
      event: events[input]!,
    })
  const certain = event(tenantId)
  const decided = [0, 1, 2].map(compete)
  const written = commits.write(tenantId, { events: [certain] })
  await context()
  const applied = commits.commit(tenantId, {
    row: 'row',
    apply: async () => ({ result: 'applied', events: [] }),
  })
  const later = compete(3)
  release()
  await written
  t.deepEqual(await Promise.all(decided), [false, true, false])
  t.is(await applied, 'applied')
  t.true(await later, 'also with a change that has its own statements')
  t.is(transactions(), 2)
  const now = (await told(tenantId)).filter((id) => !before.includes(id))
  t.deepEqual(now.toSorted(), [certain.id, events[1]!.id, events[3]!.id].toSorted())
})

test('few changes wait for the running commit, many start the next one immediately', async (t) => {
  const tenantId = await fixture.tenant('next')
  const before = (await told(tenantId)).length
  const { watched, release, transactions } = counted(fixture.database)
  const commits = groupCommit(watched)
  const write = (count: number) =>
    Array.from({ length: count }, () => commits.write(tenantId, { events: [event(tenantId)] }))
  const written = write(3)
  await context()
  t.is(transactions(), 1, 'what comes in one turn goes together')
  written.push(...write(7))
  await context()
  t.is(transactions(), 1)
  written.push(...write(1))
  await context()
  t.is(transactions(), 2)
  written.push(...write(50))
  await context()
  t.is(transactions(), 2, 'no third transaction')
  release()
  await Promise.all(written)
  t.is((await told(tenantId)).length - before, 61)
})

test('a failed change does not fail the other changes of its batch', async (t) => {
  const tenantId = await fixture.tenant('apart')
  const before = await told(tenantId)
  const { watched, release } = counted(fixture.database)
  const commits = groupCommit(watched)
  const first = commits.write(tenantId, { events: [event(tenantId)] })
  await context()
  const decide = async (_: Transaction, __: string, inputs: readonly string[]) => {
    if (inputs.includes('bad')) throw new Error('bad')
    return inputs
  }
  const ask = (input: string) =>
    commits.decide(tenantId, { row: input, decide, input, events: () => [event(tenantId)] })
  const broken = { name: 'test.broken', text: 'select 1 / 0' }
  const all = Promise.allSettled([
    ask('good'),
    ask('bad'),
    commits.write(tenantId, { statements: [broken], events: [event(tenantId)] }),
    commits.write(tenantId, { events: [event(tenantId)] }),
  ])
  release()
  await first
  const ends = (await all).map(({ status }) => status)
  t.deepEqual(ends, ['fulfilled', 'rejected', 'rejected', 'fulfilled'])
  t.is((await told(tenantId)).length - before.length, 3)
})

for (const [title, lost] of [
  ['decided', { name: 'transaction.commit', text: 'commit' }],
  ['unconditional', { name: 'outbox.append', text: INSERT_EVENTS }],
] as const) {
  test(`${title} changes are not repeated if the response to their commit is lost`, async (t) => {
    const fresh = await freshDatabase(t)
    const relay = await relayTo(t, fresh.url)
    const urls = sameUrls(relay.url)
    const options = { settings: fresh.settings, urls, plane: 'all', log: silentLogger } as const
    const database = await openDatabase(options)
    t.teardown(() => database.close())
    const tenantId = randomUUID()
    const commits = groupCommit(database)
    let decided = 0
    const decide = async (tx: Transaction, _: string, inputs: readonly string[]) => {
      decided += 1
      await tx.query({ name: 'test.any', text: 'select 1' })
      return inputs
    }
    relay.loseAnswerTo(lost)
    const ids = [randomUUID(), randomUUID(), randomUUID()]
    const ends = await Promise.allSettled(
      ids.map((id) =>
        title === 'unconditional'
          ? commits.write(tenantId, { events: [event(tenantId, id)] })
          : commits.decide(tenantId, {
              row: id,
              decide,
              input: id,
              events: () => [event(tenantId, id)],
            }),
      ),
    )
    for (const end of ends) {
      t.true(
        end.status === 'rejected' && end.reason instanceof DatabaseUnavailable,
        JSON.stringify(end),
      )
    }
    t.true(decided < 2)
    const rows = await fresh.database.tenant(tenantId, (tx) => eventsAfter(tx, tenantId, 0, 10))
    t.deepEqual(rows.map(({ id }) => id).toSorted(), ids.toSorted(), 'it was committed, once')
  })
}
