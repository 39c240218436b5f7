/** Own service: it kills and stops processes of its deployment, settles what they leave, and loses answers of its database. */
/** Each call of a killed process is recorded, or within the number that it may have lost. Each end of a call is stored once. */
import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import test from 'ava'
import { Agent, request } from 'undici'
import {
  closeLostCalls,
  recordUnknownCalls,
} from '../../../actors/vault/egress/admission/lost-calls.js'
import { systemClock } from '../../../runtime/kernel/clock.js'
import { systemRandom } from '../../../runtime/kernel/random.js'
import { appendStatement } from '../../../storage/platform/outbox.js'
import { svcBeside } from '../../flows/vault/command.js'
import { callerOf } from '../../support/agents/journey.js'
import { relayTo } from '../../support/storage/database-relay.js'
import { approvalScene } from '../../support/vault/approvals.js'
import {
  bodyCall,
  closedCalls,
  CREDENTIALS,
  longAgo,
  ownEgressHouse,
  type Setting,
  settingOf,
  UPSTREAM_NAME,
} from '../../support/vault/egress.js'
import { ownService } from '../../support/service/own-service.js'
import { sql } from '../../support/storage/sql.js'
import { METRICS_TOKEN, metric, until } from '../../support/service/watch.js'
import { freePort, TEST_DEFAULTS } from '../../support/service.js'
import { IS_LONG } from '../../support/runs.js'

const CALLS_MAX = 16
const CALLERS = 8
/** Kills at different moments between the record of one group of calls and the next. */
const KILL_AFTER_CALLS = [60, 131, 202, 277, 351]
/** The grant has no limits, or holds more than is called. */
const LIMITS = { max_requests: 2_000, max_bytes: 50_000_000 }

type Unknown = { data: Record<string, unknown>; grant_id: string; outcome: string }

const KILLS = !IS_LONG
  ? [{ killAfter: 150, limits: LIMITS }]
  : KILL_AFTER_CALLS.flatMap((killAfter) => [{}, LIMITS].map((limits) => ({ killAfter, limits })))

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
    const child = await svcBeside(t, running, {
      ...TEST_DEFAULTS,
      ...resources.environment,
      SVC_SERVER__PORT: String(port),
      SVC_VAULT__EGRESS_UNRECORDED_CALLS_MAX: String(CALLS_MAX),
    })
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
    await sql(database)`
      update egress_blocks set renewed_at = renewed_at - interval '1 h'
      where tenant_id = ${setting.tenantId} returning id`
    const found = await Promise.all([settle(), settle(), settle()])
    const total = found.reduce((sum, each) => sum + each)
    t.is(total, CALLS_MAX, 'recorded once')
    t.is(await settle(), 0)
    let unknown: Unknown[] = []
    await until('the record is in the audit log', async () => {
      // Reading the audit log numbers what waits.
      await resources.api.list('/api/v1/audit-events', setting.operator)
      unknown = await sql<Unknown>(database)`
        select data, grant_id, outcome from audit_events where tenant_id = ${setting.tenantId}
        and type = 'egress.calls.unknown'`
      return unknown.length > 0
    })
    t.is(unknown.length, 1)
    t.is(unknown[0]!.data['calls_max'], CALLS_MAX)
    t.is(unknown[0]!.grant_id, setting.grantId)
    t.is(unknown[0]!.outcome, 'failure')
    if (!isLimited) return
    // What the process had taken and not used counts as used, and the record says how much it is.
    const [used] = await sql<{ requests: number; bytes: number }>(database)`
      select requests_used::integer as requests, bytes_used::integer as bytes from vault_grants
      where tenant_id = ${setting.tenantId} and id = ${setting.grantId}`
    const { requests_reserved: requests, bytes_reserved: bytes } = unknown[0]!.data
    t.is(used!.requests, (await recorded()) + Number(requests))
    t.true(used!.requests >= sent)
    t.true(Number(bytes) > 0 && used!.bytes >= Number(bytes))
  })
}

const MAX_BYTES = 4_000_000

type Told = {
  id: string
  type: string
  data: Record<string, unknown>
  audit: Record<string, unknown>
}

/** The call events of a tenant. */
function eventsOf({ tenantId }: Setting): Promise<Told[]> {
  return sql<Told>(database)`
    select e.id, e.type, e.data, to_jsonb(a) as audit from all_events e
    join audit_events a on a.tenant_id = e.tenant_id and a.id = e.id
    where e.tenant_id = ${tenantId}
    and (e.type = 'egress.stream.closed' or e.data ->> 'access' = 'egress')
    order by e.sequence`
}

const closeLost = () => closeLostCalls({ database, clock: systemClock })

async function used({ tenantId, grantId }: Setting) {
  const [row] = await sql<{ bytes: number; requests: number }>(database)`
    select bytes_used as bytes, requests_used as requests from vault_grants
    where tenant_id = ${tenantId} and id = ${grantId}`
  return row!
}

const call = ({ direct, ...setting }: Setting, path: string) =>
  resources.send('/v1/proxy/body', {
    token: direct,
    headers: bodyCall(setting, `${upstream.origin}${path}`),
    body: 'hello',
  })

test.serial('calls of a killed process get their end events, once', async (t) => {
  const port = await freePort()
  const child = await svcBeside(t, running, {
    ...TEST_DEFAULTS,
    ...resources.environment,
    SVC_SERVER__PORT: String(port),
  })
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
        ...bodyCall(setting, `${upstream.origin}/silent-after-chunk`),
      },
    })
    await once(answer.body, 'readable')
    readings.push(t.throwsAsync(answer.body.text()))
  }
  // This call runs in another process.
  const held = await call(one, '/silent-after-chunk')
  held.body.on('error', () => {})
  child.child.kill('SIGKILL')
  t.is(await child.ended(), 'SIGKILL')
  await Promise.all(readings)

  t.is(await closeLost(), 0, 'they may still run')
  const before = await used(other)
  t.is(before.requests, 1)
  t.true(before.bytes > 0 && before.bytes < MAX_BYTES, String(before.bytes))

  await longAgo(resources, other)
  const hour = 'insert into egress_call_limits values (7200, now())'
  await sql(database, hour)
  t.is(await closeLost(), 0, 'another process has a longer time limit')
  await sql(database)`delete from egress_call_limits where hop_timeout_secs > 7000`
  const found = await Promise.all([1, 2, 3, 4].map(() => closeLost()))
  t.is(
    found.reduce((sum, each) => sum + each),
    1,
    found.join(),
  )
  t.is(await closeLost(), 0)
  const [begun, ended, ...more] = await eventsOf(other)
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
  t.deepEqual(await used(other), before, 'the taken bytes count as used')
  const next = await call(other, '/echo')
  t.is(await next.body.text(), 'hello')

  // The running call gets its end event from its own process, with all figures.
  held.body.destroy()
  const [left] = await closedCalls(resources, one.tenantId, 1)
  t.like(left, { outcome: 'client_closed', bytes: 14 })
  await longAgo(resources, one)
  // The next start closes the remaining ones.
  const started = await ownService({ peerOf: running, transport: 'plain_http' })
  t.teardown(() => started.end())
  const closed = await closedCalls(resources, one.tenantId, 2)
  t.deepEqual(
    closed.map(({ outcome }) => outcome),
    ['client_closed', 'upstream_error'],
  )
  const events = await eventsOf(one)
  t.is(events.length, 4)
  t.is(new Set(events.map(({ id }) => id)).size, 4)
})

test.serial('approvals outlive the process that asked, and each is used once', async (t) => {
  const budget = { requests: 3, window: 'total' }
  const { setting, call, answer } = await approvalScene(resources, { approval: 'each', budget })
  const port = await freePort()
  const child = await svcBeside(t, running, {
    ...TEST_DEFAULTS,
    ...resources.environment,
    SVC_SERVER__PORT: String(port),
  })
  const elsewhere = (path: string, approvalId?: string) =>
    request(`http://localhost:${port}/v1/proxy`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${setting.delegated}`,
        'content-type': 'application/json',
        ...(approvalId === undefined ? {} : { 'x-svc-approval': approvalId }),
      },
      body: JSON.stringify({ credential_id: setting.credentialId, url: upstream.origin + path }),
    })
  const approved = async (path: string) => {
    const { statusCode, body } = await elsewhere(path)
    t.is(statusCode, 202)
    const { approval_id: id } = (await body.json()) as { approval_id: string }
    t.is((await answer(id, 'approve')).status, 200)
    return id
  }
  const [unused, used] = [await approved('/echo'), await approved('/silent')]
  const cut = elsewhere('/silent', used).catch(() => 'cut')
  await until('the call is under way', () => upstream.requests.at(-1)?.url === '/silent')
  child.child.kill('SIGKILL')
  t.is(await child.ended(), 'SIGKILL')
  t.is(await cut, 'cut')

  t.is((await call({ url: `${upstream.origin}/silent` }, used)).status, 403)
  const answers = await Promise.all(Array.from({ length: 4 }, () => call({}, unused)))
  t.deepEqual(answers.map(({ status }) => status).toSorted(), [200, 403, 403, 403])
  // The call of the killed process counts, and asking does not.
  const { body: grants } = await resources.api.get(
    `${CREDENTIALS}/${setting.credentialId}/grants`,
    setting.operator,
  )
  const [grant] = grants as unknown as readonly { budget: { used: object } }[]
  t.deepEqual(grant!.budget.used, { requests: 2 })
})

test.serial('a call that was closed as lost gets one end event, and others continue', async (t) => {
  const setting = await settingOf(resources, {}, { max_bytes: MAX_BYTES })
  const stands = await call(setting, '/silent-after-chunk')
  stands.body.on('error', () => {})
  // Simulates a process that was suspended for an hour.
  await longAgo(resources, setting)
  t.is(await closeLost(), 1)
  stands.body.destroy()
  const next = await call(setting, '/echo')
  t.is(await next.body.text(), 'hello')
  const [lost, own, ...more] = await closedCalls(resources, setting.tenantId, 2)
  t.deepEqual(more, [])
  t.is(lost!['outcome'], 'upstream_error')
  t.is(own!['outcome'], 'completed')
  const again = await call(setting, '/echo')
  t.is(await again.body.text(), 'hello')
  t.is((await closedCalls(resources, setting.tenantId, 3)).length, 3)
})

test.serial(
  'a call end with a lost commit response is stored once, and calls continue',
  async (t) => {
    const relay = await relayTo(t, running.db.url)
    const behind = await ownEgressHouse({
      peerOf: running,
      environment: { DATABASE_URL: relay.url },
    })
    t.teardown(() => behind.end())
    const setting = await settingOf(resources, {}, { max_bytes: MAX_BYTES })
    const call = async () => {
      const { statusCode, body } = await behind.send('/v1/proxy/body', {
        token: setting.direct,
        headers: bodyCall(setting, `${behind.upstream.origin}/echo`),
        body: 'hello',
      })
      await body.dump()
      return statusCode
    }
    const recorded = async () => {
      const [row] = await sql<{ used: number }>(database)`
        select (bytes_used - coalesce((select sum(bytes_held) from egress_blocks
        where authority_id = g.id), 0))::integer as used
        from vault_grants g where tenant_id = ${setting.tenantId} and id = ${setting.grantId}`
      return row!.used
    }
    t.is(await call(), 200)
    await closedCalls(resources, setting.tenantId, 1)
    const each = await recorded()
    t.true(each > 0 && each < 1_000, String(each))
    relay.loseAnswerTo(appendStatement([]))
    t.is(await call(), 200)
    await closedCalls(resources, setting.tenantId, 2)
    // Longer than the retry delay.
    await sleep(2_000)
    t.is(await call(), 200)
    t.is((await closedCalls(resources, setting.tenantId, 3)).length, 3)
    await sleep(200)
    t.is((await closedCalls(resources, setting.tenantId, 3)).length, 3)
    t.is(await recorded(), each * 3)
  },
)

test.serial('an invalid call end does not block others', async (t) => {
  const setting = await settingOf(resources, {}, { max_bytes: MAX_BYTES })
  const status = async (path: string) => {
    const { statusCode, body } = await call(setting, path)
    await body.dump()
    return statusCode
  }
  const odd = status('/pause/held')
  await until('the call has taken its bytes', async () =>
    upstream.requests.some(({ url }) => url === '/pause/held'),
  )
  // The bytes cannot be returned, because the stored usage is smaller.
  await sql(database)`
    update vault_grants set bytes_used = 0 where tenant_id = ${setting.tenantId}
    and id = ${setting.grantId} returning id`
  upstream.releaseEvents()
  t.is(await odd, 200)
  t.is(await status('/echo'), 200)
  const [closed] = await closedCalls(resources, setting.tenantId, 1)
  t.is(closed!['outcome'], 'completed')
  t.is(await status('/echo'), 200)
  t.is((await closedCalls(resources, setting.tenantId, 2)).length, 2)
})

test.serial('a process that stops records its calls and closes its blocks', async (t) => {
  const stopping = await ownEgressHouse({
    transport: 'plain_http',
    environment: { SVC_SERVER__METRICS_BEARER_TOKEN: METRICS_TOKEN },
    peerOf: running,
  })
  t.teardown(() => stopping.end())
  const setting = await settingOf(resources)
  const callIt = async () => {
    const { statusCode, body } = await stopping.send('/v1/proxy/body', {
      token: setting.direct,
      headers: bodyCall(setting, `${stopping.upstream.origin}/echo`, { 'x-svc-method': 'GET' }),
    })
    await body.dump()
    return statusCode
  }
  const caller = callerOf(stopping.running.baseUrl)
  const inMemory = () => metric(caller, 'svc_egress_admissions_total', { by: 'memory' })
  await until('twenty calls were admitted in memory', async () => {
    const statuses = await Promise.all(Array.from({ length: 10 }, callIt))
    t.true(statuses.every((status) => status === 200))
    return (await inMemory()) >= 20
  })
  const sent = stopping.upstream.requests.length
  await stopping.end()
  const blocks = 'select from egress_blocks where tenant_id = $1'
  t.is((await sql(database, blocks, [setting.tenantId])).length, 0)
  const begun = `select from all_events where tenant_id = $1 and type = 'vault.credential.accessed'`
  t.is((await sql(database, begun, [setting.tenantId])).length, sent)
  t.is((await closedCalls(resources, setting.tenantId, sent)).length, sent)
})
