/** Request bodies and records that the agent and workspace routes share. */
import { z } from 'zod'
import type {
  CheckRefused,
  CompletionRefused,
  Registration,
  RegistrationStarted,
  StartRefused,
} from '../../../actors/agents/agents/protocol.js'
import { OWNERSHIP_DESCRIPTION } from '../../../actors/domain/signed-strings.js'
import type { TenantSelector } from '../../../actors/domain/tenants/tenancy.js'
import { uuid } from '../../request/ids.js'
import { ChosenName } from '../../../actors/domain/entities/names.js'
import { presenter } from '../../response/presenter.js'
import type { ReplyRule } from '../../response/replies.js'
import { problem, reply, type Route } from '../../route.js'

const DID_TYPES = ['did_key', 'did_web'] as const
const ANCHOR_TYPES = [...DID_TYPES, 'erc8004'] as const

const UINT64_END = 2n ** 64n

const Timestamp = z.iso.datetime().meta({ description: 'RFC 3339, UTC, milliseconds' })

const tenantSelector = {
  tenant_id: uuid().optional().meta({ description: 'Mutually exclusive with tenant_slug' }),
  tenant_slug: z.string().min(1).max(63).optional(),
}

const DID_VALUES =
  'did_key: the did:key of public_key, derived if omitted. did_web: required, a did:web ' +
  'whose document lists public_key under authentication'
const UINT256_END = 2n ** 256n

const ChainAgent = z
  .object({
    chain: z.string().max(64).meta({ description: 'CAIP-2 id', example: 'eip155:8453' }),
    agent_id: z
      .union([z.string().regex(/^(?:0|[1-9][0-9]{0,77})$/), z.int().min(0)])
      .refine((id) => !/^[0-9]{1,78}$/.test(String(id)) || BigInt(id) < UINT256_END, {
        message: 'must be below 2^256',
      })
      .meta({ description: 'ERC-721 token id. A string where it is above 2^53', example: '22' }),
  })
  .meta({ id: 'ChainAgent' })

/** What does not depend on the anchor types of the deployment. */
const registrationStart = {
  name: ChosenName,
  public_key: z
    .string()
    .min(1)
    .max(256)
    .meta({
      description:
        'base64url of the raw key (32 bytes ed25519, 33 bytes compressed point es256). Standard ' +
        'base64 and the multibase part of the did:key are accepted too',
    }),
  key_algorithm: z.enum(['ed25519', 'es256']),
  key_ownership_proof: z
    .string()
    .max(512)
    .optional()
    .meta({
      description:
        'Required. base64url signature over suite, issuer, tenant UUID, anchor_type, ' +
        'key_algorithm and public_key, joined by line feeds',
    }),
  ...tenantSelector,
}

/** The request where the deployment knows no registry of a chain. */
const DidRegistrationStart = z
  .object({
    ...registrationStart,
    anchor_type: z.enum(DID_TYPES),
    anchor_value: z.string().max(256).optional().meta({ description: DID_VALUES }),
  })
  .meta({ id: 'AgentRegistrationStart' })

export const RegistrationStart = z
  .object({
    ...registrationStart,
    anchor_type: z.enum(ANCHOR_TYPES),
    anchor_value: z
      .union([z.string().max(256), ChainAgent])
      .optional()
      .meta({
        description: `${DID_VALUES}. erc8004: required, an agent of the Identity Registry of a chain`,
      }),
    anchor_proof: z
      .string()
      .max(2_050)
      .optional()
      .meta({
        description:
          'erc8004: required. Signature of the owner of the agent (EIP-191, or EIP-1271 of a contract), in ' +
          'hexadecimal digits, over the string that key_ownership_proof signs',
      }),
  })
  .meta({ id: 'AgentRegistrationStart' })

/** The routes with the anchor types of a deployment. */
export function withAnchorTypes(
  routes: readonly Route[],
  hasRegistries: boolean,
): readonly Route[] {
  if (hasRegistries) return routes
  return routes.map((each) =>
    each.body?.kind === 'json' && each.body.schema === RegistrationStart
      ? { ...each, body: { ...each.body, schema: DidRegistrationStart } }
      : each,
  )
}

type RegistrationStartBody = z.output<typeof RegistrationStart>

export function registrationOf(body: RegistrationStartBody): Registration {
  return {
    name: body.name,
    anchorType: body.anchor_type,
    anchorValue:
      typeof body.anchor_value === 'object'
        ? { chain: body.anchor_value.chain, agentId: String(body.anchor_value.agent_id) }
        : body.anchor_value,
    anchorProof: body.anchor_proof,
    publicKey: body.public_key,
    keyAlgorithm: body.key_algorithm,
    keyOwnershipProof: body.key_ownership_proof,
  }
}

/** The tenant that the body or the Host header names. */
export function selectorOf(
  body: { tenant_id?: string | undefined; tenant_slug?: string | undefined },
  host: string,
): TenantSelector {
  return { tenantId: body.tenant_id, tenantSlug: body.tenant_slug, host }
}

export const ChallengeRequest = z
  .object({
    agent_id: uuid().optional(),
    did: z.string().min(1).max(256).optional(),
    key_id: z.string().min(1).max(128).optional(),
    ...tenantSelector,
  })
  .refine(
    ({ agent_id, did, key_id }) =>
      [agent_id, did, key_id].filter((name) => name !== undefined).length === 1,
    { message: 'exactly one of agent_id, did and key_id is required' },
  )
  .refine(({ tenant_id, tenant_slug }) => tenant_id === undefined || tenant_slug === undefined, {
    message: 'tenant_id and tenant_slug are mutually exclusive',
  })
  .meta({ id: 'AgentChallengeRequest' })

/** Decimal, below 2^64, without sign or leading zeros. A string, because JSON numbers lose precision. */
const Nonce = z
  .string()
  .regex(/^(?:0|[1-9][0-9]{0,19})$/)
  .refine((nonce) => !/^[0-9]{1,20}$/.test(nonce) || BigInt(nonce) < UINT64_END, {
    message: 'must be below 2^64',
  })

export const completion = {
  challenge_id: uuid(),
  nonce: Nonce,
  challenge_token: z
    .string()
    .max(128)
    .optional()
    .meta({ description: 'If sent, it must equal the value in the start response' }),
}

export const RegistrationComplete = z.object(completion).meta({ id: 'AgentRegistrationComplete' })

const PowChallenge = z
  .object({
    challenge_id: z.uuid(),
    challenge_token: z.string().max(128),
    difficulty_bits: z.int().min(1).max(28),
    min_duration_seconds: z.int().min(0).max(60),
    expires_at: Timestamp,
    expires_in: z.int(),
    algorithm: z.literal('sha256'),
    pow_format: z.literal('{challenge_token}:{nonce}'),
  })
  .meta({ id: 'PowChallenge' })

export const Key = z
  .object({
    id: z.string().meta({ description: 'RFC 7638 thumbprint, SHA-256, base64url' }),
    algorithm: z.enum(['ed25519', 'es256']),
    public_key: z.string(),
    status: z.enum(['active', 'deprecated', 'revoked']),
    created_at: Timestamp,
    revoked_at: Timestamp.nullable(),
  })
  .meta({ id: 'AgentKey' })

export const Anchor = z
  .object({
    type: z.enum(ANCHOR_TYPES),
    value: z.string(),
    status: z.enum(['active', 'revoked']),
    verified_at: Timestamp,
  })
  .meta({ id: 'AgentAnchor' })

export const Agent = z
  .object({
    id: z.uuid(),
    tenant_id: z.uuid(),
    name: z.string(),
    status: z.enum(['active', 'suspended']),
    did: z.string(),
    anchors: z.array(Anchor),
    keys: z.array(Key),
    scopes: z.array(z.string()),
    metadata: z.record(z.string(), z.unknown()),
    created_at: Timestamp,
    updated_at: Timestamp,
    last_authenticated_at: Timestamp.nullable(),
  })
  .meta({ id: 'Agent' })

export const RegisteredAgent = z
  .object({
    agent_id: z.uuid(),
    tenant_id: z.uuid(),
    issuer: z.url(),
    agent: Agent,
    key: Key,
  })
  .meta({ id: 'RegisteredAgent' })

export const keyJson = presenter(Key)
export const anchorJson = presenter(Anchor)
export const agentJson = presenter(Agent)

type RulesFor<Outcome extends { tag: string }> = {
  readonly [Tag in Outcome['tag']]: ReplyRule<Extract<Outcome, { tag: Tag }>>
}

export const startReplies: RulesFor<RegistrationStarted> = {
  started: reply(200, PowChallenge, (started) => ({
    challenge_id: started.challengeId,
    challenge_token: started.challengeToken,
    difficulty_bits: started.difficultyBits,
    min_duration_seconds: started.minDurationSeconds,
    expires_at: started.expiresAt.toISOString(),
    expires_in: started.expiresInSeconds,
    algorithm: 'sha256' as const,
    pow_format: '{challenge_token}:{nonce}' as const,
  })),
}

const anchorKnown: ReplyRule<{ tag: 'anchor_known' }> = problem(409, 'conflict', {
  detail: 'The anchor is already registered in this tenant.',
})
/** How long a failed document fetch is cached. */
const DOCUMENT_RETRY_SECS = 15
const CHAIN_RETRY_SECS = 5

export const startRefusals: RulesFor<StartRefused> = {
  invalid_registration: problem(400, 'bad-request', ({ pointer, detail }) => ({
    detail: `The member ${pointer.slice(1).replaceAll('/', '.')} ${detail}.`,
    errors: [{ pointer: `#${pointer}`, detail }],
  })),
  invalid_ownership_proof: problem(400, 'bad-request', ({ detail }) => ({
    detail: `The key ownership proof is invalid: ${detail}.`,
    errors: [{ pointer: '#/key_ownership_proof', detail }],
    members: { key_ownership_proof: OWNERSHIP_DESCRIPTION },
  })),
  conflicting_tenant: problem(400, 'bad-request', {
    detail: 'tenant_id and tenant_slug are mutually exclusive.',
  }),
  tenant_refuses: problem(403, 'policy-denied', ({ detail }) => ({
    detail: `Registration is refused: ${detail}.`,
  })),
  unknown_tenant: problem(404, 'not-found', { detail: 'There is no such tenant.' }),
  fingerprint_known: problem(409, 'conflict', {
    detail: 'The key is already registered in this tenant.',
  }),
  anchor_known: anchorKnown,
  anchor_unavailable: problem(503, 'service-unavailable', ({ detail }) => ({
    detail: `The DID document is temporarily unavailable: ${detail}. Send the request again.`,
    retryAfterSecs: DOCUMENT_RETRY_SECS,
  })),
  chain_unavailable: problem(503, 'service-unavailable', ({ detail }) => ({
    detail: `The anchor cannot be checked: ${detail}. Send the request again.`,
    retryAfterSecs: CHAIN_RETRY_SECS,
  })),
  busy: problem(503, 'service-unavailable', {
    detail: 'Too many anchors are being checked. Send the request again.',
    error: 'share_exhausted',
    retryAfterSecs: 1,
  }),
}

const checkRefusals: RulesFor<CheckRefused> = {
  unknown_challenge: problem(400, 'bad-request', { detail: 'There is no such challenge.' }),
  challenge_mismatch: problem(400, 'bad-request', ({ detail }) => ({
    detail: `The challenge does not match the request: ${detail}.`,
  })),
  challenge_expired: problem(400, 'bad-request', { detail: 'The challenge has expired.' }),
  challenge_consumed: problem(400, 'bad-request', { detail: 'The challenge is consumed already.' }),
  invalid_proof: problem(400, 'bad-request', {
    detail: 'The digest of the nonce has too few leading zero bits.',
  }),
  too_early: problem(425, 'too-early', ({ waitSeconds }) => ({
    detail: 'The proof is valid but came before the minimum duration. Send it again.',
    retryAfterSecs: waitSeconds,
  })),
}

export const completionRefusals: RulesFor<CompletionRefused> = {
  ...checkRefusals,
  anchor_known: anchorKnown,
  fingerprint_known: problem(409, 'conflict', {
    detail: 'The key is already registered in this tenant.',
  }),
}
