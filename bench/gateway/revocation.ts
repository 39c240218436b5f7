/**
 * Time from the answer of a revocation to the last request that is still accepted, in one process with two gateway
 * threads. The kernel gives connections to both threads; each of several connections presents the token again and
 * again. The thread that answers the revocation refuses immediately, so the time is measured at the other one.
 *
 *     node dist/bench/gateway/revocation.js [<revocations>]
 */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { Client } from 'undici'
import { startEmbeddedPostgres } from '../../runtime/embedded/postgres.js'
import { silentLogger } from '../../runtime/kernel/log.js'
import { machine, percentiles } from '../harness.js'
import { startPeer } from '../oauth/peer-process.js'

/** All of them are on one thread in one of 2^11 runs. */
const CONNECTIONS = 12
const PAUSE_MS = 1
/** Refused for its query when the token is accepted. Neither answer needs the database. */
const PATH = '/api/v1/applications?limit=0'
const FORM = { 'content-type': 'application/x-www-form-urlencoded' }

const count = Number(process.argv[2] ?? 300)
const folder = await mkdtemp(join(tmpdir(), 'svc-bench-revocation-'))
const database = await startEmbeddedPostgres({ dataDir: join(folder, 'db'), log: silentLogger })
const service = await startPeer('svc-server', [database.url, join(folder, 'svc'), '2'], false)
const { port, credentials, tokenPath, clientScope } = service.peer
const connections = Array.from(
  { length: CONNECTIONS },
  () => new Client(`http://127.0.0.1:${port}`),
)
/** A separate connection, which is on one of the threads. */
const issuing = new Client(`http://127.0.0.1:${port}`)

async function post(path: string, fields: Readonly<Record<string, string>>) {
  const body = new URLSearchParams({ ...fields, ...credentials }).toString()
  const answer = await issuing.request({ method: 'POST', path, headers: FORM, body })
  const text = await answer.body.text()
  if (answer.statusCode !== 200) throw new Error(`${path}: ${answer.statusCode} ${text}`)
  return text
}

/** Presents the token until it is refused. @returns when the last accepted request was sent. */
async function lastAccepted(client: Client, token: string, began: () => void): Promise<number> {
  let lastMs = 0
  for (;;) {
    const sentMs = performance.now()
    const headers = { authorization: `Bearer ${token}` }
    const answer = await client.request({ method: 'GET', path: PATH, headers })
    await answer.body.dump()
    if (answer.statusCode === 401) return lastMs
    if (answer.statusCode !== 400) throw new Error(`${PATH}: ${answer.statusCode}`)
    lastMs = sentMs
    began()
    await sleep(PAUSE_MS)
  }
}

async function measured(): Promise<number> {
  const fields = { grant_type: 'client_credentials', scope: clientScope }
  const issued = JSON.parse(await post(tokenPath, fields)) as { readonly access_token: string }
  const token = issued.access_token
  const last: Promise<number>[] = []
  await Promise.all(
    connections.map(
      (client) => new Promise<void>((began) => last.push(lastAccepted(client, token, began))),
    ),
  )
  await post('/oauth/revoke', { token })
  const revokedMs = performance.now()
  return Math.max(0, Math.max(...(await Promise.all(last))) - revokedMs)
}

try {
  const times: number[] = []
  for (let at = 0; at < count; at += 1) times.push(await measured())
  const { p50Ms, p99Ms, maxMs } = percentiles(times)
  const ms = (value: number | undefined) => `${value?.toFixed(1)} ms`
  console.log(
    `${count} revocations, ${CONNECTIONS} connections, two gateway threads (${machine()}): accepted after the answer ` +
      `for ${ms(p50Ms)} (p50), ${ms(p99Ms)} (p99), ${ms(maxMs)} at most`,
  )
} finally {
  await Promise.all([...connections, issuing].map((client) => client.close()))
  await service.stop()
  await database.stop()
  await rm(folder, { recursive: true, force: true })
}
