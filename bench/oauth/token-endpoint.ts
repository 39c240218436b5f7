/**
 * The token endpoint and introspection over HTTP, against oidc-provider 9 in the same run: the whole
 * service, durable, with audit and events, compared with the peer in memory and on PostgreSQL. Each server runs in a
 * separate process on one core, and its own processor time is measured. PostgreSQL and the generator use the other
 * cores. glewlwyd is a peer in C, if it is installed.
 * Needs wrk.
 *
 *     node dist/bench/oauth/token-endpoint.js [client_credentials|glewlwyd|introspection|refresh|code]
 */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startEmbeddedPostgres } from '../../runtime/embedded/postgres.js'
import { silentLogger } from '../../runtime/kernel/log.js'
import { compare, type Contender, publish, SERVER_WARM_UP_MS } from '../harness.js'
import { missing, startGlewlwyd } from './glewlwyd.js'
import { type Hammered, type PeerProcess, startPeer } from './peer-process.js'
import { CALLBACK } from './protocol.js'

/** Codes are single-use. */
const CODES_PER_ROUND = 3_000
/** Twice as many as are in flight, so that one is always waiting. */
const REFRESH_FAMILIES = 64

const folder = await mkdtemp(join(tmpdir(), 'svc-bench-oauth-'))
const servers: { stop(): Promise<void> }[] = []
const started: Hammered[] = []
try {
  const svc = await begin('svc-server', [await database('svc'), join(folder, 'svc-data')])
  const memory = await begin('peer-server', ['memory', 'jwt'])
  const durableJwt = await begin('peer-server', ['postgres', 'jwt', await database('peer_jwt')])
  const durable = await begin('peer-server', ['postgres', 'opaque', await database('peer')])
  const only = process.argv[2]?.startsWith('--') ? undefined : process.argv[2]
  const wanted = (name: string) => only === undefined || only === name

  if (wanted('client_credentials')) {
    await besidePeer(svc, memory, 3.5, {
      name: 'client_credentials, ES256 JWT; the peer keeps nothing',
      reference: 'oidc-provider, memory, JWT',
    })
    await besidePeer(svc, durable, 2.7, {
      name: 'client_credentials; the peer writes a row per token',
      reference: 'oidc-provider, PostgreSQL, opaque',
    })
  }
  if (wanted('glewlwyd')) {
    const reason = missing()
    if (reason === null) await besideGlewlwyd(svc)
    else console.error(`${reason}: no peer in C to measure against`)
  }
  if (wanted('introspection')) {
    await publish(
      await compare({
        name: 'Introspection of one access token',
        ms: 3_000,
        warmUpMs: SERVER_WARM_UP_MS,
        reference: await introspection('oidc-provider, PostgreSQL, opaque', durable),
        contenders: [await introspection('svc, PostgreSQL', svc, 3)],
      }),
    )
  }
  if (wanted('refresh')) {
    await publish(
      await compare({
        name: `refresh_token with rotation, ${REFRESH_FAMILIES} families`,
        ms: 3_000,
        warmUpMs: SERVER_WARM_UP_MS,
        reference: await refresh('oidc-provider, PostgreSQL, JWT', durableJwt),
        contenders: [await refresh('svc, PostgreSQL', svc, 4)],
      }),
    )
  }
  if (wanted('code')) {
    await publish(
      await compare({
        name: 'authorization_code with ID token and refresh token',
        reference: exchange('oidc-provider, PostgreSQL, JWT', durableJwt),
        contenders: [exchange('svc, PostgreSQL', svc, 4)],
      }),
    )
  }
} finally {
  await Promise.all(started.map((peer) => peer.stop()))
  await Promise.all(servers.map((server) => server.stop()))
  await rm(folder, { recursive: true, force: true })
}

async function begin(script: string, args: readonly string[]): Promise<PeerProcess> {
  const peer = await startPeer(script, args)
  started.push(peer)
  return peer
}

/** client_credentials, per second of the server's own processor time. */
async function besidePeer(
  svc: Hammered,
  peer: Hammered,
  target: number,
  { name, reference }: { readonly name: string; readonly reference: string },
): Promise<void> {
  await publish(
    await compare({
      name,
      ms: 3_000,
      warmUpMs: SERVER_WARM_UP_MS,
      reference: credentials(reference, peer),
      contenders: [credentials('svc, durable', svc, target)],
    }),
  )
}

/** glewlwyd's database is in its process, svc's is not, so total throughput is compared. */
async function besideGlewlwyd(svc: Hammered): Promise<void> {
  const glewlwyd = await startGlewlwyd()
  started.push(glewlwyd)
  await publish(
    await compare({
      name: 'client_credentials, ES256 JWT; a peer in C writes two rows per token, in memory',
      ms: 3_000,
      warmUpMs: SERVER_WARM_UP_MS,
      reference: credentials('glewlwyd, SQLite in memory, JWT', glewlwyd),
      contenders: [{ ...credentials('svc, durable', svc, 5.5), by: 'wall' }],
    }),
  )
}

/** A separate durable PostgreSQL for each side, with the same settings. */
async function database(name: string): Promise<string> {
  const server = await startEmbeddedPostgres({ dataDir: join(folder, name), log: silentLogger })
  servers.push(server)
  return server.url
}

function credentials(name: string, on: Hammered, target?: number): Contender {
  const { credentials: fields, tokenPath, clientScope } = on.peer
  const form = { grant_type: 'client_credentials', scope: clientScope, ...fields }
  return { name, target, by: 'cpu', run: (ms) => on.hammer(tokenPath, form, ms) }
}

async function introspection(name: string, on: PeerProcess, target?: number): Promise<Contender> {
  const { credentials: fields, tokenPath, introspectionPath, clientScope } = on.peer
  let token = ''
  await on.spend(
    tokenPath,
    [{ grant_type: 'client_credentials', scope: clientScope, ...fields }],
    (answer) => {
      token = String(answer['access_token'])
    },
  )
  const form = { token, ...fields }
  return { name, target, by: 'cpu', run: (ms) => on.hammer(introspectionPath, form, ms) }
}

async function refresh(name: string, on: PeerProcess, target?: number): Promise<Contender> {
  const { credentials: fields, tokenPath } = on.peer
  // Each token family is sequential: a refresh returns the next token.
  const tokens = [...(await on.refreshTokens(REFRESH_FAMILIES))]
  function* until(endMs: number) {
    while (performance.now() < endMs) {
      yield { grant_type: 'refresh_token', refresh_token: tokens.shift()!, ...fields }
    }
  }
  return {
    name,
    target,
    by: 'cpu',
    run: (ms) =>
      on.spend(tokenPath, until(performance.now() + ms), (answer) => {
        tokens.push(String(answer['refresh_token']))
      }),
  }
}

function exchange(name: string, on: PeerProcess, target?: number): Contender {
  const { credentials: fields, tokenPath } = on.peer
  return {
    name,
    target,
    by: 'cpu',
    async run() {
      const forms = (await on.codes(CODES_PER_ROUND)).map((code) => ({
        grant_type: 'authorization_code',
        redirect_uri: CALLBACK,
        ...fields,
        ...code,
      }))
      return on.spend(tokenPath, forms)
    },
  }
}
