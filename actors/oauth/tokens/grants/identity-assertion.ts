/**
 * The jwt-bearer grant with an identity assertion (ID-JAG, draft-ietf-oauth-identity-assertion-authz-grant): a trusted issuer
 * says for which person the client may have a token (docs/guides/oauth/identity-assertions.md). Issues no refresh token: the
 * client asks the issuer again.
 */
import type { MessageContext } from '../../../../runtime/kernel/actor.js'
import { resourceKey } from '../../../../storage/oauth/api-resources.js'
import type { ApiResource } from '../../../domain/entities/api-resource.js'
import { JWT_BEARER } from '../../../domain/oauth/grant-types.js'
import type { PersonAdmitted } from '../../trusted-issuers/protocol.js'
import { type Client, publicClientId } from '../clients/clients.js'
import { type OAuthForm, readScope } from '../form.js'
import type { AccessGrant } from '../issue/access-token.js'
import {
  claimsOfResources,
  demandsDpop,
  namedResources,
  RESOURCE_NEEDS_PROOF,
  resourceLifetimeSecs,
} from '../issue/api-resource.js'
import { readRequestedAudience } from '../issue/audience.js'
import { effectiveScopes } from '../issue/effective-scopes.js'
import { issuedEvent } from '../issue/issued-event.js'
import { accessAlone } from '../issue/token-signer.js'
import type { Issued, OAuthRefused, ProofRefused } from '../protocol.js'
import { refuse } from '../refusals.js'
import type { TokenTools } from '../tools.js'
import type { ExchangeProof } from './token-exchange.js'
import { assertionRefused } from './workload.js'

const LIFETIME_SECS_MAX = 3_600

export async function grantIdentityAssertion(
  tools: TokenTools,
  client: Client,
  form: OAuthForm,
  proof: ExchangeProof,
  context: MessageContext,
): Promise<Issued | OAuthRefused | ProofRefused> {
  const assertion = form.get('assertion')
  if (assertion === null)
    return refuse('invalid_request', 'assertion is missing', 'parameter_missing')
  if (!client.confidential)
    return refuse(
      'invalid_client',
      'a client must authenticate to send an identity assertion',
      'client_authentication_missing',
    )
  if (client.kind !== 'application' || !client.row.grantTypes.includes(JWT_BEARER))
    return refuse(
      'unauthorized_client',
      'the application does not have this grant',
      'grant_not_allowed',
    )
  const { tenantId } = client.row
  const clientId = publicClientId(client)
  const { jkt, address } = proof
  const admitted = await tools.trustedIssuers?.admitIdentityAssertion(
    { tenantId, assertion, clientId, jkt, address },
    context,
  )
  if (admitted?.tag !== 'person_admitted') {
    tools.metrics.identityAssertion('refused')
    const refused = admitted?.step ?? 'issuer'
    return assertionRefused('invalid_grant', { refused, tenantId }, client.row.id, 'identity')
  }
  tools.metrics.identityAssertion(admitted.repeated ? 'repeated' : 'accepted')
  const resources = await resourcesOf(tools, client, form, admitted)
  if ('tag' in resources) return resources
  if (jkt === null && demandsDpop(resources)) return proof.refusal(RESOURCE_NEEDS_PROOF)
  const scopes = scopesOf(form, client, admitted, resources)
  if ('tag' in scopes) return scopes
  const grant = grantOf(admitted, { tenantId, clientId, scopes, jkt }, resources)
  return issue(tools, client, grant, { resources, admitted }, context)
}

/** The API resources of the request that the assertion grants, or else all that it grants (RFC 8707). */
async function resourcesOf(
  { resources }: TokenTools,
  client: Extract<Client, { kind: 'application' }>,
  form: OAuthForm,
  admitted: PersonAdmitted,
): Promise<readonly ApiResource[] | OAuthRefused> {
  const read = readRequestedAudience(form)
  if ('fault' in read) return refuse('invalid_target', read.fault, 'resource_invalid')
  const { requested } = read
  const granted = admitted.resources.map(resourceKey)
  if (granted.length > 0 && !requested.every((uri) => granted.includes(resourceKey(uri))))
    return refuse(
      'invalid_target',
      'the assertion does not grant this resource',
      'resource_not_granted',
    )
  const chosen = requested.length > 0 ? requested : admitted.resources
  const named = await namedResources(resources, client.row, chosen)
  if ('fault' in named) return refuse('invalid_target', named.fault, 'resource_invalid')
  return named.resources.length > 0
    ? named.resources
    : refuse(
        'invalid_target',
        'the assertion or the request must name an API resource of the tenant',
        'resource_unknown',
      )
}

/** The requested scopes, or else all that the assertion grants and the client may have at the resources. */
function scopesOf(
  form: OAuthForm,
  client: Client,
  admitted: PersonAdmitted,
  resources: readonly ApiResource[],
): readonly string[] | OAuthRefused {
  const effective = effectiveScopes(admitted.scopes, client, resources)
  if ('tag' in effective) return effective
  // There is no refresh token for it.
  const allowed = effective.filter((scope) => scope !== 'offline_access')
  const scope = form.get('scope')
  const requested = scope === null ? allowed : readScope(scope)
  return requested !== null &&
    requested.length > 0 &&
    requested.every((one) => allowed.includes(one))
    ? requested
    : refuse(
        'invalid_scope',
        'a scope is malformed or not granted by the assertion',
        'scope_not_allowed',
      )
}

function grantOf(
  admitted: PersonAdmitted,
  own: Pick<AccessGrant, 'tenantId' | 'clientId' | 'scopes' | 'jkt'>,
  resources: readonly ApiResource[],
): AccessGrant {
  const { subject, level, amr, authTimeSecs, actors, issuer } = admitted
  return {
    ...own,
    subject,
    subjectType: 'human',
    organizationId: null,
    audience: resources.map(({ resource }) => resource),
    ...claimsOfResources(resources),
    sessionId: null,
    grantId: null,
    level,
    amr,
    authTimeSecs,
    authorizationDetails: null,
    actors,
    idp: issuer,
  }
}

async function issue(
  { signer, commits, metrics, random, jwt, trustedIssuers }: TokenTools,
  { row }: Client,
  grant: AccessGrant,
  of: { readonly resources: readonly ApiResource[]; readonly admitted: PersonAdmitted },
  context: MessageContext,
): Promise<Issued | OAuthRefused> {
  const { resources, admitted } = of
  const usual = resourceLifetimeSecs(resources, jwt.access_token_lifetime_human_secs)
  const signed = await signer.sign(grant, Math.min(usual, LIFETIME_SECS_MAX), context)
  const { tenantId, subject, clientId } = grant
  const { tokenId, issuedAt, expiresInSecs } = signed
  const expiresAt = new Date(issuedAt.getTime() + expiresInSecs * 1000)
  const recorded = await trustedIssuers!.recordAssertedToken(
    { asserted: admitted.assertedBy, subject, clientId, tokenId, expiresAt },
    context,
  )
  if (recorded.tag === 'signed_out')
    return assertionRefused('invalid_grant', { refused: 'iat', tenantId }, row.id, 'identity')
  const event = issuedEvent(random, grant, signed, JWT_BEARER, context.requestId)
  await commits.write(grant.tenantId, { events: [event] })
  metrics.issued(JWT_BEARER, grant.subjectType)
  return accessAlone(signed, grant.scopes)
}
