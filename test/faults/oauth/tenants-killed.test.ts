/** A process is killed (SIGKILL) while many tenants get tokens concurrently, so that their events share commits. */
import test from 'ava'
import { auditEventsAfter } from '../../../storage/operations/audit.js'
import { ChainCheck } from '../../../storage/operations/audit-chain.js'
import { eventsAfter } from '../../../storage/platform/outbox.js'
import { svc } from '../../flows/vault/command.js'
import {
  type Answer,
  bootstrap,
  callerOf,
  clientToken,
  demand,
} from '../../support/agents/journey.js'
import { sql } from '../../support/storage/sql.js'
import { freePort, TEST_DEFAULTS } from '../../support/service.js'
import { freshDatabase } from '../../support/storage/database.js'
import { testKms } from '../../support/storage/kms.js'
import { IS_LONG } from '../../support/runs.js'

const TENANTS = IS_LONG ? 50 : 12
/** Tokens of all tenants before the process is killed. */
const TOKENS_MIN = IS_LONG ? 400 : 60

/** Copies of a tenant with its application, which keeps its secret. */
const COPY = [
  `insert into tenants select (jsonb_populate_record(t, jsonb_build_object('id', n.tenant,
       'slug', 'copy-' || n.place))).*
     from tenants t, unnest($2::uuid[]) with ordinality n (tenant, place)
     where t.id = (select tenant_id from applications where id = $1) and $3::uuid[] is not null`,
  `insert into applications select (jsonb_populate_record(a, jsonb_build_object(
       'tenant_id', n.tenant, 'id', n.client, 'audience', 'copy:' || n.client))).*
     from applications a, unnest($2::uuid[], $3::uuid[]) n (tenant, client) where a.id = $1`,
  `insert into application_secrets select (jsonb_populate_record(s, jsonb_build_object(
       'tenant_id', n.tenant, 'application_id', n.client))).*
     from application_secrets s, unnest($2::uuid[], $3::uuid[]) n (tenant, client)
     where s.application_id = $1`,
]

/** The id of an access token. */
const idOf = ({ body }: Answer) => {
  const [, payload = ''] = String(body['access_token']).split('.')
  const claims = JSON.parse(Buffer.from(payload, 'base64url').toString()) as {
    readonly jti: string
  }
  return claims.jti
}

test('no token of many tenants that was issued before a SIGKILL lost its event, and each feed is whole', async (t) => {
  t.timeout(240_000)
  const { database, url } = await freshDatabase(t)
  const kms = await testKms()
  t.teardown(() => kms.end())
  const port = await freePort()
  const service = svc(t, {
    environment: {
      ...TEST_DEFAULTS,
      ...kms.environment,
      DATABASE_URL: url,
      SVC_SERVER__PORT: String(port),
      SVC_OIDC__ISSUER_URL: `http://localhost:${port}`,
    },
  })
  await service.ready()
  const http = callerOf(`http://localhost:${port}`)
  const space = await bootstrap(http)
  const copies = Array.from({ length: TENANTS }, () => ({
    tenantId: crypto.randomUUID(),
    clientId: crypto.randomUUID(),
    tokens: new Set<string>(),
  }))
  const values = [
    space.clientId,
    copies.map(({ tenantId }) => tenantId),
    copies.map(({ clientId }) => clientId),
  ]
  for (const text of COPY) await sql(database, text, values)

  let issued = 0
  let enough: () => void = () => undefined
  const isEnough = new Promise<void>((resolve) => (enough = resolve))
  const working = copies.map(async ({ clientId, tokens }) => {
    try {
      for (;;) {
        const answer = demand(await clientToken(http, { ...space, clientId }), 200)
        tokens.add(idOf(answer))
        issued += 1
        if (issued === TOKENS_MIN) enough()
      }
    } catch (error) {
      // The connection to the killed process is lost.
      if (!(error instanceof TypeError)) throw error
    }
  })
  await Promise.race([isEnough, Promise.all(working)])
  service.child.kill('SIGKILL')
  t.is(await service.ended(), 'SIGKILL')
  await Promise.all(working)
  t.true(issued >= TOKENS_MIN)

  for (const { tenantId, clientId, tokens } of copies) {
    const events = await database.tenant(tenantId, (tx) => eventsAfter(tx, tenantId, 0, 10_000))
    t.deepEqual(
      events.map(({ sequence }) => sequence),
      events.map((_, at) => at + 1),
    )
    const told = new Set(events.map(({ data }) => (data['resource'] as { readonly id: string }).id))
    t.deepEqual(
      [...tokens].filter((token) => !told.has(token)),
      [],
    )
    t.true(events.every(({ data }) => data['client_id'] === clientId))
    const rows = await database.tenant(tenantId, (tx) => auditEventsAfter(tx, tenantId, 0, 10_000))
    t.is(rows.length, events.length)
    const check = new ChainCheck()
    t.true(rows.every((row) => check.add(row) === undefined))
  }
})
