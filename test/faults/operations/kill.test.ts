/**
 * kill -9 at any moment. Acknowledged writes exist after the next start, and nothing is
 * half-written. One kill while it starts and one under work; with TEST_LONG 2 and 30.
 */
import { randomInt, randomUUID } from 'node:crypto'
import { chmodSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import test from 'ava'
import { Client } from 'pg'
import { startEmbeddedPostgres } from '../../../runtime/embedded/postgres.js'
import { silentLogger } from '../../../runtime/kernel/log.js'
import { processesOf, svc } from '../../flows/vault/command.js'
import {
  type Answer,
  type Caller,
  callerOf,
  clientToken,
  complete,
  demand,
  type Json,
  login,
  start,
  type Workspace,
  workspaceOf,
} from '../../support/agents/journey.js'
import { freePort } from '../../support/service.js'
import { IS_LONG } from '../../support/runs.js'

const KILLS = IS_LONG ? 30 : 1
/** Kills before the first start is complete. */
const EARLY_KILLS = IS_LONG ? 2 : 1
const WORKERS = 3
const KILL_AFTER_MS = [150, 1_200] as const

/** A creation whose response may have been lost. `id` is set once it was acknowledged. */
type Creation = { readonly space: Workspace; readonly key: string; id: string | undefined }

const creation = ({ post }: Caller, { key }: Creation, token: string): Promise<Answer> =>
  post(
    '/api/v1/applications',
    { name: key, redirect_uris: ['https://app.example/cb'] },
    { authorization: `Bearer ${token}`, 'idempotency-key': key },
  )

/** Bootstraps and creates until the service is gone, and records acknowledged creations. */
async function work(http: Caller, spaces: Workspace[], creations: Creation[]): Promise<void> {
  for (;;) {
    const begun = await start(http)
    const space = workspaceOf(begun.key, demand(await complete(http, begun), 201))
    spaces.push(space)
    const wanted: Creation = { space, key: randomUUID(), id: undefined }
    creations.push(wanted)
    const created = demand(await creation(http, wanted, space.accessToken), 201)
    wanted.id = String(created.body['id'])
  }
}

/** A random time, and on a busy machine until as many creations are acknowledged. */
async function someWork(creations: readonly Creation[], count: number): Promise<void> {
  await sleep(randomInt(...KILL_AFTER_MS))
  while (creations.filter(({ id }) => id !== undefined).length < count) await sleep(5)
}

const isConnectionLoss = (error: unknown) => error instanceof TypeError

test(`acknowledged writes survive a kill at any moment, and nothing is half-written`, async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'svc-kill-'))
  chmodSync(folder, 0o711)
  t.teardown(() => {
    for (const line of processesOf(folder)) process.kill(Number.parseInt(line, 10), 'SIGKILL')
    rmSync(folder, { recursive: true, force: true })
  })
  const port = await freePort()
  const launch = () =>
    svc(t, {
      environment: {
        SVC_DATA_DIR: folder,
        SVC_SERVER__PORT: String(port),
        SVC_SERVER__ENDPOINT_THROTTLE__ENABLED: 'false',
        SVC_CHALLENGE__POW_DIFFICULTY_BITS: '4',
        SVC_CHALLENGE__POW_MIN_DURATION_SECS: '0',
        SVC_AUTH__ARGON2_MEMORY_KIB: '64',
        SVC_AUTH__ARGON2_ITERATIONS: '1',
      },
    })
  const serve = async () => {
    const service = launch()
    await service.ready()
    return service
  }
  const http = callerOf(`http://localhost:${port}`)
  const spaces: Workspace[] = []
  const creations: Creation[] = []

  // While it creates its database, migrates, and generates its keys.
  for (let kill = 0; kill < EARLY_KILLS; kill += 1) {
    const service = launch()
    await sleep(randomInt(...KILL_AFTER_MS))
    service.child.kill('SIGKILL')
    await service.ended()
  }
  for (let kill = 0; kill < KILLS; kill += 1) {
    const service = await serve()
    const working = Array.from({ length: WORKERS }, () =>
      work(http, spaces, creations).catch((error: unknown) => {
        if (!isConnectionLoss(error)) throw error
      }),
    )
    await Promise.race([someWork(creations, kill + 1), Promise.all(working)])
    service.child.kill('SIGKILL')
    t.is(await service.ended(), 'SIGKILL')
    await Promise.all(working)
  }
  t.true(spaces.length >= KILLS, `${spaces.length} workspaces in ${KILLS} lives`)

  const last = await serve()
  const tokens = new Map<Workspace, string>()
  for (const space of spaces) {
    const entered = demand(await login(http, space), 200)
    t.is(entered.body['agent_id'], space.agentId)
    tokens.set(space, String(entered.body['access_token']))
    demand(await clientToken(http, space), 200)
  }
  let unsure = 0
  for (const each of creations) {
    const again = demand(await creation(http, each, tokens.get(each.space)!), 201)
    if (each.id === undefined) unsure += 1
    else {
      t.is(again.headers.get('idempotency-replayed'), 'true')
      t.is(again.body['id'], each.id)
    }
    const authorization = `Bearer ${tokens.get(each.space)!}`
    const listed = await http.call('/api/v1/applications', { headers: { authorization } })
    const names = (JSON.parse(listed.text) as Json[]).map(({ name }) => name)
    t.deepEqual(names.toSorted(), ['Journey', each.key].toSorted(), 'once, whatever was seen of it')
  }
  t.log(`${spaces.length} workspaces, ${creations.length} creates, ${unsure} without an answer`)
  last.child.kill('SIGTERM')
  t.is(await last.ended(), 0)

  const server = await startEmbeddedPostgres({ dataDir: folder, log: silentLogger })
  t.teardown(() => server.stop())
  const inside = new URL(server.superuserUrl)
  inside.pathname = '/svc'
  const client = new Client({ connectionString: inside.href })
  await client.connect()
  t.teardown(() => client.end())
  const count = async (from: string) =>
    (await client.query<{ n: number }>(`select count(*)::int as n from ${from}`)).rows[0]!.n
  const made = await count('organizations')
  t.true(made >= spaces.length && made <= spaces.length + KILLS * WORKERS)
  for (const [what, from] of [
    ['tenants', 'tenants where not control_plane'],
    ['agents', 'agents'],
    ['keys', 'agent_keys'],
    ['owners', `organization_members where role = 'owner'`],
    ['applications of a start', `applications where name = 'Journey'`],
    ['fixture users', 'tenant_users where fixture'],
    ['spent challenges', `pow_challenges where status = 'consumed'`],
    ['events of agents', `all_events where type = 'admin.agent.registered'`],
  ] as const) {
    t.is(await count(from), made, what)
  }
  t.is(await count(`applications where name <> 'Journey'`), creations.length)
  const halves = `pow_challenges c where status = 'consumed' and not exists (
    select from agent_keys k where k.tenant_id = c.tenant_id and k.fingerprint = c.fingerprint)`
  t.is(await count(halves), 0, 'no challenge is spent without its agent')
})
