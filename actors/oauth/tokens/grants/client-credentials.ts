/** grant_type=client_credentials: an application gets a token for itself (RFC 6749 section 4.4). */
import type { GrantNeeds } from '../issue/user-tokens.js'
import type { MessageContext } from '../../../../runtime/kernel/actor.js'
import type { ClientRow } from '../../../../storage/oauth/applications.js'
import type { OutboxEvent } from '../../../../storage/platform/outbox.js'
import { PERSON_SCOPES } from '../../../domain/scopes.js'
import type { ApiResource } from '../../../domain/entities/api-resource.js'
import type { AccessGrant } from '../issue/access-token.js'
import {
  demandsDpop,
  foreignScopes,
  namedResources,
  RESOURCE_NEEDS_PROOF,
  claimsOfResources,
  resourceLifetimeSecs,
  type ResourceLookup,
  scopesOfResources,
  scopesOfService,
} from '../issue/api-resource.js'
import { knownAudience, readRequestedAudience, tokenAudience } from '../issue/audience.js'
import type { Client } from '../clients/clients.js'
import { type OAuthForm, readScope } from '../form.js'
import { issuedEvent } from '../issue/issued-event.js'
import type { GrantType } from '../../../domain/oauth/grant-types.js'
import type { Issued, OAuthRefused, ProofRefused } from '../protocol.js'
import type { RefreshProof } from './refresh-token.js'
import { refuse } from '../refusals.js'
import type { PreparedGrantsCache } from '../issue/prepared-grants-cache.js'
import { accessAlone, type SignedAccess } from '../issue/token-signer.js'

type ServiceNeeds = GrantNeeds & { readonly resources: ResourceLookup }

/**
 * Returns the token only after its `auth.token.issued` event is committed. Issues no refresh token,
 * since the client can authenticate again (RFC 6749 section 4.4.3).
 */
export async function grantClientCredentials(
  needs: ServiceNeeds & { readonly preparedGrants: PreparedGrantsCache },
  client: Client,
  form: OAuthForm,
  proof: RefreshProof,
  context: MessageContext,
): Promise<Issued | OAuthRefused | ProofRefused> {
  if (client.kind !== 'application' || !client.confidential)
    return refuse(
      'unauthorized_client',
      'client_credentials is for confidential applications',
      'grant_not_allowed',
    )
  const { row } = client
  if (!row.grantTypes.includes('client_credentials'))
    return refuse(
      'unauthorized_client',
      'the application does not have this grant',
      'grant_not_allowed',
    )
  const scope = form.get('scope')
  const isCacheable =
    proof.jkt === null && form.get('audience') === null && form.get('resource') === null
  const prepared = isCacheable ? needs.preparedGrants.get(row, scope) : undefined
  if (prepared !== undefined) {
    const { grant, claims, issued } = prepared
    const signed = await needs.signer.sign(grant, lifetimeSecs(needs), context, claims)
    const event = issued.fill(needs.random, signed, context.requestId)
    return write(needs, grant, signed, event, 'client_credentials')
  }
  const kind = { issuedFor: 'client_credentials' } as const
  const record = (grant: AccessGrant) => needs.preparedGrants.record(row, scope, grant)
  const asked = { form, proof }
  return grantService(needs, row, asked, isCacheable ? { ...kind, record } : kind, context)
}

/** Who gets a token for itself. */
export type ServiceParty = Pick<
  ClientRow,
  'id' | 'tenantId' | 'scopes' | 'defaultScopes' | 'audience' | 'selfRegistered' | 'metadataUrl'
>
type ServiceKind = {
  readonly issuedFor: GrantType
  /** Remembers the grant. Only for a request without audience. */
  readonly record?: (grant: AccessGrant) => void
}

/** A token without a user. */
export async function grantService(
  needs: ServiceNeeds,
  row: ServiceParty,
  { form, proof }: { readonly form: OAuthForm; readonly proof: RefreshProof },
  kind: ServiceKind,
  context: MessageContext,
): Promise<Issued | OAuthRefused | ProofRefused> {
  const { jkt } = proof
  const scope = form.get('scope')
  const read = readRequestedAudience(form)
  if (!('fault' in read) && read.requested.length > 0) {
    const named = await namedResources(needs.resources, row, read.requested)
    if ('fault' in named) return refuse('invalid_target', named.fault, 'resource_invalid')
    const { resources } = named
    if (resources.length > 0)
      return grantForResources(needs, row, { scope, resources, proof }, kind, context)
  }

  const scopes = requestedScopes(scope, row)
  if (scopes === null)
    return refuse(
      'invalid_scope',
      'a scope is malformed or not allowed for the application',
      'scope_not_allowed',
    )
  if ('fault' in read) return refuse('invalid_target', read.fault, 'resource_invalid')
  const { database, issuer } = needs
  const requested =
    read.requested.length === 0
      ? read.requested
      : await knownAudience(database, issuer, row, read.requested, context)
  if (requested === null)
    return refuse('invalid_target', 'the audience is not known in this tenant', 'resource_unknown')

  const audience = tokenAudience(requested, { own: row.audience, issuer, scopes })
  const grant = serviceGrant(row, { scopes, audience, resourceIds: null, jkt })
  kind.record?.(grant)
  return signAndWrite(needs, grant, lifetimeSecs(needs), kind, context)
}

type ServiceGrant = Pick<
  AccessGrant,
  'scopes' | 'audience' | 'resourceIds' | 'tokenStatusList' | 'jkt'
>

function serviceGrant(row: ServiceParty, own: ServiceGrant): AccessGrant {
  return {
    subject: row.id,
    subjectType: 'service',
    tenantId: row.tenantId,
    organizationId: null,
    clientId: row.id,
    scopes: own.scopes,
    audience: own.audience,
    resourceIds: own.resourceIds,
    tokenStatusList: own.tokenStatusList,
    sessionId: null,
    grantId: null,
    level: null,
    amr: [],
    authTimeSecs: null,
    jkt: own.jkt,
    authorizationDetails: null,
  }
}

type AskedOfResources = {
  readonly scope: string | null
  readonly resources: readonly ApiResource[]
  readonly proof: RefreshProof
}

/** A token for API resources: with their scopes, as far as the application may have them without a user. */
async function grantForResources(
  needs: ServiceNeeds,
  row: ServiceParty,
  { scope, resources, proof }: AskedOfResources,
  kind: ServiceKind,
  context: MessageContext,
): Promise<Issued | OAuthRefused | ProofRefused> {
  const allowed = scopesOfService(row, resources)
  const requested = scope === null ? serviceDefault(row, allowed) : readScope(scope)
  const isPersonal = (one: string) => PERSON_SCOPES.has(one) && row.scopes.includes(one)
  const foreign = foreignScopes(requested ?? [], resources)
  const isAllowed = requested?.every((one) => allowed.includes(one) || isPersonal(one)) === true
  if (requested === null || foreign.length > 0 || !isAllowed)
    return refuse(
      'invalid_scope',
      'a scope is malformed or not allowed at the resource',
      'scope_not_allowed',
    )
  if (requested.length === 0 && scopesOfResources(resources).length > 0)
    return refuse('invalid_scope', 'the application has no scope of the resource', 'scope_empty')
  if (proof.jkt === null && demandsDpop(resources)) return proof.refusal(RESOURCE_NEEDS_PROOF)
  const grant = serviceGrant(row, {
    scopes: requested,
    audience: resources.map(({ resource }) => resource),
    ...claimsOfResources(resources),
    jkt: proof.jkt,
  })
  const secs = resourceLifetimeSecs(resources, lifetimeSecs(needs))
  return signAndWrite(needs, grant, secs, kind, context)
}

/** The scopes of a request without `scope`: the default scopes, otherwise all but those that manage. */
function serviceDefault(
  { defaultScopes }: DefaultedScopes,
  allowed: readonly string[],
): readonly string[] {
  const chosen = allowed.filter((scope) => defaultScopes?.includes(scope))
  if (chosen.length > 0) return chosen
  return allowed.filter((scope) => !scope.endsWith(':manage'))
}

const lifetimeSecs = ({ jwt }: Pick<GrantNeeds, 'jwt'>) => jwt.access_token_lifetime_agent_secs

async function signAndWrite(
  needs: ServiceNeeds,
  grant: AccessGrant,
  secs: number,
  { issuedFor }: ServiceKind,
  context: MessageContext,
): Promise<Issued> {
  const signed = await needs.signer.sign(grant, secs, context)
  const event = issuedEvent(needs.random, grant, signed, issuedFor, context.requestId)
  return write(needs, grant, signed, event, issuedFor)
}

async function write(
  { commits, metrics }: GrantNeeds,
  { tenantId, scopes, subjectType }: AccessGrant,
  signed: SignedAccess,
  event: OutboxEvent,
  issuedFor: GrantType,
): Promise<Issued> {
  await commits.write(tenantId, { events: [event] })
  metrics.issued(issuedFor, subjectType)
  return accessAlone(signed, scopes)
}

/** The scopes of the token, or null if the request names one that the application does not have. */
function requestedScopes(scope: string | null, row: DefaultedScopes): readonly string[] | null {
  if (scope === null) return defaultScopesOf(row)
  const requested = readScope(scope)
  return requested?.every((one) => row.scopes.includes(one)) ? requested : null
}

type DefaultedScopes = Pick<ClientRow, 'scopes' | 'defaultScopes'>

/**
 * The scopes of a request without `scope` (RFC 6749 section 3.3, pre-defined default): the
 * application's `default_scopes`. Without these, all of its scopes except `*:manage`, `vault:*` and
 * the user scopes, so that a token gets such a power only on request.
 */
function defaultScopesOf({ scopes, defaultScopes }: DefaultedScopes): readonly string[] {
  // The application may have lost a scope since: its defaults do not restore it.
  if (defaultScopes !== null) return defaultScopes.filter((scope) => scopes.includes(scope))
  return scopes.filter(
    (scope) =>
      !scope.endsWith(':manage') && !scope.startsWith('vault:') && !PERSON_SCOPES.has(scope),
  )
}
