/**
 * Time from the request that ends a session to the arrival of its logout tokens (OpenID Connect Back-Channel Logout) and of its
 * security events (Shared Signals by push), at receivers that answer. The whole service, on a durable PostgreSQL. An open
 * loop: sessions end at a fixed rate, whatever arrives.
 */
import { once } from 'node:events'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { Worker } from 'node:worker_threads'
import { runMigrations } from '../../migrations/main.js'
import { startEmbeddedPostgres } from '../../runtime/embedded/postgres.js'
import { systemClock as clock } from '../../runtime/kernel/clock.js'
import { silentLogger as log } from '../../runtime/kernel/log.js'
import { systemRandom } from '../../runtime/kernel/random.js'
import { insertBrowserSession } from '../../storage/identity/browser-sessions.js'
import { joinSession } from '../../storage/oauth/logouts.js'
import { onlyRow } from '../../storage/platform/sql.js'
import { openBenchDatabase } from '../bench-database.js'
import { machine, percentiles } from '../harness.js'
import { bootstrap, startWhole } from '../whole-service.js'
import { LOCALHOST_CERT } from './loopback-tls.js'
import type { Arrival } from './webhook-receiver.js'

/** Applications of each session, and streams of the tenant. */
const RECEIVERS = 8
const SESSIONS = 100
const PER_SECOND = 5
/** Maximum wait for the last arrivals. */
const SETTLE_MS = 15_000
const LOGOUT = 'logout_token='

type Json = Readonly<Record<string, unknown>>
const random = systemRandom(clock)
const nowMs = () => performance.timeOrigin + performance.now()

const dataDir = await mkdtemp(join(tmpdir(), 'svc-bench-sign-out-'))
const caPath = join(dataDir, 'ca.pem')
await writeFile(caPath, LOCALHOST_CERT)
await mkdir(join(dataDir, 'svc'))
const receiver = new Worker(new URL('./webhook-receiver.js', import.meta.url))
const [receiverPort] = (await once(receiver, 'message')) as [number]
const url = `https://localhost:${receiverPort}/timed`
const postgres = await startEmbeddedPostgres({ dataDir: join(dataDir, 'db'), log })
await runMigrations({ url: postgres.url, log })
const pools = { max_connections: 4, identity_max_connections: 1 }
const database = await openBenchDatabase(postgres.url, 'async', pools)
const { service } = await startWhole(join(dataDir, 'svc'), {
  DATABASE_URL: postgres.url,
  SVC_VAULT__EGRESS_ALLOW_PRIVATE_NETWORKS: 'true',
  SVC_VAULT__EGRESS_ALLOW_NON_STANDARD_PORTS: 'true',
  SVC_VAULT__EGRESS_CA_PEM_PATH: caPath,
})

async function call(method: string, path: string, json?: unknown, token?: string): Promise<Json> {
  const answer = await fetch(`${service.baseUrl}${path}`, {
    method,
    headers: {
      'content-type': 'application/json',
      ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
    },
    ...(json === undefined ? {} : { body: JSON.stringify(json) }),
  })
  const text = await answer.text()
  if (!answer.ok) throw new Error(`${path}: ${answer.status} ${text}`)
  return text === '' ? {} : (JSON.parse(text) as Json)
}

const target = { issuer: service.baseUrl, tenantId: service.controlPlaneTenantId }
const { tenantId, token, email } = await bootstrap((path, json) => call('POST', path, json), target)

async function applications(): Promise<readonly string[]> {
  const ids: string[] = []
  for (let at = 0; at < RECEIVERS; at += 1) {
    const made = await call(
      'POST',
      '/api/v1/applications',
      {
        name: `Bench ${at}`,
        grant_types: ['authorization_code'],
        redirect_uris: ['https://localhost/callback'],
        scopes: ['openid'],
        backchannel_logout_uri: url,
      },
      token,
    )
    ids.push(String(made['id'] ?? made['client_id']))
  }
  return ids
}

const userOf = () =>
  database.system((tx) =>
    onlyRow<{ id: string; accountId: string; sub: string }>(tx, {
      name: 'bench.user',
      text: `select u.id, u.account_id as "accountId", u.sub from tenant_users u
               join accounts a on a.id = u.account_id where u.tenant_id = $1 and a.email = $2`,
      values: [tenantId, email],
    }),
  )

/** An open session in which the user has signed in to each application. */
async function openSession(
  { accountId, sub }: { readonly accountId: string; readonly sub: string },
  applicationIds: readonly string[],
): Promise<string> {
  const id = random.uuid()
  const createdAt = clock.now()
  const fromNow = (secs: number) => new Date(createdAt.getTime() + secs * 1000)
  await database.tenant(tenantId, async (tx) => {
    await insertBrowserSession(tx, {
      tenantId,
      id,
      accountId,
      tokenSha256: random.bytes(32),
      level: 1,
      pending: false,
      confined: false,
      provider: null,
      upstreamSubject: null,
      upstreamSid: null,
      amr: ['pwd'],
      authTime: createdAt,
      createdAt,
      idleSecs: 3600,
      userAgent: 'bench',
      address: '127.0.0.1',
      expiresAt: fromNow(3600),
    })
    for (const applicationId of applicationIds)
      await joinSession(tx, { tenantId, sessionId: id, applicationId, subject: sub })
  })
  return id
}

const beganMs = new Map<string, number>()
const delays = { logout: [] as number[], event: [] as number[] }
const claimsOf = (jwt: string) =>
  JSON.parse(Buffer.from(jwt.split('.')[1]!, 'base64url').toString()) as Json

receiver.on('message', ({ body, atMs }: Arrival) => {
  const isLogout = body.startsWith(LOGOUT)
  const claims = claimsOf(isLogout ? body.slice(LOGOUT.length) : body)
  const subject = claims['sub_id'] as { session?: { id?: string } } | undefined
  const began = beganMs.get(String(isLogout ? claims['sid'] : subject?.session?.id))
  if (began !== undefined) delays[isLogout ? 'logout' : 'event'].push(atMs - began)
})

async function main(): Promise<void> {
  const user = await userOf()
  const applicationIds = await applications()
  const delivery = { method: 'urn:ietf:rfc:8935', endpoint_url: url }
  for (let at = 0; at < RECEIVERS; at += 1) await call('POST', '/ssf/streams', { delivery }, token)
  const end = (id: string) =>
    call('DELETE', `/api/v1/tenant-users/${user.id}/sessions/${id}`, undefined, token)
  // Opens connections, and prepares statements.
  for (let at = 0; at < PER_SECOND; at += 1) await end(await openSession(user, applicationIds))
  await sleep(2_000)
  for (let at = 0; at < SESSIONS; at += 1) {
    const id = await openSession(user, applicationIds)
    beganMs.set(id, nowMs())
    void end(id)
    await sleep(1000 / PER_SECOND)
  }
  const wanted = SESSIONS * RECEIVERS
  const untilMs = performance.now() + SETTLE_MS
  while (
    Math.min(delays.logout.length, delays.event.length) < wanted &&
    performance.now() < untilMs
  )
    await sleep(20)
  console.log(`### From the end of a session to its receivers, ${PER_SECOND} sessions a second\n`)
  console.log(`${machine()}\n`)
  for (const [what, times] of Object.entries(delays)) {
    const { p50Ms, p99Ms, maxMs } = percentiles(times)
    const ms = (value: number | undefined) => `${value?.toFixed(1)} ms`
    console.log(
      `${what}: p50 ${ms(p50Ms)}, p99 ${ms(p99Ms)}, at most ${ms(maxMs)}; ${times.length} of ${wanted}`,
    )
  }
}

try {
  await main()
} finally {
  await service.stop()
  await database.close()
  await postgres.stop()
  await receiver.terminate()
  await rm(dataDir, { recursive: true, force: true })
}
