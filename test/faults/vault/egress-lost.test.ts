/** Own service: it kills a process of its deployment. */
/** Lost calls: their end events are appended later, once, and not while a call may run. */
import { once } from 'node:events'
import test from 'ava'
import { request } from 'undici'
import { closeLostCalls } from '../../../actors/vault/egress/admission/lost-calls.js'
import { systemClock } from '../../../runtime/kernel/clock.js'
import { svc } from '../../flows/vault/command.js'
import {
  bodyCall,
  closedCalls,
  type EgressHouse,
  ownEgressHouse,
  longAgo,
  type Setting,
  settingOf,
  UPSTREAM_NAME,
} from '../../support/vault/egress.js'
import { sql } from '../../support/storage/sql.js'
import { ownService } from '../../support/service/own-service.js'
import { freePort, TEST_DEFAULTS } from '../../support/service.js'

const MAX_BYTES = 4_000_000
const resources = await ownEgressHouse({
  transport: 'plain_http',
  environment: { SVC_DEPLOYMENT__BACKGROUND_TASKS_ENABLED: 'false' },
})
test.after.always(() => resources.end())

type Told = {
  id: string
  type: string
  data: Record<string, unknown>
  audit: Record<string, unknown>
}

/** The call events of a tenant. */
function eventsOf({ running }: EgressHouse, { tenantId }: Setting): Promise<Told[]> {
  return sql<Told>(
    running.db.database,
    `select e.id, e.type, e.data, to_jsonb(a) as audit from all_events e
     join audit_events a on a.tenant_id = e.tenant_id and a.id = e.id
     where e.tenant_id = $1
       and (e.type = 'egress.stream.closed' or e.data ->> 'access' = 'egress')
     order by e.sequence`,
    [tenantId],
  )
}

const settle = ({ running }: EgressHouse) =>
  closeLostCalls({ database: running.db.database, clock: systemClock })

async function used({ running }: EgressHouse, { tenantId, grantId }: Setting) {
  const [row] = await sql<{ bytes: number; requests: number }>(
    running.db.database,
    `select bytes_used as bytes, requests_used as requests from vault_grants
     where tenant_id = $1 and id = $2`,
    [tenantId, grantId],
  )
  return row!
}

const call = (resources: EgressHouse, { direct, ...setting }: Setting, path: string) =>
  resources.send('/v1/proxy/body', {
    token: direct,
    headers: bodyCall(setting, `${resources.upstream.origin}${path}`),
    body: 'hello',
  })

test.serial('calls of a killed process get their end events, once', async (t) => {
  const port = await freePort()
  const process = svc(t, {
    environment: {
      ...TEST_DEFAULTS,
      ...resources.environment,
      DATABASE_URL: resources.running.db.url,
      SVC_SERVER__PORT: String(port),
      SVC_OIDC__ISSUER_URL: resources.running.issuer,
      ...resources.running.kms.environment,
    },
  })
  await process.ready()
  const limits = { max_bytes: MAX_BYTES, max_requests: 3 }
  const settings = [await settingOf(resources, {}, limits), await settingOf(resources, {}, limits)]
  const [one, other] = settings as [Setting, Setting]
  const readings: Promise<unknown>[] = []
  for (const { direct, ...setting } of settings) {
    const answer = await request(`http://localhost:${port}/v1/proxy/body`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${direct}`,
        'x-request-id': `lost-${setting.tenantId}`,
        ...bodyCall(setting, `${resources.upstream.origin}/silent-after-chunk`),
      },
    })
    await once(answer.body, 'readable')
    readings.push(t.throwsAsync(answer.body.text()))
  }
  // This call runs in another process.
  const running = await call(resources, one, '/silent-after-chunk')
  running.body.on('error', () => {})
  process.child.kill('SIGKILL')
  t.is(await process.ended(), 'SIGKILL')
  await Promise.all(readings)

  t.is(await settle(resources), 0, 'they may still run')
  const before = await used(resources, other)
  t.is(before.requests, 1)
  t.true(before.bytes > 0 && before.bytes < MAX_BYTES, String(before.bytes))

  await longAgo(resources, other)
  const hour = 'insert into egress_call_limits values (7200, now())'
  await sql(resources.running.db.database, hour)
  t.is(await settle(resources), 0, 'another process has a longer time limit')
  await sql(
    resources.running.db.database,
    'delete from egress_call_limits where hop_timeout_secs > 7000',
  )
  const found = await Promise.all([1, 2, 3, 4].map(() => settle(resources)))
  t.is(
    found.reduce((sum, each) => sum + each),
    1,
    found.join(),
  )
  t.is(await settle(resources), 0)
  const [begun, ended, ...more] = await eventsOf(resources, other)
  t.deepEqual(more, [])
  t.deepEqual(ended!.data, {
    actor: begun!.data['actor'],
    resource: begun!.data['resource'],
    request_id: begun!.data['request_id'],
    credential_id: other.credentialId,
    host: UPSTREAM_NAME,
    method: 'POST',
    outcome: 'upstream_error',
  })
  t.is(ended!.data['request_id'], `lost-${other.tenantId}`)
  const who = ['subject', 'actors', 'client_id', 'delegation_id', 'grant_id', 'resource', 'ip']
  for (const member of who) t.deepEqual(ended!.audit[member], begun!.audit[member], member)
  t.is(ended!.audit['grant_id'], other.grantId)
  t.is(ended!.audit['outcome'], 'failure')
  const verified = await resources.api.get('/api/v1/audit-events/verify', other.operator)
  t.is(verified.body['valid'], true, JSON.stringify(verified.body))
  t.deepEqual(await used(resources, other), before, 'the taken bytes count as used')
  const next = await call(resources, other, '/echo')
  t.is(await next.body.text(), 'hello')

  // The running call gets its end event from its own process, with all figures.
  running.body.destroy()
  const [left] = await closedCalls(resources, one.tenantId, 1)
  t.like(left, { outcome: 'client_closed', bytes: 14 })
  await longAgo(resources, one)
  // The next start closes the remaining ones.
  const started = await ownService({ beside: resources.running, transport: 'plain_http' })
  t.teardown(() => started.end())
  const closed = await closedCalls(resources, one.tenantId, 2)
  t.deepEqual(
    closed.map(({ outcome }) => outcome),
    ['client_closed', 'upstream_error'],
  )
  const events = await eventsOf(resources, one)
  t.is(events.length, 4)
  t.is(new Set(events.map(({ id }) => id)).size, 4)
})

test.serial('a call that was closed as lost gets one end event, and others continue', async (t) => {
  const setting = await settingOf(resources, {}, { max_bytes: MAX_BYTES })
  const stands = await call(resources, setting, '/silent-after-chunk')
  stands.body.on('error', () => {})
  // Simulates a process that was suspended for an hour.
  await longAgo(resources, setting)
  t.is(await settle(resources), 1)
  stands.body.destroy()
  const next = await call(resources, setting, '/echo')
  t.is(await next.body.text(), 'hello')
  const [lost, own, ...more] = await closedCalls(resources, setting.tenantId, 2)
  t.deepEqual(more, [])
  t.is(lost!['outcome'], 'upstream_error')
  t.is(own!['outcome'], 'completed')
  const again = await call(resources, setting, '/echo')
  t.is(await again.body.text(), 'hello')
  t.is((await closedCalls(resources, setting.tenantId, 3)).length, 3)
})
