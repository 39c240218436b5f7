/**
 * Every statement of `storage/` reads large tables by an index: on a database that `svc seed` has filled, and, for tables
 * without rows there, where the planner avoids sequential scans. Row counts are multiplied in the
 * statistics, so that PostgreSQL plans as in a large deployment.
 */
import test from 'ava'
import { Command } from 'commander'
import { Client } from 'pg'
import { openKeyTools } from '../../../runtime/cli/key-tools.js'
import { seedCommand } from '../../../runtime/cli/seed/seed.js'
import type { Statement } from '../../../storage/platform/sql.js'
import { type FreshDatabase, freshDatabase } from '../../support/storage/database.js'
import { everyStatement, namedInSources } from '../../support/storage/every-statement.js'
import { testKms } from '../../support/storage/kms.js'
import { type Explained, nodesOf } from '../../support/storage/plans.js'

const TENANTS = 100
const USERS_PER_TENANT = 20
/** Each seeded tenant stands for this many. */
const TENANTS_EACH = 3_000
/** Tables with more rows than this in the statistics are large. */
const LARGE_ROWS = 20_000

/** Names that are not collected. All of them name their row by its whole primary key, or are no query. */
const NOT_COLLECTED: ReadonlySet<string> = new Set([
  'agent_anchor.lock',
  'passkey.remove',
  'phone.remove',
  'wallet.remove',
  'status_entry.allocate',
  'status_list.close',
  'mail_share.address_wait',
  'coordination.take',
  'coordination.claim',
  'coordination.release',
  'coordination.get',
  'coordination.put',
  'coordination.forget',
  'idempotency.forget',
  'transaction.limit',
  'transaction.pooled',
  'transaction.announce',
  'tenancy.part',
  'announcement.newest',
  'announcement.next',
  'transaction.begin',
  'transaction.begin_serializable',
  'transaction.commit',
  'tenancy.system',
  'tenancy.tenant',
])

/** Names whose texts depend on arguments that stand-ins cannot replace, and a command that is no query. */
const NOT_EXPLAINED =
  /^(agent\.login_candidates_by_(1|null|undefined)|scim_user\.(count|list)|seed\.(1|null|undefined|analyze)|event_numbers\.free)$/

/** Statements that read a whole table, and why they may. */
const READS_ALL: Readonly<Record<string, string>> = {
  'billing_plan.list': 'lists the plans of a deployment, which are few',
  'data_key.by_master': 'counts for `svc keys list`',
  'signing_key.of_tenants': 'lists for `svc keys list`',
  'data_key.not_under': 'the command `svc keys rewrap` visits every data key',
  'data_key.owners': 'the command `svc keys rotate-data --all` visits every tenant',
  'data_key_rotation.count': 'counts for `svc keys reseal`',
  'egress_settlement.take':
    'a table with one row, and one with a row for each setting of a time limit',
  'event_sink.forget': 'a table with a row for each configured sink',
  'organization.list reads tenants':
    'the row-level security of a tenant, which a transaction that crosses tenants does not evaluate',
  'signal_stream.disable_overdue reads signal_streams':
    'the sweep of streams visits the tenants that have one',
  'statement.books_to_close': 'closes the books of a month: visits one row per tenant and currency',
  'trace.events': 'the command `svc trace` looks for a request in the events of all tenants',
}

let empty: FreshDatabase
test.before(async () => {
  empty = await freshDatabase()
})
test.after.always(() => empty?.drop())

type Plans = {
  readonly statement: Statement
  readonly nodes: ReturnType<typeof nodesOf>
}

async function explained(client: Client): Promise<readonly Plans[]> {
  const found: Plans[] = []
  for (const statement of await everyStatement()) {
    if (NOT_EXPLAINED.test(statement.name)) continue
    const text = `explain (generic_plan, format json) ${statement.text}`
    try {
      const { rows } = await client.query<Explained>(text)
      found.push({ statement, nodes: nodesOf(rows[0]!) })
    } catch (error) {
      throw new Error(`${statement.name}: ${String(error)}`, { cause: error })
    }
  }
  return found
}

test('every statement of the sources is collected', async (t) => {
  const collected = new Set((await everyStatement()).map(({ name }) => name))
  t.deepEqual(
    [...namedInSources()].filter((name) => !collected.has(name) && !NOT_COLLECTED.has(name)),
    [],
    'call the function in WITH_ARGUMENTS',
  )
  t.deepEqual(
    [...NOT_COLLECTED].filter((name) => collected.has(name)),
    [],
  )
  t.true(collected.size > 700)
})

test('every statement has an index for each table of tenants', async (t) => {
  const client = await asService(empty.superuserUrl, t)
  await client.query('set enable_seqscan = off')
  const whole = await partialIndexes(client)
  const found = (await explained(client)).flatMap(({ statement: { name }, nodes }) =>
    nodes
      .filter((node) => readsAll(node, whole))
      .map((node) => `${name} reads ${node['Relation Name']}`),
  )
  t.deepEqual(withoutReasons(found), [])
})

test('no statement reads a whole table of a large deployment', async (t) => {
  const fresh = await freshDatabase(t)
  const kms = await testKms()
  t.teardown(() => kms.end())
  await seed(fresh.url, kms.environment)
  const client = await asService(fresh.superuserUrl, t)
  await client.query('reset role')
  // Databases that were upgraded keep earlier events there.
  await client.query(
    `insert into events (tenant_id, sequence, id, type, data, occurred_at, dispatched_at)
     select tenant_id, sequence, id, type, data, occurred_at, occurred_at from all_events`,
  )
  await client.query('analyze events')
  await client.query(
    `update pg_class set reltuples = reltuples * $1
     where relkind = 'r' and reltuples > 0 and relnamespace = 'public'::regnamespace`,
    [TENANTS_EACH],
  )
  const { rows } = await client.query<{ name: string }>(
    `select relname as name from pg_class
     where relkind = 'r' and reltuples > $1 and relnamespace = 'public'::regnamespace`,
    [LARGE_ROWS],
  )
  const large = new Set(rows.map(({ name }) => name))
  for (const table of ['tenants', 'accounts', 'sessions', 'events', 'audit_events', 'charges']) {
    t.true(large.has(table), table)
  }
  await client.query('set role svc_test')
  const partial = await partialIndexes(client)
  const found = (await explained(client)).flatMap(({ statement: { name }, nodes }) =>
    nodes
      .filter((node) => large.has(node['Relation Name'] ?? '') && readsAll(node, partial))
      .map((node) => `${name} reads ${node['Relation Name']}`),
  )
  t.deepEqual(withoutReasons(found), [])
})

/** References whose rows are few in each tenant, or whose target is never deleted. */
const UNINDEXED_REFERENCES: ReadonlySet<string> = new Set([
  'authorization_codes(tenant_id,client_id)',
  'authorization_requests(tenant_id,client_id)',
  'backchannel_requests(tenant_id,client_id)',
  'consents(tenant_id,client_id)',
  'credential_offers(tenant_id,subject)',
  'payment_links(tenant_id,price_id)',
  'prices(tenant_id,product_id)',
  'scim_tokens(organization_id)',
  'subscriptions(tenant_id,price_id)',
  'verified_domains(tenant_id,sso_provider_id)',
])

test('rows that go with another row are found by an index', async (t) => {
  const client = await asService(empty.superuserUrl, t)
  const { rows } = await client.query<{ reference: string }>(
    `select format('%s(%s)', c.conrelid::regclass, (select string_agg(a.attname, ',' order by k.nth)
         from unnest(c.conkey) with ordinality k (number, nth)
         join pg_attribute a on a.attrelid = c.conrelid and a.attnum = k.number)) as reference
     from pg_constraint c
     where c.contype = 'f' and c.connamespace = 'public'::regnamespace
       -- An index that begins with columns of the reference, and not with the tenant alone.
       and not exists (select from pg_index i where i.indrelid = c.conrelid
         and ((i.indkey::int2[])[0:cardinality(c.conkey) - 1] @> c.conkey
           or (i.indkey[0] = any (c.conkey) and not exists (select from pg_attribute a
             where a.attrelid = c.conrelid and a.attnum = i.indkey[0] and a.attname = 'tenant_id'))))
     order by 1`,
  )
  t.deepEqual(
    rows.map(({ reference }) => reference),
    [...UNINDEXED_REFERENCES],
  )
})

/** A connection in the place of the service: row-level security applies, and tenants are crossed. */
async function asService(url: string, t: { teardown(end: () => Promise<void>): void }) {
  const client = new Client({ connectionString: url })
  await client.connect()
  t.teardown(() => client.end())
  await client.query(`select set_config('svc.scope', 'system', false)`)
  await client.query('set role svc_test')
  return client
}

/** Indexes of some rows of their table only: reading all of such an index reads what it selects. */
async function partialIndexes(client: Client): Promise<ReadonlySet<string>> {
  const { rows } = await client.query<{ name: string }>(
    `select indexrelid::regclass::text as name from pg_index where indpred is not null`,
  )
  return new Set(rows.map(({ name }) => name))
}

/** A sequential scan, or a scan of a whole index that no limit ends. */
function readsAll(node: ReturnType<typeof nodesOf>[number], partial: ReadonlySet<string>): boolean {
  if (node['Node Type'] === 'Seq Scan') return true
  const isScan = node['Node Type'] === 'Index Scan' || node['Node Type'] === 'Index Only Scan'
  if (!isScan || node['Index Cond'] !== undefined) return false
  return !partial.has(node['Index Name'] ?? '') && !node.isLimited
}

function withoutReasons(found: readonly string[]): string[] {
  const named = (line: string) => line in READS_ALL || (line.split(' ')[0] ?? '') in READS_ALL
  return [...new Set(found)].filter((line) => !named(line))
}

async function seed(url: string, kms: Readonly<Record<string, string>>): Promise<void> {
  const environment = { DATABASE_URL: url, SVC_AUTH__ARGON2_MEMORY_KIB: '64', ...kms }
  const program = new Command('svc')
  seedCommand(program, {
    open: () => openKeyTools({ environment, cwd: '/' }),
    out: () => undefined,
    err: (text) => {
      throw new Error(text)
    },
    exitWith: () => undefined,
  })
  const size = ['--tenants', String(TENANTS), '--users-per-tenant', String(USERS_PER_TENANT)]
  await program.parseAsync(['seed', ...size, '--seed', 'plans'], { from: 'user' })
}
