/**
 * The actors of agents, tenants, workspaces and users on a real database. Tokens and password hashes are made by stubs
 * that record their requests. They have their own tests.
 */
import { NO_LETTERS } from '../operations/mail.js'
import { agentsActor } from '../../../actors/agents/agents/actor.js'
import type { PowOutcome } from '../../../actors/agents/agents/metrics.js'
import type { Registration } from '../../../actors/agents/agents/protocol.js'
import { createDocuments } from '../../../actors/platform/outbound-http/documents.js'
import type { PasswordsProtocol } from '../../../actors/identity/passwords/protocol.js'
import { powActor, powPool } from '../../../actors/agents/proof-of-work/actor.js'
import { tenantsActor } from '../../../actors/identity/users/tenants/actor.js'
import type {
  GrantAgent,
  DpopProof,
  TokensProtocol,
} from '../../../actors/oauth/tokens/protocol.js'
import { usersActor } from '../../../actors/identity/users/actor.js'
import { workspacesActor } from '../../../actors/agents/workspaces/actor.js'
import { createAgentKey } from '../../../runtime/clients/client/agent.js'
import { type ActorRef, withMethods } from '../../../runtime/kernel/actor.js'
import { systemClock } from '../../../runtime/kernel/clock.js'
import { type Spawned, spawnInline } from '../../../runtime/kernel/inline.js'
import { createLogger } from '../../../runtime/kernel/log.js'
import type { Protocol } from '../../../runtime/kernel/protocol.js'
import { openPool } from '../../../runtime/kernel/threads/pool.js'
import { systemRandom } from '../../../runtime/kernel/random.js'
import type { Database } from '../../../storage/platform/sql.js'
import { spendAgentChallenges } from '../../../storage/agents/agent-challenges.js'
import { freshDatabase } from '../storage/database.js'
import { nonceFor } from './nonce.js'

export const ISSUER = 'https://auth.svc.example'

export type IdentityOptions = {
  readonly difficultyBits?: number
  readonly minDurationSecs?: number
  readonly tricklePerMinute?: number
  readonly powTtlSecs?: number
  readonly challengeTtlSecs?: number
}

const WITHOUT_CHAINS = { registries: [], groups: { of: () => [] } }
const OFFERED = { issuer: ISSUER, egressUrl: ISSUER, anchorTypes: ['did_key', 'did_web'] as const }

export async function identityFixture(options: IdentityOptions = {}) {
  const fresh = await freshDatabase()
  const { database } = fresh
  const clock = systemClock
  const random = systemRandom(clock)
  const running: { stop(): Promise<void> }[] = []
  const placement = <P extends Protocol>(actor: Spawned<P>): ActorRef<P> => {
    running.push(actor)
    return actor.ref
  }
  const log = createLogger({ level: 'error' })
  const spawn = { clock, cloneMessages: true, log }

  const compute = openPool<typeof import('../../../actors/agents/proof-of-work/compute.js')>(
    powPool(2),
  )
  const pow = placement(spawnInline(powActor, { compute }, spawn))
  const granted: GrantAgent[] = []
  const tokens = tokensRef(granted, database)
  const hashed: string[] = []
  const passwords = passwordsRef(hashed)
  const outcomes: PowOutcome[] = []

  const documents = createDocuments({
    settings: {
      egress_allow_private_networks: false,
      egress_allow_non_standard_ports: false,
      egress_ca_pem_path: undefined,
      own_names: [],
      egress_dns_overrides: {},
    },
    clock,
  })

  /** The actors of one process: a shared database, separate memory. */
  function process() {
    const tenants = placement(
      spawnInline(
        tenantsActor,
        {
          database,
          clock,
          random,
          settings: {
            baseDomain: 'svc.example',
            issuerHost: 'auth.svc.example',
            defaultTenantSlug: undefined,
          },
        },
        spawn,
      ),
    )
    const users = placement(
      spawnInline(usersActor, { database, clock, random, passwords, ...NO_LETTERS }, spawn),
    )
    const agents = placement(
      spawnInline(
        agentsActor,
        {
          database,
          clock,
          random,
          tenants,
          pow,
          tokens,
          issuer: ISSUER,
          documents,
          ...WITHOUT_CHAINS,
          outcomes: {
            count: (outcome) => void outcomes.push(outcome),
            observeDifficulty: () => undefined,
          },
          settings: {
            pow_difficulty_bits: options.difficultyBits ?? 4,
            pow_trickle_per_minute: options.tricklePerMinute ?? 1_000_000,
            pow_flood_bits_max: 4,
            pow_min_duration_secs: options.minDurationSecs ?? 0,
            pow_ttl_secs: options.powTtlSecs ?? 300,
            pow_max_invalid: 10,
            agent_challenge_ttl_secs: options.challengeTtlSecs ?? 120,
          },
        },
        spawn,
      ),
    )
    const workspaces = placement(
      spawnInline(
        workspacesActor,
        { database, clock, random, agents, tenants, tokens, users, ...OFFERED },
        spawn,
      ),
    )
    return { tenants, agents, workspaces }
  }

  const first = process()
  const { tenant: controlPlane } = await first.tenants.ensureControlPlane({})

  return {
    database,
    controlPlane,
    pow,
    ...first,
    /** Another process on the same database. */
    sibling: process,
    granted,
    hashed,
    outcomes,
    async close() {
      for (const actor of running.toReversed()) await actor.stop()
      await compute.close()
      await documents.close()
      await fresh.drop()
    },
  }
}

export type IdentityFixture = Awaited<ReturnType<typeof identityFixture>>

/** A new key and the registration it requests. */
export function newcomer(
  tenantId: string,
  name = 'Newcomer',
  algorithm: 'ed25519' | 'es256' = 'ed25519',
) {
  const key = createAgentKey(algorithm)
  const sent = key.registration({ issuer: ISSUER, tenantId })
  const registration: Registration = {
    name,
    anchorType: sent.anchor_type,
    anchorValue: sent.anchor_value,
    publicKey: sent.public_key,
    keyAlgorithm: sent.key_algorithm,
    keyOwnershipProof: sent.key_ownership_proof,
  }
  return { key, registration }
}

/** A challenge of a new agent, and the nonce that completes it. */
export async function started(
  fixture: IdentityFixture,
  kind: 'agent' | 'workspace' = 'agent',
  tenantId: string = fixture.controlPlane.id,
) {
  const { key, registration } = newcomer(tenantId)
  const outcome = await fixture.agents.startAgentRegistration({
    kind,
    registration,
    tenant: { tenantId },
  })
  if (outcome.tag !== 'started') throw new Error(`start: ${outcome.tag}`)
  return { key, registration, challengeId: outcome.challengeId, nonce: nonceFor(outcome), outcome }
}

/** A registered agent. */
export async function registered(fixture: IdentityFixture, tenantId?: string) {
  const { key, challengeId, nonce } = await started(fixture, 'agent', tenantId)
  const outcome = await fixture.agents.completeAgentRegistration({ challengeId, nonce })
  if (outcome.tag !== 'registered') throw new Error(`complete: ${outcome.tag}`)
  return { key, agent: outcome.agent }
}

const PROVEN = { tag: 'proven', jkt: 'thumbprint' }
const REFUSED = {
  tag: 'proof_refused',
  error: 'use_dpop_nonce',
  description: 'a nonce is needed',
  dpopNonce: 'nonce',
}

function tokensRef(granted: GrantAgent[], database: Database): ActorRef<TokensProtocol> {
  const ask = async (kind: string, message: unknown) => {
    if (kind === 'proveKey') return (message as DpopProof).proof === 'good' ? PROVEN : REFUSED
    if (kind !== 'grantAgent') throw new Error(`unexpected message: ${kind}`)
    const grant = message as GrantAgent
    const { challengeId, tenantId } = grant
    if (challengeId !== null) {
      const [isSpent] = await database.tenant(tenantId, (tx) =>
        spendAgentChallenges(tx, tenantId, [challengeId]),
      )
      if (!isSpent) return { tag: 'challenge_spent' }
    }
    granted.push(grant)
    return {
      tag: 'granted',
      accessToken: `access ${granted.length}`,
      tokenType: grant.jkt === null ? 'Bearer' : 'DPoP',
      expiresInSecs: 300,
      refreshToken: `refresh ${granted.length}`,
      scopes: grant.scopes,
      sessionId: `session ${granted.length}`,
    }
  }
  return withMethods({ name: 'tokens', ask } as unknown as ActorRef<TokensProtocol>)
}

function passwordsRef(hashed: string[]): ActorRef<PasswordsProtocol> {
  const ask = async (_kind: string, { password }: { password: string }) => {
    hashed.push(password)
    return { tag: 'hashed', phc: `$argon2id$stand-in$${hashed.length}` }
  }
  return withMethods({ name: 'passwords', ask } as unknown as ActorRef<PasswordsProtocol>)
}
