/**
 * Token exchange (RFC 8693): exchanges a token for one with fewer rights, or for one of the next agent.
 *
 * The new token never has more than the subject token: scopes and lifetime are bounded by it. Session,
 * refresh family and delegation stay the same, so revoking them revokes the new token too.
 */
import type { GrantNeeds } from '../issue/user-tokens.js'
import { delegationIntent } from '../../../domain/agents/delegation-intent.js'
import type { VaultExports } from '../../../vault/vault/protocol.js'
import type { MessageContext } from '../../../../runtime/kernel/actor.js'
import { activeDelegations, type DelegationRow } from '../../../../storage/agents/delegations.js'
import type { ApiResource } from '../../../domain/entities/api-resource.js'
import { resourceKey } from '../../../../storage/oauth/api-resources.js'
import { agentBelongs } from '../../../../storage/vault/vault-grants.js'
import { isUuid } from '../../../domain/ids.js'
import type { AccessGrant, ReadToken } from '../issue/access-token.js'
import {
  demandsDpop,
  mayUse,
  namedResources,
  RESOURCE_NEEDS_PROOF,
  claimsOfResources,
  resourceLifetimeSecs,
  type ResourceLookup,
  resourceScopesWithin,
  scopesOfService,
} from '../issue/api-resource.js'
import { knownAudience, readRequestedAudience, tokenAudience } from '../issue/audience.js'
import type { AccessTokenVerifier } from '../verify/access-token-verifier.js'
import type { Client } from '../clients/clients.js'
import {
  ACCESS_TOKEN_URN,
  type Exchanger,
  judgeExchange,
  readTokens,
  boundedScopes,
  type VerifiedExchange,
} from './token-exchange-rules.js'
import { type OAuthForm, readScope } from '../form.js'
import { issuedEvent } from '../issue/issued-event.js'
import { TOKEN_EXCHANGE } from '../../../domain/oauth/grant-types.js'
import type { Issued, OAuthRefused, ProofRefused, SecretIssued } from '../protocol.js'
import { refuse } from '../refusals.js'
import { accessAlone } from '../issue/token-signer.js'
import { exportCredential, readVaultTarget, VAULT_SECRET_URN } from './vault-export.js'
import { inTenant } from '../../../platform/in-tenant.js'

type ExchangeNeeds = GrantNeeds & {
  readonly verifier: AccessTokenVerifier
  readonly resources: ResourceLookup
  readonly vault: Pick<VaultExports, 'export'>
}

/** The key thumbprint of the request's DPoP proof, and how to refuse a request without one. */
export type ExchangeProof = {
  readonly jkt: string | null
  readonly refusal: (description: string) => Promise<ProofRefused>
  /** The client's network address, for the audit log. */
  readonly address: string
}

/** `client` is null if only an actor token identifies the requester. */
export async function grantExchange(
  needs: ExchangeNeeds,
  client: Client | null,
  form: OAuthForm,
  proof: ExchangeProof,
  context: MessageContext,
): Promise<Issued | SecretIssued | OAuthRefused | ProofRefused> {
  const requested = form.get('requested_token_type') ?? ACCESS_TOKEN_URN
  if (requested !== ACCESS_TOKEN_URN && requested !== VAULT_SECRET_URN)
    return refuse(
      'invalid_request',
      'this requested_token_type is not supported',
      'parameter_invalid',
    )
  const fromVault = readVaultTarget(form, requested)
  if (fromVault !== null && fromVault.tag === 'oauth_refused') return fromVault
  const verified = await verifyTokens(needs, client, form, proof, context)
  if ('tag' in verified) return verified
  if (fromVault !== null)
    return exportCredential(needs, verified, fromVault, proof.address, context)
  return issue(needs, verified, form, proof, context)
}

/** Verifies both tokens and the right to exchange them. */
async function verifyTokens(
  { verifier, database, issuer }: ExchangeNeeds,
  client: Client | null,
  form: OAuthForm,
  proof: ExchangeProof,
  context: MessageContext,
): Promise<VerifiedExchange | OAuthRefused | ProofRefused> {
  const tokens = readTokens(form)
  if ('tag' in tokens) return tokens
  const actor =
    tokens.actor === null ? null : await readActive(verifier, tokens.actor, 'actor', context)
  if (actor !== null && 'tag' in actor) return actor
  if (actor !== null) {
    const { subjectType, actors, audience, jkt } = actor.principal
    if (subjectType !== 'agent' || actors.length > 0)
      return refuse(
        'invalid_grant',
        'actor_token must be an agent’s own direct token',
        'token_invalid',
      )
    // It authenticates the requester. A resource server that received one could replay it here.
    if (!audience.includes(issuer))
      return refuse(
        'invalid_grant',
        'actor_token must have this service as an audience',
        'token_invalid',
      )
    if (jkt !== null && jkt !== proof.jkt)
      return proof.refusal('actor_token is bound to a key: send a DPoP proof')
  }
  const exchanger = exchangerOf(client, actor)
  if ('tag' in exchanger) return exchanger

  const subject = await readActive(verifier, tokens.subject, 'subject', context)
  if ('tag' in subject) return subject
  const { tenantId, jkt } = subject.principal
  const tenants = [client?.kind === 'application' ? client.row.tenantId : tenantId]
  if ([...tenants, actor?.principal.tenantId ?? tenantId].some((one) => one !== tenantId))
    return refuse(
      'invalid_grant',
      'the tokens and the client belong to different tenants',
      'tenant_mismatch',
    )

  const mayAct = form.get('may_act')
  const actorId = actor?.principal.subject ?? null
  const verdict = judgeExchange({ subject, exchanger, actor: actorId, mayAct })
  if (verdict.tag === 'oauth_refused') return verdict
  if (jkt !== null && (verdict.tag === 'handed_on' ? proof.jkt === null : proof.jkt !== jkt))
    return proof.refusal('subject_token is bound to a key: send a DPoP proof')
  if (mayAct !== null) {
    const known =
      isUuid(mayAct) && (await database.system((tx) => agentBelongs(tx, tenantId, mayAct), context))
    if (!known)
      return refuse(
        'invalid_request',
        'may_act must be an agent of the tenant',
        'parameter_invalid',
      )
  }
  return { subject, exchanger, actor, verdict, mayAct }
}

async function readActive(
  verifier: AccessTokenVerifier,
  token: string,
  which: 'subject' | 'actor',
  context: MessageContext,
): Promise<ReadToken | OAuthRefused> {
  const inspected = await verifier.inspect(token, context, 'fresh')
  if (inspected.state === 'active') return inspected.token
  const why = inspected.state === 'invalid' ? 'is not valid' : `is ${inspected.state}`
  return refuse('invalid_grant', `${which}_token ${why}`, 'token_invalid')
}

/** Who requests the exchange: the authenticated client, or the agent of the actor token. */
function exchangerOf(client: Client | null, actor: ReadToken | null): Exchanger | OAuthRefused {
  const agentId = actor?.principal.subject ?? null
  if (client?.kind === 'application') {
    const { id, audience, scopes, grantTypes, selfRegistered } = client.row
    return grantTypes.includes(TOKEN_EXCHANGE)
      ? { kind: 'application', id, audience, scopes, selfRegistered }
      : refuse(
          'unauthorized_client',
          'the application does not have this grant',
          'grant_not_allowed',
        )
  }
  if (client !== null && agentId !== null && agentId !== client.row.id)
    return refuse('invalid_grant', 'actor_token belongs to another agent', 'token_of_other_client')
  if (client?.confidential === true) return { kind: 'agent', id: client.row.id }
  return agentId === null
    ? refuse(
        'unauthorized_client',
        'an agent must send a client assertion or an actor_token',
        'grant_not_allowed',
      )
    : { kind: 'agent', id: agentId }
}

async function issue(
  needs: ExchangeNeeds,
  { subject, exchanger, verdict, mayAct }: VerifiedExchange,
  form: OAuthForm,
  proof: ExchangeProof,
  context: MessageContext,
): Promise<Issued | OAuthRefused | ProofRefused> {
  const { principal } = subject
  const { jkt } = proof
  const scope = form.get('scope')
  const requested = scope === null ? null : readScope(scope)
  if (scope !== null && requested === null)
    return refuse('invalid_scope', 'the scope is malformed', 'scope_malformed')
  const target = await targetOf(needs, subject, exchanger, form, context)
  if ('tag' in target) return target
  const { resources } = target
  const bounds = [principal.scopes]
  if (resources.length > 0)
    bounds.push(resourceScopesWithin(principal.scopes, principal.scopes, resources))
  if (exchanger.kind === 'application' && !isKept(principal, resources))
    bounds.push([...exchanger.scopes, ...scopesOfService(exchanger, resources)])
  const delegation =
    verdict.tag === 'delegated'
      ? await delegationOf(needs, principal, verdict.agentId, requested, context)
      : null
  if (verdict.tag === 'delegated' && delegation === null)
    return refuse(
      'consent_required',
      'the user has no delegation for this agent',
      'delegation_missing',
    )
  if (delegation !== null) bounds.push(delegation.scopes)
  const scopes = boundedScopes(requested, bounds)
  if (scopes === null)
    return refuse(
      'invalid_scope',
      'the requested scope exceeds the subject token or is empty',
      'scope_not_allowed',
    )

  if (jkt === null && demandsDpop(resources)) return proof.refusal(RESOURCE_NEEDS_PROOF)
  const { signer, commits, metrics, random } = needs
  const grant = grantOf(subject, {
    clientId: exchanger.id,
    scopes,
    audience: target.audience(scopes),
    ...claimsOfResources(resources),
    jkt,
    mayAct,
    ...actingOf(verdict, delegation, subject),
  })
  const secs = lifetimeSecs(needs, grant, subject, delegation, resources)
  if (secs < 1) return refuse('invalid_grant', 'subject_token is expired', 'token_invalid')
  const signed = await signer.sign(grant, secs, context)
  const event = issuedEvent(random, grant, signed, TOKEN_EXCHANGE, context.requestId)
  await commits.write(grant.tenantId, { events: [event] })
  metrics.issued(TOKEN_EXCHANGE, grant.subjectType)
  return { ...accessAlone(signed, scopes), issuedTokenType: ACCESS_TOKEN_URN }
}

/** The newest delegation that covers the requested scopes, or else the newest one. */
async function delegationOf(
  { database, clock }: ExchangeNeeds,
  { tenantId, subject }: ReadToken['principal'],
  agentId: string,
  requested: readonly string[] | null,
  context: MessageContext,
): Promise<DelegationRow | null> {
  const rows = await inTenant(database, tenantId, context, (tx) =>
    activeDelegations(tx, tenantId, subject, clock.now()),
  )
  const ofAgent = rows.filter((row) => row.agentId === agentId)
  const covering = ofAgent.find(
    ({ scopes }) => requested?.every((one) => scopes.includes(one)) ?? true,
  )
  return covering ?? ofAgent[0] ?? null
}

/** The target of the new token. The audience may depend on its scopes. */
type Target = {
  readonly audience: (scopes: readonly string[]) => readonly string[]
  /** Empty for other audiences. */
  readonly resources: readonly ApiResource[]
}

/** True if the token stays at the API resources of the subject token, whose user consented to the scopes. */
function isKept(
  { resourceIds }: ReadToken['principal'],
  resources: readonly ApiResource[],
): boolean {
  return resources.length > 0 && resourceIds !== undefined
}

async function targetOf(
  needs: ExchangeNeeds,
  { principal }: ReadToken,
  exchanger: Exchanger,
  form: OAuthForm,
  context: MessageContext,
): Promise<Target | OAuthRefused> {
  const { database, issuer } = needs
  const read = readRequestedAudience(form)
  if ('fault' in read) return refuse('invalid_target', read.fault, 'resource_invalid')
  const { tenantId, resourceIds } = principal
  // The user consented to a token for these resources only.
  if (resourceIds !== undefined)
    return keptResources(needs, tenantId, resourceIds, read.requested, exchanger)
  if (read.requested.length === 0) return { audience: () => principal.audience, resources: [] }
  const named = await namedResources(
    needs.resources,
    { id: exchanger.id, tenantId },
    read.requested,
  )
  if ('fault' in named) return refuse('invalid_target', named.fault, 'resource_invalid')
  const { resources } = named
  if (resources.length > 0) return { audience: () => resources.map(uriOf), resources }
  const requester = { tenantId, audience: issuer }
  const requested = await knownAudience(database, issuer, requester, read.requested, context)
  if (requested === null)
    return refuse('invalid_target', 'the audience is not known in this tenant', 'resource_unknown')
  return {
    audience: (scopes) => tokenAudience(requested, { own: requested[0]!, issuer, scopes }),
    resources,
  }
}

const uriOf = ({ resource }: ApiResource) => resource

async function keptResources(
  needs: ExchangeNeeds,
  tenantId: string,
  ids: readonly string[],
  requested: readonly string[],
  exchanger: Exchanger,
): Promise<Target | OAuthRefused> {
  const found = await needs.resources.byId(tenantId, ids)
  const keys = requested.map(resourceKey)
  const kept = found.filter(
    (one) =>
      mayUse(one, exchanger.id) && (keys.length === 0 || keys.includes(resourceKey(one.resource))),
  )
  return kept.length === 0 || (keys.length > 0 && kept.length !== new Set(keys).size)
    ? refuse('invalid_target', 'subject_token is for another API resource', 'resource_not_granted')
    : { audience: () => kept.map(uriOf), resources: kept }
}

/** The actors of the new token, the delegation behind them, and the user's authentication context. */
function actingOf(
  verdict: VerifiedExchange['verdict'],
  delegation: DelegationRow | null,
  { principal, amr }: ReadToken,
): Pick<AccessGrant, 'actors' | 'delegationId' | 'delegation' | 'level' | 'amr' | 'authTimeSecs'> {
  if (delegation !== null) {
    return {
      actors: [{ sub: delegation.agentId, subjectType: 'agent' }],
      delegationId: delegation.id,
      delegation: delegationIntent(delegation),
      // How the user authenticated when they approved the delegation.
      level: delegation.level,
      amr: delegation.amr,
      authTimeSecs: Math.floor(delegation.authTime.getTime() / 1000),
    }
  }
  const level = /^aal([1-3])$/.exec(principal.acr ?? '')?.[1]
  return {
    actors: verdict.tag === 'handed_on' ? verdict.actors : principal.actors,
    delegationId: principal.delegationId,
    delegation: principal.delegation,
    level: level === undefined ? null : Number(level),
    amr,
    authTimeSecs: principal.authTimeSecs,
  }
}

function grantOf(
  { principal }: ReadToken,
  rest: Pick<
    AccessGrant,
    | 'clientId'
    | 'scopes'
    | 'audience'
    | 'resourceIds'
    | 'jkt'
    | 'mayAct'
    | 'actors'
    | 'delegationId'
    | 'delegation'
    | 'level'
    | 'amr'
    | 'authTimeSecs'
  >,
): AccessGrant {
  return {
    subject: principal.subject,
    subjectType: principal.subjectType,
    tenantId: principal.tenantId,
    organizationId: principal.organizationId,
    organizationBound: principal.organizationBound,
    sessionId: principal.sessionId,
    grantId: principal.grantId ?? null,
    authorizationDetails: null,
    ...rest,
  }
}

/** At most the remaining lifetime of the subject token and of the delegation, in seconds. */
function lifetimeSecs(
  { clock, jwt }: ExchangeNeeds,
  { subjectType, actors = [] }: AccessGrant,
  { principal }: ReadToken,
  delegation: DelegationRow | null,
  resources: readonly ApiResource[],
): number {
  const nowSecs = clock.nowSecs()
  const deployment =
    subjectType === 'human' && actors.length === 0
      ? jwt.access_token_lifetime_human_secs
      : jwt.access_token_lifetime_agent_secs
  const usual = resourceLifetimeSecs(resources, deployment)
  const ends = [principal.expiresAtSecs]
  if (delegation !== null) ends.push(Math.floor(delegation.expiresAt.getTime() / 1000))
  return Math.min(usual, ...ends.map((end) => end - nowSecs))
}
