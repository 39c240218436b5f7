/** What another transaction commits while the end of a thing waits for it, ends too (docs/concepts/ends.md). */
import { randomUUID } from 'node:crypto'
import test from 'ava'
import { Client } from 'pg'
import { revokeDelegationRow } from '../../../storage/agents/delegations.js'
import { freshDatabase } from '../../support/storage/database.js'
import { until } from '../../support/service/watch.js'

test('a delegation that is revoked while its session is opened', async (t) => {
  const fresh = await freshDatabase(t)
  const [tenantId, id, agentId] = [randomUUID(), randomUUID(), randomUUID()]
  const now = new Date()
  // Without the rows that these rows refer to, which the tested statements do not read.
  const opening = new Client({ connectionString: fresh.superuserUrl })
  await opening.connect()
  t.teardown(() => opening.end())
  await opening.query('set session_replication_role = replica')
  await opening.query(
    `insert into delegations (tenant_id, id, agent_id, agent_name, subject, scopes, audience, level, amr,
       auth_time, created_at, expires_at)
     values ($1, $2, $3, 'an agent', 'user-1', '{openid}', 'app', 2, '{pwd}', $4, $4, $4::timestamptz + interval '1 h')`,
    [tenantId, id, agentId, now],
  )
  await opening.query('begin')
  await opening.query('update delegations set expires_at = expires_at where id = $1', [id])
  await opening.query(
    `insert into sessions (tenant_id, id, subject, subject_type, agent_id, client_id, amr, auth_time,
       created_at, expires_at)
     values ($1, $2, 'user-1', 'human', $3, $3, '{pwd}', $4, $4, $4::timestamptz + interval '1 h')`,
    [tenantId, id, agentId, now],
  )
  const revoking = fresh.database.tenant(tenantId, (tx) =>
    revokeDelegationRow(tx, tenantId, id, 'revoked', now),
  )
  await until('the revocation waits', async () => {
    await opening.query('select pg_stat_clear_snapshot()')
    const { rows } = await opening.query(
      `select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
    )
    return rows.length === 1
  })
  await opening.query('commit')
  t.is((await revoking)?.revokedReason, 'revoked')
  const { rows } = await opening.query('select ended_reason from sessions where id = $1', [id])
  t.deepEqual(rows, [{ ended_reason: 'revoked' }])
})
