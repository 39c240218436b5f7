/** A process that is killed under load: each call that it sent is recorded, or within the number that it may have lost. */
import test from 'ava'
import { Agent, request } from 'undici'
import { recordUnknownCalls } from '../../../actors/vault/egress/admission/lost-calls.js'
import { systemClock } from '../../../runtime/kernel/clock.js'
import { systemRandom } from '../../../runtime/kernel/random.js'
import { svc } from '../../flows/vault/command.js'
import { bodyCall, ownEgressHouse, settingOf } from '../../support/vault/egress.js'
import { sql } from '../../support/storage/sql.js'
import { until } from '../../support/service/watch.js'
import { freePort, TEST_DEFAULTS } from '../../support/service.js'

const CALLS_MAX = 16
const CALLERS = 8
/** Kills at different moments between the record of one group of calls and the next. */
const KILL_AFTER_CALLS = process.env['TEST_LONG'] === '1' ? [60, 131, 202, 277, 351] : [150]

type Unknown = { data: Record<string, unknown>; grant_id: string; outcome: string }

/** The grant has no limits, or holds more than is called. */
const KILLS = KILL_AFTER_CALLS.flatMap((killAfter) => [
  { killAfter, limits: {} },
  { killAfter, limits: { max_requests: 2_000, max_bytes: 50_000_000 } },
])

const resources = await ownEgressHouse({
  transport: 'plain_http',
  environment: { SVC_DEPLOYMENT__BACKGROUND_TASKS_ENABLED: 'false' },
})
test.after.always(() => resources.end())
const { running, upstream } = resources
const { database } = running.db

for (const { killAfter, limits } of KILLS) {
  const isLimited = 'max_requests' in limits
  const name = isLimited ? 'within limits' : 'without limits'
  test.serial(`a process is killed in its call ${killAfter}, ${name}`, async (t) => {
    const before = upstream.requests.length
    const port = await freePort()
    const child = svc(t, {
      environment: {
        ...TEST_DEFAULTS,
        ...resources.environment,
        DATABASE_URL: running.db.url,
        SVC_SERVER__PORT: String(port),
        SVC_OIDC__ISSUER_URL: running.issuer,
        SVC_VAULT__EGRESS_UNRECORDED_CALLS_MAX: String(CALLS_MAX),
        ...running.kms.environment,
      },
    })
    await child.ready()
    const setting = await settingOf(resources, {}, limits)
    const agent = new Agent({ connections: CALLERS })
    t.teardown(() => agent.destroy())
    let isKilled = false
    let isUp = true
    const caller = async () => {
      while (isUp) {
        try {
          const { statusCode, body } = await request(`http://localhost:${port}/v1/proxy/body`, {
            dispatcher: agent,
            method: 'POST',
            headers: {
              authorization: `Bearer ${setting.direct}`,
              ...bodyCall(setting, `${upstream.origin}/echo`, { 'x-svc-method': 'GET' }),
            },
          })
          await body.dump()
          if (statusCode !== 200) isUp = false
        } catch {
          isUp = false
        }
        // In the turn in which the upstream has received the calls: their record is under way.
        if (!isKilled && upstream.requests.length - before >= killAfter) {
          isKilled = true
          child.child.kill('SIGKILL')
        }
      }
    }
    await Promise.all(Array.from({ length: CALLERS }, caller))
    t.is(await child.ended(), 'SIGKILL')
    const sent = upstream.requests.length - before
    t.true(sent >= killAfter)
    const recorded = async () => {
      const [row] = await sql<{ count: number }>(
        database,
        `select count(*)::integer as count from (
           select id from all_events where tenant_id = $1 and type = 'vault.credential.accessed'
           union select id from unnumbered_events where tenant_id = $1 and type = 'vault.credential.accessed') e`,
        [setting.tenantId],
      )
      return row!.count
    }
    const missing = sent - (await recorded())
    t.log({ sent, missing })
    t.true(missing <= CALLS_MAX, `${missing} calls are missing`)

    const settle = () =>
      recordUnknownCalls({ database, clock: systemClock, random: systemRandom(systemClock) })
    t.is(await settle(), 0, 'the process may still run')
    await sql(
      database,
      `update egress_blocks set renewed_at = renewed_at - interval '1 h' where tenant_id = $1 returning id`,
      [setting.tenantId],
    )
    const found = await Promise.all([settle(), settle(), settle()])
    const total = found.reduce((sum, each) => sum + each)
    t.is(total, CALLS_MAX, 'recorded once')
    t.is(await settle(), 0)
    let unknown: Unknown[] = []
    await until('the record is in the audit log', 30_000, async () => {
      // Reading the audit log numbers what waits.
      await resources.api.list('/api/v1/audit-events', setting.operator)
      unknown = await sql<Unknown>(
        database,
        `select data, grant_id, outcome from audit_events where tenant_id = $1 and type = 'egress.calls.unknown'`,
        [setting.tenantId],
      )
      return unknown.length > 0
    })
    t.is(unknown.length, 1)
    t.is(unknown[0]!.data['calls_max'], CALLS_MAX)
    t.is(unknown[0]!.grant_id, setting.grantId)
    t.is(unknown[0]!.outcome, 'failure')
    if (!isLimited) return
    // What the process had taken and not used counts as used, and the record says how much it is.
    const [used] = await sql<{ requests: number; bytes: number }>(
      database,
      `select requests_used::integer as requests, bytes_used::integer as bytes from vault_grants where tenant_id = $1 and id = $2`,
      [setting.tenantId, setting.grantId],
    )
    const { requests_reserved: requests, bytes_reserved: bytes } = unknown[0]!.data
    t.is(used!.requests, (await recorded()) + Number(requests))
    t.true(used!.requests >= sent)
    t.true(Number(bytes) > 0 && used!.bytes >= Number(bytes))
  })
}
