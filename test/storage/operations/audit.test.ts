import test from 'ava'
import * as fc from 'fast-check'
import { Client } from 'pg'
import { systemClock } from '../../../runtime/kernel/clock.js'
import { systemRandom } from '../../../runtime/kernel/random.js'
import {
  appendAudit,
  auditEventsAfter,
  auditHead,
  auditLine,
  listAuditEventRows,
  type NewAuditEvent,
} from '../../../storage/operations/audit.js'
import {
  auditHash,
  canonicalEvent,
  canonicalJson,
  ChainCheck,
  type ChainBreak,
} from '../../../storage/operations/audit-chain.js'
import { appendEvents } from '../../../storage/platform/outbox.js'
import { type FreshDatabase, freshDatabase } from '../../support/storage/database.js'

const random = systemRandom(systemClock)
const EVERYTHING = {
  resourceType: null,
  resourceId: null,
  requestId: null,
  type: null,
  actor: null,
  since: null,
  until: null,
}

function event(tenantId: string, change: Partial<NewAuditEvent> = {}): NewAuditEvent {
  return {
    id: random.uuid(),
    tenantId,
    type: 'admin.agent.suspended',
    occurredAt: new Date('2026-03-01T10:00:00.123Z'),
    subject: { sub: 'user-1', subject_type: 'human' },
    actors: [{ sub: 'outer', subject_type: 'agent' }],
    clientId: 'client',
    delegationId: null,
    grantId: null,
    resource: { type: 'agent', id: 'x' },
    outcome: 'success',
    requestId: 'r',
    ip: '192.0.2.1',
    data: { b: 1.5, a: [null, true, { z: 'ü\n"\\', y: 1e21 }], '': -0, at: new Date(0) },
    ...change,
  }
}

async function chainOf(fresh: FreshDatabase, tenant: string) {
  return fresh.database.tenant(tenant, (tx) => auditEventsAfter(tx, tenant, 0, 1000))
}

/** The first break of a chain, as a reader without further knowledge finds it. */
function check(events: readonly Parameters<ChainCheck['add']>[0][]): ChainBreak | undefined {
  const chain = new ChainCheck()
  for (const one of events) {
    const found = chain.add(one)
    if (found !== undefined) return found
  }
  return undefined
}

/** Tampers as an attacker with direct database access could. */
async function tamper(fresh: FreshDatabase, text: string, values: unknown[]): Promise<void> {
  const client = new Client({ connectionString: fresh.superuserUrl })
  await client.connect()
  await client.query('alter table audit_events disable trigger user')
  await client.query(text, values)
  await client.query('alter table audit_events enable trigger user')
  await client.end()
}

test('a written event is read back with a reproducible hash', async (t) => {
  const fresh = await freshDatabase(t)
  const tenant = random.uuid()
  const given = event(tenant)
  await fresh.database.tenant(tenant, (tx) => appendAudit(tx, [given, event(tenant)]))
  const [first, second] = await chainOf(fresh, tenant)
  t.deepEqual(first, {
    id: given.id,
    sequence: 1,
    tenant_id: tenant,
    type: 'admin.agent.suspended',
    occurred_at: '2026-03-01T10:00:00.123Z',
    subject: given.subject,
    actors: given.actors,
    client_id: 'client',
    delegation_id: null,
    grant_id: null,
    resource: given.resource,
    outcome: 'success',
    request_id: 'r',
    ip: '192.0.2.1',
    data: {
      '': 0,
      a: [null, true, { y: 1e21, z: 'ü\n"\\' }],
      at: '1970-01-01T00:00:00.000Z',
      b: 1.5,
    },
    previous_hash: '0'.repeat(64),
    hash: auditHash(first!),
  })
  t.is(second?.previous_hash, first?.hash)
  t.is(check([first!, second!]), undefined)
  const head = await fresh.database.tenant(tenant, (tx) => auditHead(tx, tenant))
  t.deepEqual(head, { sequence: 2, hash: second!.hash })
})

test('the hash of an event with arbitrary JSON survives the database', async (t) => {
  const fresh = await freshDatabase(t)
  // JSON in PostgreSQL can hold neither NUL nor lone surrogates.
  const text = fc
    .string({ unit: 'binary' })
    .filter((s) => !s.includes('\0') && Buffer.from(s, 'utf8').toString('utf8') === s)
  const value = fc.letrec((tie) => ({
    value: fc.oneof(
      { depthSize: 'small' },
      text,
      fc.double({ noNaN: true, noDefaultInfinity: true }),
      fc.integer(),
      fc.boolean(),
      fc.constant(null),
      fc.array(tie('value'), { maxLength: 4 }),
      fc.dictionary(text, tie('value'), { maxKeys: 4 }),
    ),
  })).value
  const tenant = random.uuid()
  await fc.assert(
    fc.asyncProperty(fc.array(fc.dictionary(text, value), { maxLength: 5 }), async (given) => {
      await fresh.database.tenant(tenant, (tx) =>
        appendAudit(
          tx,
          given.map((data) => event(tenant, { data })),
        ),
      )
    }),
    { numRuns: 60 },
  )
  t.is(check(await chainOf(fresh, tenant)), undefined)
})

test('canonical JSON sorts members by code units and keeps the order of lists', (t) => {
  t.is(
    canonicalJson({ '\u{1f600}': 1, '\ufb33': 2, b: [2, 1], a: { d: undefined, c: null } }),
    '{"a":{"c":null},"b":[2,1],"\u{1f600}":1,"\ufb33":2}',
  )
})

test('canonical JSON does not depend on the order of members', (t) => {
  const reversed = (value: unknown): unknown => {
    if (typeof value !== 'object' || value === null) return value
    if (Array.isArray(value)) return value.map(reversed)
    return Object.fromEntries(
      Object.entries(value)
        .toReversed()
        .map(([name, member]) => [name, reversed(member)]),
    )
  }
  fc.assert(
    fc.property(fc.jsonValue(), (value) => {
      const text = canonicalJson(value)
      t.deepEqual(JSON.parse(text), JSON.parse(JSON.stringify(value)))
      t.is(canonicalJson(reversed(value)), text)
      t.is(canonicalJson(JSON.parse(text)), text)
    }),
  )
})

test('the written and the verified text of an event are equal', (t) => {
  const word = fc.oneof(fc.uuid(), fc.string({ unit: 'binary', maxLength: 20 }))
  const maybe = fc.option(word)
  const party = fc.record({ sub: word, subject_type: word })
  const whole = fc.record({
    id: word,
    tenantId: word,
    type: word,
    occurredAt: fc.date({ noInvalidDate: true }),
    subject: fc.option(party),
    actors: fc.array(party, { maxLength: 2 }),
    clientId: maybe,
    delegationId: maybe,
    grantId: maybe,
    resource: fc.option(fc.record({ type: word, id: word })),
    outcome: fc.constantFrom('success', 'failure', 'denied'),
    requestId: maybe,
    ip: maybe,
    data: fc.dictionary(word, fc.jsonValue(), { maxKeys: 4 }),
  })
  fc.assert(
    fc.property(whole, (told) => {
      const checked = canonicalEvent({
        id: told.id,
        tenant_id: told.tenantId,
        type: told.type,
        occurred_at: told.occurredAt.toISOString(),
        subject: told.subject,
        actors: told.actors,
        client_id: told.clientId,
        delegation_id: told.delegationId,
        grant_id: told.grantId,
        resource: told.resource,
        outcome: told.outcome,
        request_id: told.requestId,
        ip: told.ip,
        data: told.data,
      })
      t.is(auditLine(told), checked)
    }),
    { numRuns: 500 },
  )
})

test('concurrent writers and rollbacks leave one unbroken chain per tenant', async (t) => {
  const fresh = await freshDatabase(t)
  const tenants = [random.uuid(), random.uuid(), random.uuid()]
  const results = await Promise.allSettled(
    Array.from({ length: 40 }, (_, i) =>
      fresh.database.system(async (tx) => {
        const order = i % 2 ? tenants : tenants.toReversed()
        if (i % 3 !== 0)
          appendAudit(
            tx,
            order.map((tenant) => event(tenant)),
          )
        else {
          appendEvents(
            tx,
            order.map((tenantId) => ({
              id: random.uuid(),
              tenantId,
              type: 'org.created',
              data: {},
              occurredAt: new Date(),
            })),
          )
        }
        if (i % 5 === 0) throw new Error('rolled back')
      }),
    ),
  )
  t.is(results.filter(({ status }) => status === 'fulfilled').length, 32)
  for (const tenant of tenants) {
    const events = await chainOf(fresh, tenant)
    t.is(events.length, 32)
    t.is(check(events), undefined)
  }
})

test('an event of the outbox is audited with its actor', async (t) => {
  const fresh = await freshDatabase(t)
  const tenantId = random.uuid()
  const data = {
    actor: { type: 'agent', id: 'a' },
    resource: { type: 'token', id: 'b' },
    request_id: 'c',
    client_id: 'd',
    reason: 'e',
  }
  const base = { tenantId, data, occurredAt: new Date() }
  await fresh.database.tenant(tenantId, (tx) =>
    appendEvents(tx, [
      { ...base, id: random.uuid(), type: 'security.refresh_token.reuse' },
      {
        ...base,
        id: random.uuid(),
        type: 'auth.token.issued',
        audit: { ip: '192.0.2.9', subject: { sub: 'h', subject_type: 'human' } },
      },
    ]),
  )
  const [first, second] = await chainOf(fresh, tenantId)
  t.like(first, {
    subject: { sub: 'a', subject_type: 'agent' },
    resource: { type: 'token', id: 'b' },
    request_id: 'c',
    client_id: 'd',
    outcome: 'failure',
    data: { client_id: 'd', reason: 'e' },
  })
  t.like(second, { ip: '192.0.2.9', subject: { sub: 'h' }, outcome: 'success' })
  t.is(check([first!, second!]), undefined)
})

test('a changed, removed, moved or forged row breaks the chain at its place', async (t) => {
  const fresh = await freshDatabase(t)
  const tenant = random.uuid()
  await fresh.database.tenant(tenant, (tx) =>
    appendAudit(
      tx,
      Array.from({ length: 5 }, () => event(tenant)),
    ),
  )
  const intact = await chainOf(fresh, tenant)
  const restore = async () =>
    tamper(fresh, `update audit_events set outcome = 'success' where tenant_id = $1`, [tenant])

  const members = [
    'outcome',
    'type',
    'occurred_at',
    'subject',
    'actors',
    'ip',
    'data',
    'id',
  ] as const
  for (const member of members) {
    const rows = intact.map((row) => (row.sequence === 3 ? { ...row, [member]: 'changed' } : row))
    t.is(check(rows)?.sequence, 3, member)
  }
  await tamper(
    fresh,
    `update audit_events set outcome = 'denied' where tenant_id = $1 and sequence = 3`,
    [tenant],
  )
  t.deepEqual(check(await chainOf(fresh, tenant)), {
    sequence: 3,
    reason: 'was changed: its hash differs',
  })
  await restore()
  t.is(check(await chainOf(fresh, tenant)), undefined)
  await tamper(fresh, 'delete from audit_events where tenant_id = $1 and sequence = 2', [tenant])
  t.is(check(await chainOf(fresh, tenant))?.sequence, 3)
  t.is(check([intact[0]!, intact[2]!])?.sequence, 3)
  const forged = { ...intact[3]!, data: { forged: true } }
  t.is(
    check([...intact.slice(0, 3), { ...forged, hash: auditHash(forged) }, intact[4]!])?.sequence,
    5,
  )
  t.is(check([intact[0]!, { ...intact[1]!, tenant_id: random.uuid() }])?.sequence, 2)
})

test('the service itself cannot change or remove what was written', async (t) => {
  const fresh = await freshDatabase(t)
  const tenant = random.uuid()
  await fresh.database.tenant(tenant, (tx) => appendAudit(tx, [event(tenant)]))
  t.is((await chainOf(fresh, tenant)).length, 1)
  for (const text of [
    `update audit_events set outcome = 'denied'`,
    'delete from audit_events',
    'truncate audit_events',
  ]) {
    const run = fresh.database.system((tx) => tx.query({ name: `test ${text}`, text }))
    await t.throwsAsync(run, { message: 'audit events are only ever added' })
  }
  t.is((await chainOf(fresh, tenant)).length, 1)
})

test('a list is filtered by type, by subject or actor, and by time', async (t) => {
  const fresh = await freshDatabase(t)
  const tenant = random.uuid()
  const at = (minute: number) => new Date(Date.UTC(2026, 0, 1, 0, minute))
  await fresh.database.tenant(tenant, (tx) =>
    appendAudit(tx, [
      event(tenant, { type: 'a.b', occurredAt: at(1) }),
      event(tenant, { occurredAt: at(2), subject: { sub: 'outer', subject_type: 'agent' } }),
      event(tenant, { occurredAt: at(3), actors: [], subject: null }),
    ]),
  )
  const minutes = async (filter: Partial<Parameters<typeof listAuditEventRows>[2]>) => {
    const rows = await fresh.database.tenant(tenant, (tx) =>
      listAuditEventRows(tx, tenant, { ...EVERYTHING, ...filter }, 10, null),
    )
    return rows.map(({ occurred_at }) => new Date(occurred_at).getUTCMinutes())
  }
  t.deepEqual(await minutes({}), [3, 2, 1])
  t.deepEqual(await minutes({ type: 'a.b' }), [1])
  t.deepEqual(await minutes({ actor: 'outer' }), [2, 1])
  t.deepEqual(await minutes({ actor: 'user-1' }), [1])
  t.deepEqual(await minutes({ since: at(2), until: at(3) }), [2])
})

test('a tenant sees nothing of the chain of another', async (t) => {
  const fresh = await freshDatabase(t)
  const [mine, theirs] = [random.uuid(), random.uuid()]
  await fresh.database.tenant(theirs, (tx) => appendAudit(tx, [event(theirs)]))
  t.deepEqual(await fresh.database.tenant(mine, (tx) => auditEventsAfter(tx, theirs, 0, 10)), [])
  await t.throwsAsync(fresh.database.tenant(mine, (tx) => appendAudit(tx, [event(theirs)])))
})
