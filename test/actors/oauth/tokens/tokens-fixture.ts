/** A fixture for token tests: database, keys, tokens, and a tenant with clients. */
import { createHash, type KeyObject } from 'node:crypto'
import { calculateJwkThumbprint, exportJWK, SignJWT } from 'jose'
import { Registry } from 'prom-client'
import { freshKeyPair } from '../../../../runtime/kernel/key-pair.js'
import { discoveryActor } from '../../../../actors/oauth/discovery/actor.js'
import { signingKeysActor } from '../../../../actors/oauth/signing-keys/actor.js'
import { tokensActor } from '../../../../actors/oauth/tokens/actor.js'
import { LOCALES } from '../../../../actors/domain/i18n/locales.js'
import type { FormFields, TokenRequest } from '../../../../actors/oauth/tokens/protocol.js'
import { type HeldClock, heldClock } from '../../../support/held-clock.js'
import { tenantsActor } from '../../../../actors/identity/users/tenants/actor.js'
import { spawnInline } from '../../../../runtime/kernel/inline.js'
import { type Random, systemRandom } from '../../../../runtime/kernel/random.js'
import { registerAgentRow } from '../../../../storage/agents/agents.js'
import {
  insertApplication,
  type NewApplication,
  newClientSecret,
} from '../../../../storage/oauth/applications.js'
import { postgresCoordination } from '../../../../storage/platform/coordination/postgres.js'
import { memoryKms } from '../../../../storage/platform/kms/memory.js'
import { insertOrganization } from '../../../../storage/identity/organizations.js'
import { createSealer } from '../../../../storage/platform/sealing/seal.js'
import { insertTenant } from '../../../../storage/identity/tenants.js'
import { type FreshDatabase, freshDatabase } from '../../../support/storage/database.js'
import { numberAll } from '../../../support/storage/numbered.js'

export const ISSUER = 'https://auth.svc.example'
const FACTS = {
  issuer: ISSUER,
  baseUrl: ISSUER,
  dpopEnabled: true,
  console: true,
  credentials: true,
  locales: LOCALES,
  registrationEnabled: false,
  documentation: null,
}
export const TOKEN_URL = `${ISSUER}/oauth/token`
export const INTROSPECT_URL = `${ISSUER}/oauth/introspect`
const JWT_BEARER = 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer'

export const DPOP_DEFAULT = { enabled: true, require_nonce: false, proof_max_age_secs: 300 }
const JWT_DEFAULT = {
  default_algorithm: 'ES256',
  access_token_lifetime_human_secs: 900,
  access_token_lifetime_agent_secs: 300,
  refresh_token_lifetime_human_secs: 604_800,
  refresh_token_lifetime_agent_secs: 86_400,
  id_token_lifetime_secs: 300,
  key_rotation_days: 30,
} as const

export type TokensFixture = Awaited<ReturnType<typeof buildTokensFixture>>
export type KeyPair = { publicKey: KeyObject; privateKey: KeyObject }

export async function buildTokensFixture() {
  const fresh = await freshDatabase()
  const clock = heldClock(new Date(Math.floor(Date.now() / 1000) * 1000))
  const base = { fresh, database: fresh.database, clock, random: systemRandom(clock) }
  const { tokens, keys, ...actors } = await startActors(base)
  const login = async (
    tenantId: string,
    agent: { id: string; fingerprint: string },
    jkt: string | null = null,
  ) => {
    const granted = await tokens.ref.grantAgent({
      tenantId,
      organizationId: null,
      agentId: agent.id,
      scopes: ['vault:list', 'vault:read'],
      keyFingerprint: agent.fingerprint,
      jkt,
      challengeId: null,
      address: null,
    })
    if (granted.tag !== 'granted') throw new Error(granted.tag)
    return granted
  }

  const close = async () => {
    await tokens.stop()
    await keys.stop()
    await fresh.drop()
  }
  const refs = { ...actors, keys: keys.ref, tokens: tokens.ref }
  return { ...base, ...refs, ...rowsIn(base), ...signaturesOf(base), login, close }
}

type Base = {
  readonly database: FreshDatabase['database']
  readonly clock: HeldClock
  readonly random: Random
}

/** The actors of one process. */
async function startActors({ database, clock, random }: Base) {
  const kms = memoryKms({ random })
  const sealer = createSealer({ database, kms, random, clock })
  const keys = spawnInline(signingKeysActor, {
    database,
    sealer,
    kms,
    clock,
    random,
    settings: JWT_DEFAULT,
  })
  await keys.ref.maintain(null)
  const coordination = postgresCoordination(database)
  const registry = new Registry()

  const tenants = spawnInline(tenantsActor, {
    database,
    clock,
    random,
    settings: {
      baseDomain: 'svc.example',
      issuerHost: new URL(ISSUER).hostname,
      defaultTenantSlug: undefined,
    },
  })
  /** Another process: the same database, coordination and keys, with its own memory. */
  const spawnTokens = (dpop = DPOP_DEFAULT) =>
    spawnInline(
      tokensActor,
      {
        keys: keys.ref,
        tenants: tenants.ref,
        database,
        coordination,
        sealer,
        documents: { fetch: async () => ({ tag: 'failed', fault: 'not here' }) },
        vault: { export: async () => ({ tag: 'unknown_credential' }) },
        clock,
        random,
        registry,
        issuer: ISSUER,
        jwt: JWT_DEFAULT,
        dpop,
        console: true,
        credentials: true,
        accessControl: false,
        apiKeys: true,
      },
      // Deadlines use real time, so that moving the test clock does not end other asks.
      { cloneMessages: true },
    )
  const tokens = spawnTokens()
  return { tenants: tenants.ref, registry, sealer, keys, tokens, spawnTokens }
}

/** Writes rows without the actors that have the rules for them. */
function rowsIn({ database, clock, random }: Base) {
  async function tenant(slug: string): Promise<string> {
    const id = random.uuid()
    const organizationId = random.uuid()
    const createdAt = clock.now()
    await database.system(async (tx) => {
      await insertOrganization(tx, {
        id: organizationId,
        name: slug,
        slug,
        createdAt,
        network: null,
      })
      await insertTenant(tx, {
        id,
        organizationId,
        name: slug,
        slug,
        environment: 'sandbox',
        admitAgents: true,
        createdAt,
      })
    })
    return id
  }

  async function application(tenantId: string, more: Partial<NewApplication> = {}) {
    const { secret, sha256 } = newClientSecret(random)
    const row = await database.tenant(tenantId, (tx) =>
      insertApplication(tx, {
        id: random.uuid(),
        tenantId,
        name: 'an application',
        redirectUris: [],
        createdAt: clock.now(),
        secretSha256: sha256,
        grantTypes: ['client_credentials', 'refresh_token'],
        scopes: ['openid', 'applications:read', 'users:read'],
        ...more,
      }),
    )
    return { ...row, secret, clientId: row.id, authorization: basic(row.id, secret) }
  }

  async function agent(tenantId: string, kind: 'ed25519' | 'es256' = 'ed25519') {
    const pair: KeyPair = kind === 'ed25519' ? freshKeyPair('ed25519') : freshKeyPair('P-256')
    const jwk = await exportJWK(pair.publicKey)
    const fingerprint = await calculateJwkThumbprint(jwk)
    const x = Buffer.from(jwk.x!, 'base64url')
    const odd = kind === 'es256' && (Buffer.from(jwk.y!, 'base64url').at(-1)! & 1) === 1
    const publicKey = kind === 'ed25519' ? x : Buffer.concat([Buffer.from([odd ? 3 : 2]), x])
    const id = random.uuid()
    await database.tenant(tenantId, (tx) =>
      registerAgentRow(tx, {
        id,
        tenantId,
        name: 'an agent',
        scopes: ['vault:read', 'vault:list'],
        createdAt: clock.now(),
        did: `did:key:${fingerprint}`,
        anchorType: 'did_key',
        fingerprint,
        algorithm: kind,
        publicKey,
      }),
    )
    return { id, fingerprint, ...pair }
  }

  /** Runs a statement like the operator: across tenants. */
  const sql = async (text: string, values: unknown[] = []) => {
    if (/\b(?:all_|audit_)?events\b/.test(text)) await numberAll(database)
    const name = `test.${createHash('md5').update(text).digest('hex')}`
    return database.system((tx) => tx.query({ name, text, values }))
  }

  return { tenant, application, agent, sql }
}

/** What clients sign. */
function signaturesOf({ clock, random }: Base) {
  const assertion = (
    clientId: string,
    privateKey: KeyObject,
    change: Record<string, unknown> = {},
    head: Record<string, unknown> = {},
  ) => {
    const nowSecs = clock.nowSecs()
    const alg = privateKey.asymmetricKeyType === 'ec' ? 'ES256' : 'EdDSA'
    const claims = { iss: clientId, sub: clientId, aud: ISSUER, iat: nowSecs, exp: nowSecs + 60 }
    return new SignJWT({ ...claims, jti: random.uuid(), ...change })
      .setProtectedHeader({ alg, ...head })
      .sign(privateKey)
  }

  const proof = async (
    { publicKey, privateKey }: KeyPair,
    change: Record<string, unknown> = {},
    accessToken?: string,
  ) => {
    const alg = privateKey.asymmetricKeyType === 'ec' ? 'ES256' : 'EdDSA'
    const ath = accessToken && createHash('sha256').update(accessToken).digest('base64url')
    const claims = { jti: random.uuid(), htm: 'POST', htu: TOKEN_URL, iat: clock.nowSecs() }
    return new SignJWT({ ...claims, ...(ath ? { ath } : {}), ...change })
      .setProtectedHeader({ alg, typ: 'dpop+jwt', jwk: await exportJWK(publicKey) })
      .sign(privateKey)
  }

  return { assertion, proof }
}

/** Actors for tenants and discovery. */
export function publishing({ database, clock, random, keys }: TokensFixture) {
  const tenancy = {
    baseDomain: 'svc.example',
    issuerHost: new URL(ISSUER).hostname,
    defaultTenantSlug: undefined,
  }
  const tenants = spawnInline(tenantsActor, { database, clock, random, settings: tenancy })
  const means = { keys, tenants: tenants.ref, database, clock, tenancy, facts: FACTS }
  return { tenants, discovery: spawnInline(discoveryActor, means) }
}

export function request(
  fields: Record<string, string>,
  more: Partial<TokenRequest> = {},
): TokenRequest {
  const form: FormFields = Object.entries(fields)
  return {
    form,
    authorization: null,
    dpopProof: null,
    httpMethod: 'POST',
    httpUrl: TOKEN_URL,
    address: '192.0.2.1',
    ...more,
  }
}

export function basic(clientId: string, secret: string): string {
  return `Basic ${Buffer.from(`${clientId}:${secret}`).toString('base64')}`
}

export function byAssertion(assertion: string): Record<string, string> {
  return { client_assertion_type: JWT_BEARER, client_assertion: assertion }
}
