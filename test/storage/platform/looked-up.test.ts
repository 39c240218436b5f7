/**
 * Statements with lists must use index look-ups, also for tables that are small or not analyzed yet, because the plan of a
 * prepared statement is kept while its tables grow.
 */
import test from 'ava'
import { Client } from 'pg'
import { findCodes, redeemingCodes } from '../../../storage/oauth/authorization-codes.js'
import { findBrowserSession } from '../../../storage/identity/browser-sessions.js'
import { recordAttempts } from '../../../storage/webhooks/deliveries.js'
import {
  findAgentChallenges,
  findLoginCandidates,
  spendAgentChallenges,
} from '../../../storage/agents/agent-challenges.js'
import { touchAgents } from '../../../storage/agents/agents.js'
import { insertPowChallenges } from '../../../storage/agents/pow-challenges.js'
import { findRefreshToken, rotatingRefreshTokens } from '../../../storage/oauth/refresh-tokens.js'
import { openingAgentSessions, readTokenStatus } from '../../../storage/oauth/token-sessions.js'
import type { Database, Transaction } from '../../../storage/platform/sql.js'
import { freshDatabase } from '../../support/storage/database.js'
import { statementOf } from '../../support/storage/every-statement.js'
import { type Explained, nodesOf } from '../../support/storage/plans.js'

const TENANT = '00000000-0000-4000-8000-000000000000'

/** The key columns by which each statement reads each potentially large table. */
const LISTS: readonly {
  readonly run: (at: Transaction & Database) => Promise<unknown>
  readonly keys: Readonly<Record<string, readonly string[]>>
}[] = [
  {
    run: (at) => findRefreshToken(at, new Uint8Array(32)),
    keys: { refresh_tokens: ['token_sha256', 'generation'], refresh_families: ['id'] },
  },
  {
    run: async (at) => at.query(rotatingRefreshTokens(TENANT, [], [])),
    keys: { refresh_tokens: ['generation'], refresh_families: ['id'] },
  },
  {
    run: (at) => findCodes(at, [new Uint8Array(32)]),
    keys: { authorization_codes: ['code_sha256'], sessions: ['id'] },
  },
  {
    run: async (at) => at.query(redeemingCodes(TENANT, [], [])),
    keys: { authorization_codes: ['id'] },
  },
  {
    run: (at) => readTokenStatus(at, []),
    keys: { sessions: ['id'], revoked_tokens: ['id'], refresh_families: ['id'], agents: ['id'] },
  },
  {
    run: (at) => findBrowserSession(at, new Uint8Array(32), new Date()),
    keys: { browser_sessions: ['token_sha256'] },
  },
  { run: (at) => insertPowChallenges(at, []), keys: { agent_keys: ['fingerprint'] } },
  {
    run: (at) => findLoginCandidates(at, 'agent_id', []),
    keys: { agents: ['id'], agent_keys: ['tenant_id', 'agent_id'] },
  },
  {
    run: (at) => findAgentChallenges(at, []),
    keys: { agent_challenges: ['id'], agents: ['id'], agent_keys: ['fingerprint', 'agent_id'] },
  },
  { run: (at) => spendAgentChallenges(at, TENANT, []), keys: { agent_challenges: ['id'] } },
  {
    run: async (at) => at.query(openingAgentSessions(TENANT, [], [])),
    keys: { agent_challenges: ['id'] },
  },
  { run: (at) => touchAgents(at, []), keys: { agents: ['id'] } },
  { run: (at) => recordAttempts(at, []), keys: { webhook_deliveries: ['id'] } },
]

test('no list reads a whole table, or a whole tenant, of a young database', async (t) => {
  const fresh = await freshDatabase(t)
  const client = new Client({ connectionString: fresh.url })
  await client.connect()
  t.teardown(() => client.end())
  await client.query(`select set_config('svc.scope', 'system', false)`)
  for (const { run, keys } of LISTS) {
    const { name, text } = await statementOf(run)
    const { rows } = await client.query<Explained>(`explain (generic_plan, format json) ${text}`)
    const reads = nodesOf(rows[0]!)
    t.deepEqual(
      reads.filter((node) => node['Node Type'] === 'Seq Scan'),
      [],
      name,
    )
    for (const [table, columns] of Object.entries(keys)) {
      const scans = reads.filter((node) => node['Relation Name'] === table && 'Index Cond' in node)
      t.true(scans.length > 0, `${name} reads ${table}`)
      for (const { 'Index Cond': condition = '' } of scans) {
        t.true(
          columns.some((column) => condition.includes(`(${column} = `)),
          `${name} reads ${table} by ${condition}`,
        )
      }
    }
  }
})
