/**
 * The subset of PostgreSQL that other engines and poolers have too (docs/guides/operations/database.md#other-engines). Each
 * entry of a list below is a known exception. A new one needs a reason that is stronger than the work of a port.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import test from 'ava'

const STORAGE = readdirSync('storage', { recursive: true, encoding: 'utf8' })
  .filter((name) => name.endsWith('.ts'))
  .map((name) => join('storage', name))
const FILES = [...STORAGE, 'migrations/main.ts', 'migrations/schema.sql']
/** The subset begins here. The result of the older files is in schema.sql. */
const FIRST_MIGRATION = '0102'
const MIGRATIONS = readdirSync('migrations')
  .filter((name) => /^\d{4}_/.test(name) && name >= FIRST_MIGRATION)
  .map((name) => join('migrations', name))

/** Comments do not count. */
const code = (path: string) =>
  readFileSync(path, 'utf8').replaceAll(
    path.endsWith('.sql') ? /--.*$/gm : /\/\*[\s\S]*?\*\/|^\s*\/\/.*$/gm,
    '',
  )

/** What only PostgreSQL has, and where it is used: the number of uses by file. */
const FEATURES: readonly {
  readonly feature: string
  readonly pattern: RegExp
  readonly uses: Readonly<Record<string, number>>
}[] = [
  {
    feature: 'NOTIFY, except in svc_announce',
    pattern: /\bpg_notify\s*\(|[`'"; ]notify \$?\{?[a-z_]/gi,
    uses: { 'migrations/schema.sql': 1, 'migrations/0102_announcements.sql': 1 },
  },
  {
    feature: 'LISTEN, except in the listener',
    pattern: /[`'"](un)?listen /gi,
    uses: { 'storage/platform/listen.ts': 3 },
  },
  {
    // Both also lock a row of `locks`. These are for the processes of the release before.
    feature: 'advisory locks',
    pattern: /\bpg_(try_)?advisory\w*/gi,
    uses: { 'storage/platform/portable/locks.ts': 1, 'migrations/main.ts': 1 },
  },
  { feature: 'physical locations of rows', pattern: /\b(ctid|xmin|xmax|tableoid)\b/g, uses: {} },
  {
    // The balance of the ledger, which the posting checks too.
    feature: 'deferred constraints',
    pattern: /\b(initially deferred|set constraints)\b/gi,
    uses: { 'migrations/schema.sql': 2 },
  },
  {
    feature: 'settings of a session, which a pooler gives to others',
    pattern: /[`'";]\s*set (?!local\b|transaction\b)[a-z_.]+ =|set_config\([^)]*, false\)/gi,
    uses: {},
  },
  { feature: 'temporary tables', pattern: /\bcreate (temp|temporary) table\b/gi, uses: {} },
  { feature: 'prepared statements in SQL', pattern: /[`'"](prepare|deallocate) /gi, uses: {} },
  {
    // A backup runs on a direct connection.
    feature: 'locks of tables',
    pattern: /[`'"\s]lock table /gi,
    uses: { 'storage/platform/backup/tables.ts': 1 },
  },
]

for (const { feature, pattern, uses } of FEATURES)
  test(`not used: ${feature}`, (t) => {
    const found = [...FILES, ...MIGRATIONS]
      .map((path): [string, number] => [path, code(path).match(pattern)?.length ?? 0])
      .filter(([, count]) => count > 0)
    t.deepEqual(Object.fromEntries(found), uses)
  })

type Table = {
  readonly name: string
  readonly hasTenant: boolean
  readonly unique: readonly string[]
}

/** The tables of schema.sql with their unique keys. */
function tables(): readonly Table[] {
  const schema = readFileSync('migrations/schema.sql', 'utf8')
  const blocks = schema.split('\n\n').filter((block) => /^create (unlogged )?table/.test(block))
  return blocks.map((block) => ({
    name: /table (\w+)/.exec(block)?.[1] ?? '',
    hasTenant: /^ {2}tenant_id /m.test(block),
    unique: [
      ...block.matchAll(/constraint (\w+) (?:PRIMARY KEY|UNIQUE) \(([^)]*)\)/g),
      ...block.matchAll(/CREATE UNIQUE INDEX (\w+) ON [^(]*\(([^)]*)\)/g),
    ]
      .filter(([, , key = '']) => !/\btenant_id\b/.test(key))
      .map(([, key = '']) => key),
  }))
}

/** Tables without a tenant. On Citus they would be reference tables. */
const GLOBAL = [
  'account_phones',
  'account_wallets',
  'accounts',
  'announcements',
  'billing_plans',
  'card_events',
  'chain_cursors',
  'coordination_counters',
  'coordination_values',
  'deployment_operators',
  'domain_owners',
  'egress_call_limits',
  'egress_settlement',
  'event_sinks',
  'known_browsers',
  'locks',
  'mail_address_shares',
  // Events and members of an organization belong to all of its tenants.
  'organization_events',
  'organization_members',
  'organizations',
  'passkeys',
  'recovery_codes',
  'registry_cursors',
  'remote_documents',
  'svc_migrations',
  'tenants',
  'totp_factors',
]

/**
 * Unique keys of tenants without the tenant: what is looked up before the tenant is known (hashes of secrets), and ids. On
 * Citus a unique key contains the tenant, so each of them would need its tenant in the secret or a separate table.
 */
const WITHOUT_TENANT = [
  'access_policies_id_key',
  'agent_challenges_by_id',
  'agent_signature_keys_agent_id_key',
  'agents_by_id',
  'api_keys_id_key',
  'api_keys_previous_sha256_key',
  'api_keys_token_sha256_key',
  'api_resources_id_key',
  'api_resources_resource_key_key',
  'applications_id_key',
  'audience_claims_audience_key_holder_key',
  'authorization_codes_code_sha256_key',
  'authorization_requests_handle_sha256_key',
  'backchannel_requests_code_sha256_key',
  'backchannel_requests_user_code',
  'browser_sessions_token_sha256_key',
  'call_approvals_id',
  'card_payments_checkout_id_key',
  'card_payments_payment_id_key',
  'checkout_sessions_token_sha256_key',
  'checkout_sessions_named',
  'checkout_transfers_awaited',
  'checkout_transfers_once',
  'console_sessions_token_sha256_key',
  'credential_offers_code_sha256_key',
  'credential_offers_handle_sha256_key',
  'delegation_requests_device_code_sha256_key',
  'delegation_requests_user_code_key',
  'form_answers_form_sha256_key',
  'identity_assertion_policies_id_key',
  'mail_tickets_link_sha256_key',
  'mcp_servers_id_key',
  'operator_invites_token_sha256_key',
  'passkey_ceremonies_challenge_sha256_key',
  'payment_links_token_key',
  'pow_challenges_by_id',
  'prices_id_key',
  'refresh_tokens_token_sha256_key',
  'registration_tokens_token_sha256_key',
  'scim_tokens_token_sha256_key',
  'sign_in_flows_token_sha256_key',
  'siwe_nonces_nonce_sha256_key',
  'status_lists_id_key',
  'tenant_transfers_id_key',
  'trusted_issuer_rules_id_key',
  'trusted_issuers_id_key',
  'upstream_identities_pkey',
  'upstream_identities_provider_issuer_subject_key',
  'upstream_sign_ins_state_sha256_key',
  'vault_connections_id_key',
  'vault_connections_code',
  'vault_connections_state',
  'vault_connectors_id_key',
  'webhooks_id_key',
  'x402_payments_once',
]

test('tables without a tenant are the known ones', (t) => {
  const found = tables().filter(({ hasTenant }) => !hasTenant)
  t.deepEqual(
    found.map(({ name }) => name),
    GLOBAL,
  )
})

test('unique keys without the tenant are the known ones', (t) => {
  const found = tables().filter(({ hasTenant }) => hasTenant)
  t.deepEqual(
    found.flatMap(({ unique }) => unique),
    WITHOUT_TENANT,
  )
})
