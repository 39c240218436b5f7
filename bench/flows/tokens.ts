/**
 * The tokens actor on its own durable PostgreSQL: issue, refresh, introspect, judge. Below the
 * gateway, so that the figures are the actor's. The reference signs a token and commits one row for
 * it with a named insert, which is the least an issuer with a durable row can do without batching.
 */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Registry } from 'prom-client'
import { freshKeyPair } from '../../runtime/kernel/key-pair.js'
import { signingKeysActor } from '../../actors/oauth/signing-keys/actor.js'
import { tenantsActor } from '../../actors/identity/users/tenants/actor.js'
import { tokensActor } from '../../actors/oauth/tokens/actor.js'
import type { TokenRequest } from '../../actors/oauth/tokens/protocol.js'
import { runMigrations } from '../../migrations/main.js'
import { startEmbeddedPostgres } from '../../runtime/embedded/postgres.js'
import { systemClock } from '../../runtime/kernel/clock.js'
import { spawnInline } from '../../runtime/kernel/inline.js'
import { silentLogger } from '../../runtime/kernel/log.js'
import { systemRandom } from '../../runtime/kernel/random.js'
import { registerAgentRow } from '../../storage/agents/agents.js'
import { insertApplication, newClientSecret } from '../../storage/oauth/applications.js'
import { postgresCoordination } from '../../storage/platform/coordination/postgres.js'
import { memoryKms } from '../../storage/platform/kms/memory.js'
import { createSealer } from '../../storage/platform/sealing/seal.js'
import { insertControlPlane } from '../../storage/identity/tenants.js'
import { openBenchDatabase } from '../bench-database.js'
import { compare, type Measured, publish } from '../harness.js'

const ISSUER = 'https://auth.svc.example'
const IN_FLIGHT = 64
const jwt = {
  default_algorithm: 'ES256',
  access_token_lifetime_human_secs: 900,
  access_token_lifetime_agent_secs: 300,
  refresh_token_lifetime_human_secs: 604_800,
  refresh_token_lifetime_agent_secs: 86_400,
  id_token_lifetime_secs: 300,
  key_rotation_days: 30,
} as const
const folder = await mkdtemp(join(tmpdir(), 'svc-bench-'))
const server = await startEmbeddedPostgres({ dataDir: join(folder, 'data'), log: silentLogger })
try {
  await run(server.url)
} finally {
  await server.stop()
  await rm(folder, { recursive: true, force: true })
}

function form(fields: Record<string, string>): TokenRequest {
  return {
    form: Object.entries(fields),
    authorization: null,
    dpopProof: null,
    httpMethod: 'POST',
    httpUrl: `${ISSUER}/oauth/token`,
    address: '192.0.2.1',
  }
}

function must<Outcome extends { tag: string }>(outcome: Outcome, tag: string): Outcome {
  if (outcome.tag !== tag) throw new Error(`${outcome.tag}, not ${tag}`)
  return outcome
}

/** The tokens actor, and the actors that it asks. */
async function openActors(url: string) {
  await runMigrations({ url, log: silentLogger })
  const database = await openBenchDatabase(url, 'all', {
    max_connections: 20,
    identity_max_connections: 10,
  })
  const clock = systemClock
  const random = systemRandom(clock)
  const kms = memoryKms({ random })
  const sealer = createSealer({ database, kms, random, clock })
  const keys = spawnInline(signingKeysActor, {
    database,
    sealer,
    kms,
    clock,
    random,
    settings: jwt,
  })
  await keys.ref.maintain(null)
  const tenancy = {
    baseDomain: 'svc.example',
    issuerHost: new URL(ISSUER).hostname,
    defaultTenantSlug: undefined,
  }
  const tenants = spawnInline(tenantsActor, { database, clock, random, settings: tenancy })
  const tokens = spawnInline(tokensActor, {
    keys: keys.ref,
    tenants: tenants.ref,
    database,
    coordination: postgresCoordination(database),
    sealer,
    documents: { fetch: async () => ({ tag: 'failed', fault: 'not here' }) },
    vault: { export: async () => ({ tag: 'unknown_credential' }) },
    clock,
    random,
    registry: new Registry(),
    issuer: ISSUER,
    jwt,
    dpop: { enabled: true, require_nonce: false, proof_max_age_secs: 300 },
    console: true,
    credentials: true,
    accessControl: false,
    apiKeys: true,
  })
  return {
    database,
    clock,
    random,
    keys: keys.ref,
    tokens: tokens.ref,
    async close() {
      await tokens.stop()
      await tenants.stop()
      await keys.stop()
      await database.close()
    },
  }
}

type Actors = Awaited<ReturnType<typeof openActors>>

/** A tenant with an application and an agent, and the table of the reference. */
async function seed({ database, clock, random }: Actors) {
  const tenantId = random.uuid()
  const clientId = random.uuid()
  const agentId = random.uuid()
  const { secret, sha256 } = newClientSecret(random)
  const createdAt = clock.now()
  const key = freshKeyPair('ed25519').publicKey.export({ format: 'jwk' })
  await database.system(async (tx) => {
    await insertControlPlane(tx, { id: tenantId, name: 'bench', slug: 'bench', createdAt })
    await insertApplication(tx, {
      id: clientId,
      tenantId,
      name: 'bench',
      redirectUris: [],
      createdAt,
      secretSha256: sha256,
      grantTypes: ['client_credentials'],
      scopes: ['applications:read'],
    })
    await registerAgentRow(tx, {
      id: agentId,
      tenantId,
      name: 'bench',
      scopes: ['vault:read'],
      createdAt,
      did: 'did:key:bench',
      anchorType: 'did_key',
      fingerprint: 'bench',
      algorithm: 'ed25519',
      publicKey: Buffer.from(key.x!, 'base64url'),
    })
    await tx.query({
      name: 'bench.table',
      text: 'create table bench_tokens (id uuid primary key, tenant_id uuid not null, data jsonb not null)',
    })
  })
  return { tenantId, agentId, secretFields: { client_id: clientId, client_secret: secret } }
}

async function run(url: string): Promise<void> {
  const actors = await openActors(url)
  const { database, clock, random, keys, tokens } = actors
  const { tenantId, agentId, secretFields } = await seed(actors)
  const issue = async () =>
    must(
      await tokens.issueToken(form({ grant_type: 'client_credentials', ...secretFields })),
      'issued',
    )
  const login = async () => {
    const granted = await tokens.grantAgent({
      tenantId,
      organizationId: null,
      agentId,
      scopes: ['vault:read'],
      keyFingerprint: 'bench',
      jkt: null,
      challengeId: null,
      address: null,
    })
    if (granted.tag !== 'granted') throw new Error(granted.tag)
    return granted
  }
  const reference = async () => {
    const signed = await keys.sign({
      typ: 'at+jwt',
      claims: JSON.stringify({
        iss: ISSUER,
        sub: secretFields.client_id,
        jti: random.uuid(),
        exp: clock.nowSecs() + 300,
      }),
    })
    await database.single({
      name: 'bench.insert',
      text: 'insert into bench_tokens (id, tenant_id, data) values ($1, $2, $3)',
      values: [
        random.uuid(),
        tenantId,
        JSON.stringify({ client_id: secretFields.client_id, tag: signed.tag }),
      ],
    })
  }
  const { accessToken } = await login()

  const refreshTokens = await Promise.all(
    Array.from({ length: IN_FLIGHT }, async () => (await login()).refreshToken),
  )
  /** Each of the chains rotates its own family, over and over. */
  const refresh = async (chain: number) => {
    const outcome = await tokens.issueToken(
      form({
        grant_type: 'refresh_token',
        client_id: agentId,
        refresh_token: refreshTokens[chain]!,
      }),
    )
    if (outcome.tag !== 'issued') throw new Error(outcome.tag)
    refreshTokens[chain] = outcome.refreshToken!
  }
  const introspect = async () =>
    must(
      await tokens.introspectToken(form({ token: accessToken, ...secretFields })),
      'introspected',
    )
  const authenticate = async () =>
    must(
      await tokens.authenticate({
        token: accessToken,
        scheme: 'Bearer',
        dpopProof: null,
        httpMethod: 'GET',
        httpUrl: `${ISSUER}/api/v1/applications`,
      }),
      'authenticated',
    )

  await publish(
    await compare({
      name: `tokens actor, ${IN_FLIGHT} in flight, PostgreSQL with fsync`,
      reference: { name: 'sign and one insert, 20 connections', run: many(reference) },
      contenders: [
        // Our own reference: the minimum cost of a durable token.
        { name: 'client_credentials', target: 1, run: many(issue) },
        { name: 'refresh with rotation', run: many(refresh) },
        { name: 'agent login', run: many(login) },
        { name: 'introspection', run: many(introspect) },
        { name: 'bearer judgement, remembered', run: many(authenticate) },
      ],
    }),
  )
  await actors.close()
}

/** Keeps `IN_FLIGHT` going and reports the 99th percentile of one operation as well. */
function many(operation: (chain: number) => Promise<unknown>) {
  return async (ms: number): Promise<Measured> => {
    const end = performance.now() + ms
    const took: number[] = []
    await Promise.all(
      Array.from({ length: IN_FLIGHT }, async (_, chain) => {
        while (performance.now() < end) {
          const begun = performance.now()
          await operation(chain)
          took.push(performance.now() - begun)
        }
      }),
    )
    took.sort((a, b) => a - b)
    return { operations: took.length, figures: { p99Ms: took[Math.floor(took.length * 0.99)]! } }
  }
}
