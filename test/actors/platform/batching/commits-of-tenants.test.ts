/** Changes of several tenants share commits. Row-level security and the failure of one of them stay per tenant. */
import { randomUUID } from 'node:crypto'
import test from 'ava'
import { groupCommit } from '../../../../actors/platform/batching/group-commit.js'
import { silentLogger } from '../../../../runtime/kernel/log.js'
import { ChainCheck } from '../../../../storage/operations/audit-chain.js'
import { auditEventsAfter } from '../../../../storage/operations/audit.js'
import { openDatabase } from '../../../../storage/platform/database.js'
import {
  eachEventValues,
  appendStatement,
  insertWonEvents,
  eventsAfter,
  type NewEvent,
  type OutboxEvent,
} from '../../../../storage/platform/outbox.js'
import type { Database, Statement, TenantsPart } from '../../../../storage/platform/sql.js'
import { DatabaseUnavailable } from '../../../../storage/platform/unavailable.js'
import { relayTo } from '../../../support/storage/database-relay.js'
import { type FreshDatabase, freshDatabase, sameUrls } from '../../../support/storage/database.js'
import { numberAll } from '../../../support/storage/numbered.js'

let fresh: FreshDatabase
test.before(async () => {
  fresh = await freshDatabase()
  const statements = [
    'create table notes (tenant_id uuid not null, id integer not null, primary key (tenant_id, id))',
    'alter table notes enable row level security',
    'alter table notes force row level security',
    'create policy tenant on notes using (svc_visible(tenant_id)) with check (svc_visible(tenant_id))',
  ].map((text, at) => ({ name: `test.setup_${at}`, text }))
  for (const one of statements) await fresh.database.system((tx) => tx.query(one))
})
test.after.always(() => fresh?.drop())

const event = (tenantId: string, name = 'any'): NewEvent => ({
  id: randomUUID(),
  tenantId,
  type: 'auth.token.issued',
  data: { resource: { type: 'test', id: name } },
  occurredAt: new Date('2030-01-01T00:00:00Z'),
})

const insert = (tenantId: string, id: number): Statement => ({
  name: 'test.insert',
  text: 'insert into notes values ($1, $2)',
  values: [tenantId, id],
})
const ALL: Statement = { name: 'test.all', text: 'select tenant_id as "tenantId", id from notes' }

/** Takes the note if the tenant has it. */
function taking(
  tenantId: string,
  inputs: readonly number[],
  events: readonly OutboxEvent[],
): Statement {
  return {
    name: 'test.take',
    text: `with asked as (select * from unnest($8::int[]) with ordinality a (id, place)),
             won as (
               delete from notes n using asked a where n.tenant_id = $7::uuid and n.id = a.id
               returning a.place),
             recorded as (${insertWonEvents('won')})
           select place::integer from won`,
    values: [...eachEventValues(events), tenantId, inputs],
  }
}

const told = async (tenantId: string) => {
  const rows = await fresh.database.tenant(tenantId, (tx) => eventsAfter(tx, tenantId, 0, 1_000))
  return rows.map(({ id }) => id)
}

/** Records how transactions are made. The first one waits for `release`. */
function watched() {
  const shared: (readonly TenantsPart[])[] = []
  const alone: string[] = []
  let release: () => void = () => undefined
  const held = new Promise<void>((resolve) => (release = resolve))
  const database: Database = {
    ...fresh.database,
    among: async (parts, options) => {
      shared.push(parts)
      await held
      return fresh.database.among(parts, options)
    },
    together: async (tenantId, statements, options) => {
      alone.push(tenantId!)
      await held
      return fresh.database.together(tenantId, statements, options)
    },
  }
  return { commits: groupCommit(database), shared, alone, release: () => release() }
}

const tick = () => new Promise((resolve) => setImmediate(resolve))

test('changes of many tenants share a commit, and each event is in the feed of its tenant', async (t) => {
  const tenants = Array.from({ length: 50 }, () => randomUUID())
  const { commits, shared, alone, release } = watched()
  release()
  const sent = tenants.map((tenantId) => [1, 2, 3].map(() => event(tenantId)))
  await Promise.all(sent.flat().map((one) => commits.write(one.tenantId, { events: [one] })))
  t.true(shared.length <= 4, 'and not one commit for each tenant')
  t.deepEqual(alone, [])
  await numberAll(fresh.database)
  for (const [index, tenantId] of tenants.entries()) {
    t.deepEqual((await told(tenantId)).toSorted(), sent[index]!.map(({ id }) => id).toSorted())
    const rows = await fresh.database.tenant(tenantId, (tx) => auditEventsAfter(tx, tenantId, 0, 9))
    const check = new ChainCheck()
    t.deepEqual(
      rows.map((row) => check.add(row)),
      [undefined, undefined, undefined],
    )
  }
})

test('changes that are won share a commit too, and each wins only in its tenant', async (t) => {
  const [one, two, none] = [randomUUID(), randomUUID(), randomUUID()]
  for (const tenantId of [one, two]) await fresh.database.together(tenantId, [insert(tenantId, 1)])
  const { commits, shared, release } = watched()
  const events = new Map<string, NewEvent>(
    [one, two, none].map((tenantId) => [tenantId, event(tenantId)]),
  )
  const take = (tenantId: string) =>
    commits.win(tenantId, {
      row: '1',
      statement: taking,
      input: 1,
      event: events.get(tenantId)!,
    })
  const taken = [one, two, none].map(take)
  const other = event(none)
  const written = commits.write(none, { events: [other] })
  release()
  t.deepEqual(await Promise.all(taken), [true, true, false])
  await written
  t.is(shared.length, 1)
  t.deepEqual(await told(one), [events.get(one)!.id])
  t.deepEqual(await told(two), [events.get(two)!.id])
  t.deepEqual(await told(none), [other.id])
})

test('row-level security limits each part to its tenant, and the common part to new events', async (t) => {
  const [mine, theirs] = [randomUUID(), randomUUID()]
  const database = fresh.database
  const both = [mine, theirs]
  const [first, second, common] = await database.among([
    { tenantIds: [mine], statements: [insert(mine, 1), ALL] },
    { tenantIds: [theirs], statements: [insert(theirs, 2), ALL] },
    {
      tenantIds: both,
      statements: [ALL, appendStatement(both.map((tenantId) => event(tenantId)))],
    },
  ])
  t.deepEqual(first![1]!.rows, [{ tenantId: mine, id: 1 }])
  t.deepEqual(second![1]!.rows, [{ tenantId: theirs, id: 2 }])
  t.deepEqual(common![0]!.rows, [], 'the common part reads nothing')
  for (const parts of [
    [{ tenantIds: [mine], statements: [insert(theirs, 3)] }],
    [{ tenantIds: [mine], statements: [appendStatement([event(theirs)])] }],
    [{ tenantIds: both, statements: [insert(mine, 3)] }],
    [{ tenantIds: both, statements: [appendStatement([event(randomUUID())])] }],
  ]) {
    await t.throwsAsync(database.among(parts), { code: '42501' })
  }
  const change: Statement = {
    name: 'test.change',
    text: `update unnumbered_events set type = 'other' returning id`,
  }
  const remove: Statement = { name: 'test.remove', text: 'delete from unnumbered_events' }
  const [changed] = await database.among([{ tenantIds: both, statements: [change, remove] }])
  t.deepEqual(
    changed!.map(({ rowCount }) => rowCount),
    [0, 0],
  )
  await t.throwsAsync(database.among([{ tenantIds: [`${mine},`], statements: [ALL] }]), {
    message: /lower-case UUID/,
  })
  t.is((await told(mine)).length, 1)
  t.is((await told(theirs)).length, 1)
})

test('a change that fails does not fail the changes of other tenants', async (t) => {
  const tenants: readonly string[] = Array.from({ length: 12 }, () => randomUUID())
  const [broken, unreadable, foreign] = tenants
  const { commits, shared, release } = watched()
  const write = (tenantId: string) => {
    if (tenantId === broken) {
      const statement = { name: 'test.broken', text: 'select 1 / 0' }
      return commits.write(tenantId, { statements: [statement], events: [event(tenantId)] })
    }
    if (tenantId === foreign) return commits.write(tenantId, { events: [event(tenants.at(-1)!)] })
    const name = tenantId === unreadable ? '\u0000' : 'sound'
    return commits.write(tenantId, { events: [event(tenantId, name)] })
  }
  const all = Promise.allSettled(tenants.map(write))
  release()
  const failed = (await all).map(({ status }) => status === 'rejected')
  t.deepEqual(
    failed,
    tenants.map((_, index) => index < 3),
  )
  for (const tenantId of tenants) {
    t.is((await told(tenantId)).length, tenants.indexOf(tenantId) < 3 ? 0 : 1)
  }
  const before = shared.length
  await Promise.allSettled([broken!, tenants[4]!, tenants[5]!].map(write))
  const last = shared.slice(before)
  t.true(last.length <= 2)
  t.false(
    last.some((parts) => parts.some(({ tenantIds }) => tenantIds.includes(broken!))),
    'what failed commits alone for a while',
  )
})

test('a tenant whose rows are locked does not hold up other tenants', async (t) => {
  const [locked, free, later] = [randomUUID(), randomUUID(), randomUUID()]
  await fresh.database.together(locked, [insert(locked, 1)])
  let unlock: () => void = () => undefined
  const held = new Promise<void>((resolve) => (unlock = resolve))
  let isLocked: () => void = () => undefined
  const hasLock = new Promise<void>((resolve) => (isLocked = resolve))
  const holder = fresh.database.tenant(locked, async (tx) => {
    await tx.query({ name: 'test.lock', text: 'select from notes for update' })
    isLocked()
    await held
  })
  await hasLock
  const commits = groupCommit(fresh.database)
  let isWon: boolean | undefined
  const won = commits
    .win(locked, { row: '1', statement: taking, input: 1, event: event(locked) })
    .then((result) => (isWon = result))
  await Promise.all([
    commits.write(free, { events: [event(free)] }),
    commits.write(later, { events: [event(later)] }),
  ])
  await commits.write(free, { events: [event(free)] })
  t.is(isWon, undefined, 'it waits for the lock')
  unlock()
  await holder
  await won
  t.true(isWon)
  t.is((await told(free)).length, 2)
})

test('a tenant with many changes leaves the other tenants their share of the next commit', async (t) => {
  const { commits, shared, release } = watched()
  const greedy = randomUUID()
  const quiet = Array.from({ length: 5 }, () => randomUUID())
  const first = commits.write(quiet[0]!, { events: [event(quiet[0]!)] })
  await tick()
  const many = Array.from({ length: 450 }, () => commits.write(greedy, { events: [event(greedy)] }))
  const few = quiet
    .slice(1)
    .map((tenantId) => commits.write(tenantId, { events: [event(tenantId)] }))
  release()
  await Promise.all(few)
  t.is(shared.length, 1, 'all of them go with the first part of the many changes')
  t.deepEqual(shared[0]!.at(-1)!.tenantIds.toSorted(), [greedy, ...quiet.slice(1)].toSorted())
  await Promise.all([first, ...many])
  t.is((await told(greedy)).length, 450)
})

test('a tenant cannot use up the places of changes that wait', async (t) => {
  const { commits, release } = watched()
  const [greedy, other] = [randomUUID(), randomUUID()]
  const first = commits.write(other, { events: [] })
  await tick()
  const many = Promise.allSettled(
    Array.from({ length: 5_101 }, () => commits.write(greedy, { events: [] })),
  )
  const refused = await t.throwsAsync(commits.write(greedy, { events: [] }), {
    instanceOf: DatabaseUnavailable,
  })
  t.true((refused as DatabaseUnavailable).overloaded)
  const served = commits.write(other, { events: [] })
  release()
  await Promise.all([first, served])
  t.is((await many).filter(({ status }) => status === 'rejected').length, 101)
})

test('changes of several tenants are not repeated if the response to their commit is lost', async (t) => {
  const relay = await relayTo(t, fresh.url)
  const urls = sameUrls(relay.url)
  const options = { settings: fresh.settings, urls, plane: 'all', log: silentLogger } as const
  const database = await openDatabase(options)
  t.teardown(() => database.close())
  const commits = groupCommit(database)
  relay.loseAnswerTo(appendStatement([]))
  const tenants = [randomUUID(), randomUUID(), randomUUID()]
  const ends = await Promise.allSettled(
    tenants.map((tenantId) => commits.write(tenantId, { events: [event(tenantId)] })),
  )
  for (const end of ends) {
    t.true(end.status === 'rejected' && end.reason instanceof DatabaseUnavailable)
  }
  for (const tenantId of tenants) t.is((await told(tenantId)).length, 1, 'committed, and once')
})

test('any mixture of changes of several tenants is committed once and in its tenant', async (t) => {
  const tenants = Array.from({ length: 8 }, () => randomUUID())
  const commits = groupCommit(fresh.database)
  let state = 20_261
  const next = (below: number) => {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648
    return Math.floor((state / 2_147_483_648) * below)
  }
  const expected = new Map<string, Set<string>>(tenants.map((tenantId) => [tenantId, new Set()]))
  const outcomes: Promise<void>[] = []
  for (let at = 0; at < 400; at += 1) {
    const tenantId = tenants[next(tenants.length)]!
    const one = event(tenantId)
    const kind = next(5)
    const expect = () => void expected.get(tenantId)!.add(one.id)
    if (kind === 0) outcomes.push(commits.write(tenantId, { events: [one] }).then(expect))
    else if (kind === 1) {
      const statements = [insert(tenantId, at)]
      outcomes.push(commits.write(tenantId, { statements, events: [one] }).then(expect))
    } else if (kind === 2) {
      const change = { row: `${at % 7}`, statement: taking, input: next(at + 1), event: one }
      outcomes.push(commits.win(tenantId, change).then((won) => (won ? expect() : undefined)))
    } else if (kind === 3) {
      const apply = async () => ({ result: undefined, events: [one] })
      outcomes.push(commits.commit(tenantId, { row: `${at}`, apply }).then(expect))
    } else {
      const statement = { name: 'test.broken', text: 'select 1 / 0' }
      const failing = commits.write(tenantId, { statements: [statement], events: [one] })
      outcomes.push(failing.catch(() => undefined))
    }
    if (next(6) === 0) await tick()
  }
  await Promise.all(outcomes)
  for (const [tenantId, ids] of expected) {
    t.deepEqual((await told(tenantId)).toSorted(), [...ids].toSorted())
  }
})
