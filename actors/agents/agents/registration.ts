/**
 * Agent registration: proof of key ownership, proof of work, then the agent.
 *
 * States of a challenge: issued -> consumed (once), or issued -> expired (by time or after too many
 * invalid proofs). A valid proof before the minimum duration does not change it
 * (docs/reference/agents.md).
 */
import type { Handler, ActorRef, MessageContext } from '../../../runtime/kernel/actor.js'
import { invariant } from '../../../runtime/kernel/assert.js'
import type { Clock } from '../../../runtime/kernel/clock.js'
import type { Random } from '../../../runtime/kernel/random.js'
import { together } from '../../../runtime/kernel/batched-asks.js'
import {
  findAgent,
  fingerprintKnown,
  type NewAgent,
  registerAgentRow,
} from '../../../storage/agents/agents.js'
import { appendEvents } from '../../../storage/platform/outbox.js'
import {
  countInvalidProof,
  findPowChallenge,
  insertPowChallenges,
  type NewPowChallenge,
  type PowChallengeRow,
  redeemPowChallenge,
} from '../../../storage/agents/pow-challenges.js'
import type { Database, Transaction } from '../../../storage/platform/sql.js'
import { agentRegistered } from '../../domain/events.js'
import { isUuid } from '../../domain/ids.js'
import { REGISTERED_AGENT_SCOPES } from '../../domain/scopes.js'
import { ownershipString } from '../../domain/signed-strings.js'
import type { Tenant } from '../../domain/tenants/tenancy.js'
import type { OwnershipVerdict, PowProtocol } from '../proof-of-work/protocol.js'
import type { TenantsProtocol } from '../../identity/users/tenants/protocol.js'
import { type Anchor, type AnchorNeeds, anchors } from './anchors.js'
import { type Difficulty, type DifficultySettings, difficulty } from './difficulty.js'
import type { PowOutcome, PowMetrics } from './metrics.js'
import type {
  AgentsProtocol,
  AgentRegistered,
  ChallengeKind,
  CompletionChecked,
  CompletionRefused,
  RegisterDirectly,
  StartRefused,
} from './protocol.js'
import { agentRecord } from './records.js'
import { judgeChallenge, ownershipRefusal, refusal, secondsTooEarly } from './rules.js'
import { inTenant } from '../../platform/in-tenant.js'

const CHALLENGE_TOKEN_BYTES = 32

export type RegistrationNeeds = AnchorNeeds & {
  database: Database
  clock: Clock
  random: Random
  tenants: ActorRef<TenantsProtocol>
  pow: ActorRef<PowProtocol>
  outcomes: PowMetrics
  issuer: string
  settings: Readonly<Record<'pow_min_duration_secs' | 'pow_ttl_secs' | 'pow_max_invalid', number>> &
    DifficultySettings
}

type ProvenKey = Extract<OwnershipVerdict, { tag: 'valid' }>
type Admitted = { tag: 'admitted'; tenant: Tenant; key: ProvenKey; anchor: Anchor }

export type RegistrationTools = RegistrationNeeds & {
  readonly judgeAnchor: ReturnType<typeof anchors>['judge']
  readonly closed: ClosedChallenges
  readonly tally: Difficulty
  /** Stores a challenge of work. Undefined: its key or its anchor has one already. */
  readonly issueWork: (challenge: NewPowChallenge) => Promise<Date | undefined>
}
type Does<K extends keyof AgentsProtocol> = Handler<RegistrationTools, AgentsProtocol, K>

export function registrationTools(needs: RegistrationNeeds): RegistrationTools {
  const { database, clock, settings } = needs
  return {
    ...needs,
    judgeAnchor: anchors(needs).judge,
    closed: closedChallenges(),
    tally: difficulty(clock, settings),
    // In a flood hundreds of starts arrive during one commit, so they are inserted in batches. A batch
    // spans tenants; each row names its own.
    issueWork: together(async (challenges: readonly NewPowChallenge[]) => {
      const expiries = await database.system((tx) => insertPowChallenges(tx, challenges))
      return challenges.map(({ id }) => expiries.get(id))
    }),
  }
}

// Also the operation `startWorkspaceBootstrap`.
export const startAgentRegistration: Does<'startAgentRegistration'> = async (
  tools,
  { kind, ...start },
  context,
) => {
  const { random, outcomes, settings, tally } = tools
  const admitted = await admit(tools, start, 'proof_of_work', kind, context)
  if (admitted.tag !== 'admitted') return admitted
  const { tenant, key, anchor } = admitted
  const challenge = {
    id: random.uuid(),
    tenantId: tenant.id,
    kind,
    challengeToken: random.token(CHALLENGE_TOKEN_BYTES),
    difficultyBits: tally.next(tenant.id),
    minDurationSecs: settings.pow_min_duration_secs,
    name: start.registration.name,
    ...anchor,
    keyAlgorithm: start.registration.keyAlgorithm,
    publicKey: key.rawKey,
    fingerprint: key.fingerprint,
    ttlSecs: settings.pow_ttl_secs,
  }
  const expiresAt = await tools.issueWork(challenge)
  if (expiresAt === undefined) return { tag: await conflictOf(tools, challenge, context) }
  outcomes.count('issued')
  outcomes.observeDifficulty(challenge.difficultyBits)
  return {
    tag: 'started',
    challengeId: challenge.id,
    challengeToken: challenge.challengeToken,
    difficultyBits: challenge.difficultyBits,
    minDurationSeconds: challenge.minDurationSecs,
    expiresAt,
    expiresInSeconds: settings.pow_ttl_secs,
  }
}

export const completeAgentRegistration: Does<'completeAgentRegistration'> = async (
  tools,
  message,
  context,
) => {
  const { database, outcomes } = tools
  const checked = await checkCompletion(tools, { ...message, kind: 'agent' }, context)
  if (checked.tag !== 'checked') return checked
  const agent = newAgent(tools, checked)
  const redeemed = await inTenant(database, checked.tenantId, context, async (tx) => {
    const redemption = await redeemPowChallenge(tx, message.challengeId, agent)
    return redemption === 'registered' ? confirm(tx, tools, agent, context) : redemption
  })
  if (redeemed === 'closed') return counted(outcomes, { tag: 'challenge_consumed' })
  if (typeof redeemed === 'string') return counted(outcomes, { tag: redeemed })
  outcomes.count('consumed')
  return redeemed
}

export const registerAgent: Does<'registerAgent'> = async (tools, message, context) => {
  const admitted = await admit(tools, message, 'direct', 'agent', context)
  if (admitted.tag !== 'admitted') return admitted
  const { tenant, key, anchor } = admitted
  const agent = newAgent(tools, {
    tenantId: tenant.id,
    name: message.registration.name,
    ...anchor,
    keyAlgorithm: message.registration.keyAlgorithm,
    publicKey: key.rawKey,
    fingerprint: key.fingerprint,
  })
  return inTenant(tools.database, tenant.id, context, async (tx) => {
    const registered = await registerAgentRow(tx, agent)
    return registered === 'registered' ? confirm(tx, tools, agent, context) : { tag: registered }
  })
}

/** The checks of a completion, in the order of docs/reference/agents.md. */
export const checkCompletion: Does<'checkCompletion'> = async (tools, message, context) => {
  const { database, pow, outcomes, settings, closed } = tools
  const { challengeId, nonce } = message
  const challenge = closed.get(challengeId) ?? (await find(tools, challengeId, context))
  if (challenge !== undefined) closed.note(challenge)
  const verdict = judgeChallenge(challenge, message)
  if (verdict.tag !== 'open') return counted(outcomes, verdict)
  invariant(challenge !== undefined, 'an open challenge exists')
  const { challengeToken, difficultyBits } = challenge
  const work = await pow.verify({ challengeToken, nonce, difficultyBits }, context)
  if (work.tag !== 'valid') {
    await inTenant(database, challenge.tenantId, context, (tx) =>
      countInvalidProof(tx, challengeId, settings.pow_max_invalid),
    )
    return counted(outcomes, { tag: 'invalid_proof' })
  }
  const waitSeconds = secondsTooEarly(challenge)
  if (waitSeconds !== null) return counted(outcomes, { tag: 'too_early', waitSeconds })
  return {
    tag: 'checked',
    tenantId: challenge.tenantId,
    name: challenge.name,
    anchorType: challenge.anchorType,
    did: challenge.did,
    onChain: challenge.onChain,
    keyAlgorithm: challenge.keyAlgorithm,
    publicKey: challenge.publicKey,
    fingerprint: challenge.fingerprint,
  }
}

async function admit(
  { tenants, pow, issuer, judgeAnchor }: RegistrationTools,
  { registration, tenant: selector, network = null }: RegisterDirectly,
  method: 'proof_of_work' | 'direct',
  kind: ChallengeKind,
  context: MessageContext,
): Promise<Admitted | StartRefused> {
  const { keyOwnershipProof: proof } = registration
  if (proof === undefined) {
    return { tag: 'invalid_ownership_proof', detail: 'key_ownership_proof is missing' }
  }
  // A workspace bootstrap starts in the control plane, whichever host the request names.
  const named = selector.tenantId !== undefined || selector.tenantSlug !== undefined
  const resolved =
    kind === 'workspace' && !named
      ? await tenants.ensureControlPlane({}, context)
      : await tenants.resolve(selector, context)
  if (resolved.tag === 'unknown_tenant' || resolved.tag === 'conflicting_tenant') return resolved
  const { tenant } = resolved
  if (kind === 'workspace' && !tenant.controlPlane) {
    return {
      tag: 'invalid_registration',
      pointer: selector.tenantId === undefined ? '/tenant_slug' : '/tenant_id',
      detail: 'must name the control-plane tenant or be omitted',
    }
  }
  const refused = refusal(tenant, method)
  if (refused !== undefined) return refused
  const { publicKey, keyAlgorithm, anchorType, anchorValue } = registration
  const claim = { publicKey, keyAlgorithm, anchorType, issuer, tenantId: tenant.id }
  const did = typeof anchorValue === 'string' ? anchorValue : undefined
  const verdict = await pow.verifyOwnership({ ...claim, anchorValue: did, proof }, context)
  if (verdict.tag === 'invalid') return ownershipRefusal(verdict.reason)
  // Checked last: only the holder of a key can make the service open a connection.
  const from = { tenantId: tenant.id, network }
  const proven = { ...verdict, ownership: ownershipString(claim) }
  const judged = await judgeAnchor(registration, proven, from)
  if (judged.tag !== 'anchor') return judged
  return { tag: 'admitted', tenant, key: verdict, anchor: judged.anchor }
}

/** Why a challenge was not issued. */
async function conflictOf(
  { database }: RegistrationTools,
  { tenantId, fingerprint }: NewPowChallenge,
  context: MessageContext,
): Promise<'fingerprint_known' | 'anchor_known'> {
  const taken = await inTenant(database, tenantId, context, (tx) =>
    fingerprintKnown(tx, tenantId, fingerprint),
  )
  return taken ? 'fingerprint_known' : 'anchor_known'
}

// The request has only the id; the row says which tenant it belongs to.
async function find(
  { database }: RegistrationTools,
  challengeId: string,
  context: MessageContext,
): Promise<PowChallengeRow | undefined> {
  return isUuid(challengeId)
    ? database.system((tx) => findPowChallenge(tx, challengeId), context)
    : undefined
}

function newAgent(
  { clock, random }: RegistrationTools,
  proven: Omit<CompletionChecked, 'tag'>,
): NewAgent {
  const { keyAlgorithm: algorithm, ...agent } = proven
  return {
    ...agent,
    algorithm,
    id: random.uuid(),
    scopes: [...REGISTERED_AGENT_SCOPES],
    createdAt: clock.now(),
  }
}

/** Reads the registered agent and, last in the transaction, appends its event. */
async function confirm(
  tx: Transaction,
  { random, issuer }: RegistrationTools,
  agent: NewAgent,
  context: MessageContext,
): Promise<AgentRegistered> {
  const row = await findAgent(tx, agent.id)
  invariant(row !== undefined, 'a registered agent exists')
  const record = agentRecord(row)
  const key = record.keys.find(({ id }) => id === agent.fingerprint)
  invariant(key !== undefined, 'a registered agent has its key')
  appendEvents(tx, [agentRegistered(random.uuid(), agent, context.requestId)])
  return { tag: 'registered', agent: record, key, issuer }
}

const OUTCOMES: Readonly<Record<CompletionRefused['tag'], PowOutcome>> = {
  unknown_challenge: 'unknown',
  challenge_mismatch: 'mismatch',
  challenge_expired: 'expired',
  challenge_consumed: 'replayed',
  invalid_proof: 'invalid_proof',
  too_early: 'too_early',
  fingerprint_known: 'fingerprint_known',
  anchor_known: 'anchor_known',
}

function counted<Refusal extends CompletionRefused>(
  outcomes: PowMetrics,
  refused: Refusal,
): Refusal {
  outcomes.count(OUTCOMES[refused.tag])
  return refused
}

const CLOSED_MAX = 4096

/**
 * Cache of closed challenges. `consumed` and `expired` are final states, so a row seen in one of them
 * is not read again: repeated requests for a spent challenge cause no database work.
 */
interface ClosedChallenges {
  get(id: string): PowChallengeRow | undefined
  /** Remembers a challenge if it is closed. */
  note(challenge: PowChallengeRow): void
}

export function closedChallenges(): ClosedChallenges {
  const closed = new Map<string, PowChallengeRow>()
  return {
    get: (id) => closed.get(id),
    note(challenge) {
      if (challenge.status === 'issued' && !challenge.outlived) return
      if (closed.has(challenge.id)) return
      if (closed.size >= CLOSED_MAX) closed.delete(closed.keys().next().value!)
      closed.set(challenge.id, challenge)
    },
  }
}
