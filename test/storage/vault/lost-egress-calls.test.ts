/** Lost calls are looked for among all events: what that costs depends on the stretch, not on the history. */
import { randomUUID } from 'node:crypto'
import test from 'ava'
import { Client } from 'pg'
import { sayCallLimit, takeLostCalls } from '../../../storage/vault/lost-egress-calls.js'
import type { Statement, Transaction } from '../../../storage/platform/sql.js'
import { freshDatabase } from '../../support/storage/database.js'
import { type Explained, nodesOf, type Plan } from '../../support/storage/plans.js'

const CALLS = 20_000
/** One a second over this long before now; every tenth has no end. */
const LOST_EVERY = 10
const FIRST = new Date(Date.now() - 8 * 60 * 60 * 1000).toISOString()
const BEGAN = `'${FIRST}'::timestamptz + n * interval '1 second'`

test('calls that were lost are found by indexes alone', async (t) => {
  const fresh = await freshDatabase(t)
  const tenant = randomUUID()
  const superuser = new Client({ connectionString: fresh.superuserUrl })
  await superuser.connect()
  t.teardown(() => superuser.end())
  // Beginnings have ids of version 8. Each end has the id of its beginning with version 7.
  const id = (version: 7 | 8) => `overlay(md5(n::text) placing '${version}' from 13)::uuid`
  const columns = 'tenant_id, sequence, id, type, data, occurred_at, dispatched_at'
  await superuser.query(
    `insert into events (${columns})
     select $1, 2 * n, ${id(8)}, 'vault.credential.accessed',
       jsonb_build_object('host', 'api.example', 'method', 'GET',
         'actor', jsonb_build_object('type', 'agent', 'id', 'a'),
         'resource', jsonb_build_object('type', 'vault_credential', 'id', 'c')), ${BEGAN}, ${BEGAN}
     from generate_series(1, ${CALLS}) n`,
    [tenant],
  )
  await superuser.query(
    `insert into events (${columns})
     select $1, 2 * n + 1, ${id(7)}, 'egress.stream.closed', '{}', ${BEGAN}, ${BEGAN}
     from generate_series(1, ${CALLS}) n where n % ${LOST_EVERY} <> 0`,
    [tenant],
  )
  await superuser.query(
    `insert into audit_events (tenant_id, sequence, id, type, occurred_at, subject, actors, outcome,
       data, previous_hash, hash)
     select $1, n, ${id(8)}, 'vault.credential.accessed', ${BEGAN}, null, '[]', 'success', '{}',
       decode(md5('a') || md5('b'), 'hex'), decode(md5('c') || md5(n::text), 'hex')
     from generate_series(1, ${CALLS}) n`,
    [tenant],
  )
  await superuser.query(`update egress_settlement set settled_until = now() - interval '4 hours'`)
  await superuser.query('vacuum analyze events')
  await superuser.query('vacuum analyze audit_events')

  const plans: Plan[] = []
  const found = await fresh.database.system(async (tx) => {
    await sayCallLimit(tx, 300)
    const explained: Transaction = {
      ...tx,
      async query<Row>(statement: Statement) {
        if (statement.name === 'egress_settlement.lost') {
          const { rows } = await tx.query<Explained>({
            ...statement,
            name: 'explain',
            text: `explain (analyze, format json) ${statement.text}`,
          })
          plans.push(...nodesOf(rows[0]!))
        }
        return tx.query<Row>(statement)
      },
    }
    return takeLostCalls(explained)
  })
  // Ten seconds of one call a second, the first and the last included.
  const lost = found?.calls.length ?? 0
  t.true(lost === 1 || lost === 2, `${lost} lost`)
  t.is(found?.isLast, false)
  const reads = plans.filter((node) => node['Relation Name'] !== undefined)
  t.deepEqual([...new Set(reads.map((node) => node['Relation Name']))].toSorted(), [
    'audit_events',
    'events',
    'unnumbered_events',
  ])
  for (const node of reads) {
    t.not(node['Node Type'], 'Seq Scan', JSON.stringify(node))
    const looked = node['Actual Rows'] + (node['Rows Removed by Filter'] ?? 0)
    t.true(looked * node['Actual Loops'] <= 50, JSON.stringify(node))
  }
})
