/** What ends with what: every statement that ends something runs the table (docs/concepts/ends.md). */
import { readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import test from 'ava'
import { ending, type EndingStatement } from '../../../storage/platform/ends/ending.js'
import { type Ending, ENDINGS, ENDS, TRIGGERS } from '../../../storage/platform/ends/table.js'
import type { Statement, Transaction } from '../../../storage/platform/sql.js'
import { readEndsPage, readSchema } from '../../support/storage/ends-page.js'
import { everyStatement } from '../../support/storage/every-statement.js'

/** Statements that write such a column or delete such a row, and end nothing. */
const ENDS_NOTHING: Readonly<Record<string, string>> = {
  'browser_session.remove_expired': 'the session expired before, and its tokens with it',
  'browser_session.replace':
    'the tokens stay valid and end with the session that replaces it. It tells the applications of another user',
  'delegation.remove_ended': 'the delegation expired before, and its session with it',
  'issued_credential.remove_ended': 'the credential expired before',
  'scim_group.give_role': 'adds a role',
  'sign_in.record': 'the first sign-in activates a user whom a directory made',
  'tenant_user.activate_with_role':
    'adds a role, or gives one to a removed user without credentials',
  'tenant_user.reactivate': 'a suspended user gets the earlier status',
  'tenant_user.revive': 'a removed user without credentials comes back',
}

const NAMES = Object.keys(ENDINGS) as readonly Ending[]
const endingOf = new Map<string, Ending>(
  NAMES.flatMap((name) => ENDINGS[name].writes.map((write) => [write, name] as const)),
)
const TABLES = [...new Set([...endingOf.keys()].map((write) => /^\w+ (\w+)/.exec(write)![1]!))]

/** The table is not named after `on conflict`. */
const UPDATE = /\b(?:do update|update (?:only )?(?!set )(\w+)(?: (?:as )?(?!set )\w+)?) set /g

/** The assignments of a `set`, up to the next clause: columns with what they get. */
function assignments(text: string): readonly (readonly [column: string, value: string])[] {
  const parts: string[] = ['']
  let depth = 0
  for (const [token] of text.matchAll(/'[^']*'|\w+|\s+|./g)) {
    const isLast =
      depth === 0 &&
      (token === 'where' ||
        token === 'returning' ||
        (token === 'from' && !parts.at(-1)!.endsWith('distinct ')))
    if ('(['.includes(token)) depth += 1
    if (')]'.includes(token)) depth -= 1
    if (isLast || depth < 0) break
    if (token === ',' && depth === 0) parts.push('')
    else parts.push(`${parts.pop()}${token}`)
  }
  return parts.map((part) => {
    const [, column, value] = /^\s*(\w+) = (.*?)\s*$/.exec(part) ?? []
    if (column === undefined) throw new Error(`not an assignment: ${part}`)
    return [column, value!]
  })
}

/** The writes of a statement, as the table names them. `= 'active'` ends nothing. */
function writesOf(text: string): readonly string[] {
  const flat = text
    .toLowerCase()
    .replaceAll(/--[^\n]*/g, ' ')
    .replaceAll(/\s+/g, ' ')
  const writes = [...flat.matchAll(/\b(insert into|delete from) (\w+)/g)].map(
    ([, verb, table]) => `${verb!.split(' ')[0]} ${table}`,
  )
  for (const found of flat.matchAll(UPDATE)) {
    const [matched, named] = found
    const inserted = flat.slice(0, found.index).lastIndexOf('insert into ')
    const table = named ?? /^insert into (\w+)/.exec(flat.slice(inserted))![1]
    for (const [column, value] of assignments(flat.slice(found.index + matched.length))) {
      if (value !== `'active'`) writes.push(`update ${table}.${column}`)
    }
  }
  return writes
}

test('every statement that ends something runs the table', async (t) => {
  const used = new Set<Ending>()
  const outside: string[] = []
  const exempt = new Set<string>()
  for (const statement of (await everyStatement()) as readonly Partial<EndingStatement>[]) {
    const { name = '', text = '', ending: by } = statement
    // A row of the table runs only after a change.
    if (ENDS.some((end) => end.name === name)) continue
    const needed = new Set(writesOf(text).flatMap((write) => endingOf.get(write) ?? []))
    if (by !== undefined) used.add(by)
    if (needed.size === 0) continue
    if (name in ENDS_NOTHING) exempt.add(name)
    else if (needed.size > 1 || !needed.has(by!)) outside.push(`${name}: ${[...needed].join()}`)
  }
  t.deepEqual(outside, [])
  t.deepEqual([...used].toSorted(), NAMES.toSorted())
  t.deepEqual([...exempt].toSorted(), Object.keys(ENDS_NOTHING))
})

test('what a statement writes is found', (t) => {
  const found: Readonly<Record<string, readonly string[]>> = {
    'with a as (update agents set status = $2, updated_at = $3 where id = $1) select from a': [
      'update agents.status',
      'update agents.updated_at',
    ],
    "update tenant_users u set status = 'active'": [],
    'update tenant_users u set account_active = (select s from x where y), roles = $1 from b': [
      'update tenant_users.account_active',
      'update tenant_users.roles',
    ],
    'update accounts a set name = case when a is distinct from b then $1 end, status = $2 from b': [
      'update accounts.name',
      'update accounts.status',
    ],
    'insert into delegations as d (a) values (1) on conflict (a) do update set revoked_at = $1': [
      'insert delegations',
      'update delegations.revoked_at',
    ],
    'with gone as (delete from agents where id = $1) select from gone': ['delete agents'],
  }
  for (const [text, writes] of Object.entries(found)) t.deepEqual(writesOf(text), writes, text)
})

test('only storage writes these tables', (t) => {
  const write = new RegExp(
    String.raw`\b(update|delete from|merge into|truncate)\s+(${TABLES.join('|')})\b`,
    'i',
  )
  const root = fileURLToPath(new URL('../../../../', import.meta.url))
  const found = ['actors', 'gateway', 'runtime', 'bench'].flatMap((folder) =>
    readdirSync(`${root}${folder}`, { recursive: true, encoding: 'utf8' })
      .filter((name) => name.endsWith('.ts') && !name.includes('node_modules'))
      .filter((name) => write.test(readFileSync(`${root}${folder}/${name}`, 'utf8'))),
  )
  t.deepEqual(found, [])
})

const KEY = { tenantId: '1', id: '2' }

/** A transaction that records what is sent and forgotten, and answers each statement with one key. */
function recorder(sent: Statement[], forgotten: string[] = []): Transaction {
  const query = async (statement: Statement) => {
    sent.push(statement)
    return { rows: [KEY], rowCount: 1 }
  }
  const forget = (ids: readonly string[]) => void forgotten.push(...ids)
  return { tenantId: null, query, forget } as unknown as Transaction
}

/** The rows of a change in their order, then the rows of what they end. */
function rowsOf(by: Ending): readonly string[] {
  const rows = ENDS.filter(({ on }) => on === by)
  return rows.flatMap(({ name, next }) => [name, ...(next === undefined ? [] : rowsOf(next))])
}

for (const by of NAMES) {
  test(`${by}: all rows run, whether the keys are known or returned`, async (t) => {
    const change = { name: 'the.change', text: 'update' }
    for (const keys of [undefined, [KEY]]) {
      const sent: Statement[] = []
      await ending(recorder(sent), by, keys).query(change)
      const [first, ...rest] = sent
      t.like(first, { ...change, ending: by })
      t.deepEqual(rest.map(({ name }) => name).toSorted(), rowsOf(by).toSorted())
      const direct = ENDS.filter(({ on }) => on === by).map(({ name }) => name)
      t.deepEqual(
        rest.slice(0, direct.length).map(({ name }) => name),
        direct,
      )
      t.true(rest.every(({ values }) => String(values) === '1,2'))
    }
    const sent: Statement[] = []
    await ending(recorder(sent), by, []).query(change)
    t.is(sent.length, 1)
  })
}

test('this process forgets tokens that depend on what ended, and on what ended with it', async (t) => {
  const forgotten: string[] = []
  const session = { tenantId: '1', id: 'session' }
  await ending(recorder([], forgotten), 'delegation.ended', [session]).query({
    name: 'the.change',
    text: 'update',
  })
  t.true(forgotten.includes('session'))
  // The recorder answers that this ended with it.
  t.true(forgotten.includes(KEY.id))
  const tokens = ENDS.filter(({ text }) => /^(?:with .*)?update sessions\b/s.test(text))
  t.true(tokens.length > 0)
  for (const { name, text } of tokens)
    t.regex(text, /returning s\.tenant_id as "tenantId", s\.id$/, name)
})

test('triggers that write other rows are listed with their reason', (t) => {
  t.deepEqual([...readSchema().writingTriggers.keys()].toSorted(), Object.keys(TRIGGERS))
})

test('docs/concepts/ends.md shows the table', (t) => {
  const { text, written } = readEndsPage()
  t.is(text, written, 'npx tsc -b && node dist/test/support/storage/write-ends-page.js')
})
