/** Guarantees of the database: every ledger entry balances, and none changes. */
import { randomUUID } from 'node:crypto'
import test from 'ava'
import * as fc from 'fast-check'
import { type LedgerAccount, balanceRows, postEntry } from '../../../storage/commerce/ledger.js'
import type { Transaction } from '../../../storage/platform/sql.js'
import { freshDatabase } from '../../support/storage/database.js'
import { merchantIn } from '../../support/commerce/merchant.js'

const fresh = await freshDatabase()
const { database } = fresh
test.after.always(() => fresh.drop())

const ACCOUNTS: readonly LedgerAccount[] = ['clearing', 'pending', 'held', 'available']

const entry = (tenantId: string, lines: readonly (readonly [LedgerAccount, number])[]) => ({
  tenantId,
  id: randomUUID(),
  currency: 'USD',
  kind: 'charge' as const,
  subjectId: randomUUID(),
  createdAt: new Date(),
  lines: lines.map(([account, amountMinor]) => ({ account, rail: 'sandbox', amountMinor })),
})

async function totals(tx: Transaction) {
  const { rows } = await tx.query<{ total: string; lines: string; entries: number }>({
    name: 'test.totals',
    text: `select (select coalesce(sum(balance_minor), 0)::text from ledger_accounts) as total,
                  (select coalesce(sum(amount_minor), 0)::text from ledger_lines) as lines,
                  (select count(*) from ledger_entries) as entries`,
  })
  return rows[0]!
}

test('an entry that does not balance is refused at the commit, and leaves nothing', async (t) => {
  const { tenantId } = await merchantIn(database)
  for (const lines of [
    [['clearing', 100]],
    [
      ['clearing', 100],
      ['pending', -99],
    ],
  ] as const) {
    await t.throwsAsync(
      database.tenant(tenantId, (tx) => postEntry(tx, entry(tenantId, lines))),
      { message: /does not balance/ },
    )
  }
  t.like(await database.tenant(tenantId, totals), { total: '0', entries: 0 })
})

test('lines inserted without the function are checked too, and booked entries cannot be changed', async (t) => {
  const { tenantId } = await merchantIn(database)
  const booked = entry(tenantId, [
    ['clearing', 100],
    ['pending', -100],
  ])
  await database.tenant(tenantId, (tx) => postEntry(tx, booked))
  for (const [title, text] of [
    [
      'another line',
      `insert into ledger_lines (tenant_id, entry_id, number, currency, rail, account, amount_minor)
       values ('${tenantId}', '${booked.id}', 3, 'USD', 'sandbox', 'held', 5)`,
    ],
    ['a line changed', `update ledger_lines set amount_minor = amount_minor * 2`],
    ['a line removed', `delete from ledger_lines`],
    ['an entry removed', `delete from ledger_entries`],
    [
      'an entry without lines',
      `insert into ledger_entries (tenant_id, currency, sequence, id, kind, subject_id, created_at)
       values ('${tenantId}', 'USD', 2, '${randomUUID()}', 'x', '${randomUUID()}', now())`,
    ],
  ] as const) {
    await t.throwsAsync(
      database.tenant(tenantId, (tx) => tx.query({ name: `test.${title}`, text })),
      { message: /does not balance|only added to/ },
      title,
    )
  }
  const kept = await database.tenant(tenantId, totals)
  t.deepEqual(kept, { total: '0', lines: '0', entries: 1 })
})

test('the same subject and kind is not booked twice', async (t) => {
  const { tenantId } = await merchantIn(database)
  const booked = entry(tenantId, [
    ['clearing', 7],
    ['pending', -7],
  ])
  await database.tenant(tenantId, (tx) => postEntry(tx, booked))
  await t.throwsAsync(
    database.tenant(tenantId, (tx) => postEntry(tx, { ...booked, id: randomUUID() })),
    { message: /ledger_entries_once/ },
  )
})

test('under concurrent entries the accounts sum to zero and match their lines', async (t) => {
  const line = fc.record({
    from: fc.constantFrom(...ACCOUNTS),
    to: fc.constantFrom(...ACCOUNTS),
    amount: fc.integer({ min: 1, max: 999_999_999_999 }),
    fails: fc.boolean(),
  })
  await t.notThrowsAsync(
    fc.assert(
      fc.asyncProperty(fc.array(line, { minLength: 1, maxLength: 12 }), async (moves) => {
        const { tenantId } = await merchantIn(database)
        const done = await Promise.all(
          moves.map(({ from, to, amount, fails }) =>
            database
              .tenant(tenantId, async (tx) => {
                await postEntry(
                  tx,
                  entry(tenantId, [
                    [from, amount],
                    [to, -amount],
                  ]),
                )
                if (fails) throw new Error('given up')
              })
              .then(
                () => true,
                (error: Error) => {
                  if (error.message !== 'given up') throw error
                  return false
                },
              ),
          ),
        )
        const { total, lines, entries } = await database.tenant(tenantId, totals)
        const balances = await database.tenant(tenantId, (tx) => balanceRows(tx, tenantId))
        const sequences = await database.tenant(tenantId, (tx) =>
          tx.query<{ sequence: number }>({
            name: 'test.sequences',
            text: 'select sequence from ledger_entries order by sequence',
          }),
        )
        return (
          total === '0' &&
          lines === '0' &&
          entries === done.filter(Boolean).length &&
          sequences.rows.every(({ sequence }, place) => sequence === place + 1) &&
          ACCOUNTS.every((account) => {
            const expected = moves
              .filter((_, place) => done[place])
              .reduce(
                (sum, { from, to, amount }) =>
                  sum + (from === account ? amount : 0) - (to === account ? amount : 0),
                0,
              )
            const found = balances.find((one) => one.account === account)?.balanceMinor ?? 0
            return found === expected
          })
        )
      }),
      { numRuns: 25 },
    ),
  )
})

test('a balance stays within the exact integers', async (t) => {
  const { tenantId } = await merchantIn(database)
  const huge = Number.MAX_SAFE_INTEGER
  const book = () =>
    database.tenant(tenantId, (tx) =>
      postEntry(
        tx,
        entry(tenantId, [
          ['clearing', huge],
          ['pending', -huge],
        ]),
      ),
    )
  await book()
  await t.throwsAsync(book(), { message: /ledger_accounts_balance_minor_check/ })
  t.like(await database.tenant(tenantId, totals), { total: '0', entries: 1 })
})
