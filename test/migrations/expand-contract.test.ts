/**
 * A migration runs while processes of the last release serve (docs/guides/operations/upgrade.md): it adds, and it holds
 * no lock on a large table for longer than a change of its catalogue takes.
 */
import test from 'ava'
import { statementsOf } from '../../migrations/table-locks.js'
import { readMigrationFiles } from '../../storage/platform/schema-version.js'

/** Files from here on are checked. */
const FIRST = '0085'

/** Tables that grow with use: an index on one of them, or an update of all its rows, takes minutes. */
const LARGE =
  `accounts agent_challenges agent_keys agents audit_events authorization_codes authorization_requests
  backchannel_requests browser_sessions charges coordination_values delegations egress_call_limits events
  idempotency_keys issued_credentials ledger_entries ledger_lines outgoing_mail pow_challenges refresh_families
  refresh_tokens revoked_tokens sessions sign_in_flows ssh_certificates status_entries tenant_users unnumbered_events
  vault_leases webhook_attempts webhook_deliveries`.split(/\s+/)

/** Files that break a rule, with the reason. */
const ALLOWED: Readonly<Record<string, string>> = {
  '0098_audit_indexes':
    'only the sequencer writes audit_events: numbering waits, and the requests do not',
  '0134_confined_sessions':
    'writes only the open sessions of tenants with their own provider, by their index of open sessions',
  '0163_credential_keys': 'wallets wait while the index of issued_credentials is built',
  '0105_plans': 'sign-ins wait while the index of browser_sessions is built',
  '0185_upstream_sessions':
    'sign-ins wait while browser_sessions is read once: the index is empty at first',
  '0196_finish_secret_stamps': 'no release writes the columns that it drops',
  '0093_audit_time': 'a BRIN index is built in one pass over the pages, a second for each gigabyte',
}

type Rule = readonly [name: string, pattern: RegExp]

/** What the last release cannot run with, or what rewrites or scans a table under an exclusive lock. */
const RULES: readonly Rule[] = [
  ['drops a table', /^drop table\b/i],
  ['drops a column', /^alter table\b[^;]*\bdrop column\b/i],
  ['renames', /^alter table\b[^;]*\brename\b/i],
  ['changes a type', /^alter table\b[^;]*\balter (column )?\w+ (set data )?type\b/i],
  [
    'requires a value that the last release does not write',
    /\balter (column )?\w+ set not null\b/i,
  ],
  [
    'adds a required column without a default',
    /\badd column (if not exists )?\w+ (?!.*\bdefault\b)[^,;]*\bnot null\b/i,
  ],
  ['scans for a constraint', /^alter table\b[^;]*\badd constraint\b(?![^;]*\bnot valid\b)/i],
  ['scans for a constraint', /^alter table\b[^;]*\bvalidate constraint\b/i],
  ['rewrites a table', /^(vacuum full|cluster|alter table\b[^;]*\bset (un)?logged)\b/i],
  ['locks a table', /^lock table\b/i],
]

function findings(sql: string): string[] {
  const statements = statementsOf(sql)
  const made = new Set(
    statements.flatMap((one) => /^create table (?:if not exists )?(\w+)/i.exec(one)?.[1] ?? []),
  )
  return statements.flatMap((statement) => {
    const altered = /^alter table (?:only |if exists )*(\w+)/i.exec(statement)?.[1]
    const found =
      altered !== undefined && made.has(altered)
        ? []
        : RULES.filter(([, pattern]) => pattern.test(statement)).map(([name]) => name)
    const indexed = /^create (?:unique )?index (?!concurrently).*?\bon (?:only )?(\w+)/i.exec(
      statement,
    )?.[1]
    if (indexed !== undefined && !made.has(indexed) && LARGE.includes(indexed)) {
      found.push('builds an index on a large table')
    }
    const changed = /^(?:update|delete from) (\w+)/i.exec(statement)?.[1]
    if (changed !== undefined && LARGE.includes(changed))
      found.push('changes all rows of a large table')
    return found.map((name) => `${name}: ${statement.slice(0, 100)}`)
  })
}

test('new migrations let the last release serve, and hold no long lock', async (t) => {
  const files = (await readMigrationFiles()).filter(({ name }) => name >= FIRST)
  t.true(files.length > 0)
  for (const { name, sql } of files) {
    if (name in ALLOWED) continue
    t.deepEqual(findings(sql), [], name)
  }
})

test('what would stop the last release is found', (t) => {
  const refused = [
    'drop table tenant_users',
    'alter table tenant_users drop column name',
    'alter table tenant_users rename column a to b',
    'alter table tenant_users rename to people',
    'alter table tenant_users alter column a type bigint',
    'alter table tenant_users alter column a set not null',
    'alter table tenant_users add column a text not null',
    'alter table tenant_users add constraint c check (a > 0)',
    'alter table tenant_users validate constraint c',
    'lock table tenant_users',
    'create index i on tenant_users (a)',
    'create unique index i on tenant_users (a)',
    'update tenant_users set a = 1',
    'delete from tenant_users',
  ]
  for (const sql of refused) t.is(findings(`-- says\n${sql};`).length, 1, sql)
})

test('what does not stop it is accepted', (t) => {
  const accepted = [
    'create table tenant_users (a text not null); create index i on tenant_users (a)',
    'create table x (a text); alter table x rename to y',
    'alter table tenant_users add column a text',
    "alter table tenant_users add column a text not null default ''",
    'alter table tenant_users add constraint c check (a > 0) not valid',
    'create index i on plans (a)',
    'drop index i',
    'create function f() returns trigger as $$ begin update tenant_users set a = 1; end $$ language plpgsql',
  ]
  for (const sql of accepted) t.deepEqual(findings(`${sql};`), [], sql)
})
