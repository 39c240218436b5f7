/**
 * Tokens for workloads: a token of a trusted issuer stands for an application of the tenant
 * (docs/guides/oauth/workload-identity.md). It comes as client assertion, as `assertion` of the jwt-bearer grant (RFC 7523),
 * or as `subject_token` of a token exchange (RFC 8693).
 */
import type { MessageContext } from '../../../../runtime/kernel/actor.js'
import { resourceKey } from '../../../../storage/oauth/api-resources.js'
import type { ApiResource } from '../../../domain/entities/api-resource.js'
import { isUuid } from '../../../domain/ids.js'
import { isIdentityAssertion } from '../../../platform/jose/issuer-jws.js'
import { STEPS } from '../../trusted-issuers/protocol.js'
import { tenantOfRequest } from '../clients/metadata/tenant-of-request.js'
import type { AdmittedClient } from '../clients/clients.js'
import type { OAuthForm } from '../form.js'
import { readRequestedAudience } from '../issue/audience.js'
import { scopesBeside } from '../issue/api-resource.js'
import {
  type GrantType,
  ID_JAG,
  JWT_BEARER,
  TOKEN_EXCHANGE,
} from '../../../domain/oauth/grant-types.js'
import type { Issued, OAuthRefused, ProofRefused } from '../protocol.js'
import { refuse, refusedClient } from '../refusals.js'
import type { TokenTools } from '../tools.js'
import { grantService } from './client-credentials.js'
import type { RefreshProof } from './refresh-token.js'

/** Types of subject tokens of workloads (RFC 8693 section 3). */
const JWT_TYPES = new Set([
  'urn:ietf:params:oauth:token-type:jwt',
  'urn:ietf:params:oauth:token-type:id_token',
])

type Presented = {
  readonly assertion: string
  readonly clientId: string | null
  readonly presentedAs: 'spiffe' | null
}

/** The assertion of a workload in a token request. Null for other requests. */
export function workloadAssertion(grantType: GrantType, form: OAuthForm): string | null {
  if (grantType === JWT_BEARER) {
    const assertion = form.get('assertion')
    return assertion === null || isIdentityAssertion(assertion) ? null : assertion
  }
  // A user of the client is the subject of an identity assertion.
  if (asksIdJag(form)) return null
  const isJwt = JWT_TYPES.has(form.get('subject_token_type') ?? '')
  return grantType === TOKEN_EXCHANGE && isJwt ? form.get('subject_token') : null
}

/** True for the request of an identity assertion. */
export const asksIdJag = (form: OAuthForm): boolean => form.get('requested_token_type') === ID_JAG

export type NotAdmittedClient = { readonly refused: string; readonly tenantId: string | null }

/** The application for which an assertion stands, with the scopes of the rule alone. */
export async function admittedClient(
  tools: TokenTools,
  presented: Presented,
  { form, host }: { readonly form: OAuthForm; readonly host: string },
  context: MessageContext,
): Promise<AdmittedClient | NotAdmittedClient> {
  const { clients, trustedIssuers } = tools
  const { assertion, clientId, presentedAs } = presented
  const tenantId = await tenantOf(tools, clientId, form, host, context)
  if (tenantId === null || trustedIssuers === undefined) return { refused: 'tenant', tenantId }
  const admitted = await trustedIssuers.admitAssertion(
    { tenantId, assertion, presentedAs },
    context,
  )
  if (admitted.tag === 'not_admitted') return { refused: admitted.step, tenantId }
  const client = await clients.inForce(admitted.clientId)
  const isTarget = clientId === null || clientId === admitted.clientId
  if (!isTarget || client?.kind !== 'application' || client.row.tenantId !== tenantId)
    return { refused: 'target', tenantId }
  const row = { ...client.row, scopes: [...admitted.scopes] }
  return { kind: 'application', confidential: true, row, admitted }
}

/** The tenant that the request names, otherwise the tenant of the named client, of the host or of the resource. */
async function tenantOf(
  tools: TokenTools,
  clientId: string | null,
  form: OAuthForm,
  host: string,
  context: MessageContext,
): Promise<string | null> {
  const { clients, documented } = tools
  const named = form.get('tenant_id')
  if (named !== null) return isUuid(named) ? named : null
  const client = clientId === null ? null : await clients.inForce(clientId)
  if (client !== null)
    return client.kind === 'agent' ? client.row.homeTenantId : client.row.tenantId
  if (clientId !== null || documented === undefined) return null
  const resources = form.all('resource')
  const found = await tenantOfRequest({ ...tools, ...documented }, { host, resources }, context)
  return found.tag === 'tenant' ? found.tenantId : null
}

/** A service token of the application. Issues no refresh token. @param tools from `withinRule` */
export function grantWorkload(
  tools: TokenTools,
  { row }: AdmittedClient,
  form: OAuthForm,
  { proof, grantType }: { readonly proof: RefreshProof; readonly grantType: GrantType },
  context: MessageContext,
): Promise<Issued | OAuthRefused | ProofRefused> {
  const party = { ...row, defaultScopes: row.scopes }
  return grantService(tools, party, { form, proof }, { issuedFor: grantType }, context)
}

export const BEYOND_RULE = refuse(
  'unauthorized_client',
  'the rule of the workload does not allow this token',
  'grant_not_allowed',
)
/** Thrown by the signer of `withinRule`. The grant of the request has had no effect yet. */
export class BeyondRule extends Error {}

/** True for the audiences that a workload may ask for: this service, its application, and the resources of its rule. */
const isAudience = (issuer: string, { row, admitted }: AdmittedClient) => {
  const named = isNamed(admitted)
  return (uri: string) => uri === issuer || uri === row.audience || named(uri)
}

const isNamed = ({ resources }: AdmittedClient['admitted']) => {
  const keys = new Set(resources.map(resourceKey))
  keys.delete(null)
  return (uri: string) => keys.has(resourceKey(uri))
}

/** The refusal of a request for a token at a resource that the rule does not name. */
export function foreignTarget(
  { issuer }: TokenTools,
  client: AdmittedClient,
  form: OAuthForm,
): OAuthRefused | undefined {
  const read = readRequestedAudience(form)
  if ('fault' in read) return refuse('invalid_target', read.fault, 'resource_invalid')
  return read.requested.every(isAudience(issuer, client))
    ? undefined
    : refuse('invalid_target', 'the rule does not allow this resource', 'resource_not_granted')
}

/**
 * The tools of a workload. They know the resources and scopes of its rule alone, and their signer, which every token
 * passes, refuses what is beyond the rule and ends tokens with the assertion.
 */
export function withinRule(tools: TokenTools, client: AdmittedClient): TokenTools {
  const { clock, issuer, resources, signer } = tools
  const { row, admitted } = client
  const named = isNamed(admitted)
  const allowed = isAudience(issuer, client)
  const scopes = new Set([...row.scopes, ...scopesBeside(row)])
  const limit = (rows: readonly ApiResource[]) =>
    rows
      .filter(({ resource }) => named(resource))
      .map((one) => ({ ...one, scopes: one.scopes.filter(({ name }) => scopes.has(name)) }))
  return {
    ...tools,
    resources: {
      byUri: async (tenantId, uris) => limit(await resources.byUri(tenantId, uris)),
      byId: async (tenantId, ids) => limit(await resources.byId(tenantId, ids)),
    },
    signer: {
      ...signer,
      sign(grant, secs, ...rest) {
        const isWithin =
          grant.authorizationDetails === null &&
          grant.audience.every(allowed) &&
          grant.scopes.every((scope) => scopes.has(scope))
        if (!isWithin) throw new BeyondRule()
        const { expiresAtSecs, maxLifetimeSecs } = admitted
        const most = Math.min(secs, expiresAtSecs - clock.nowSecs(), maxLifetimeSecs ?? Infinity)
        return signer.sign(grant, Math.max(1, Math.floor(most)), ...rest)
      },
    },
  }
}

/** One text for every cause: it tells neither which issuers are trusted nor which rules they have. */
const REFUSALS = {
  invalid_grant: ['the token of the issuer is not accepted', 'assertion_refused'],
  invalid_client: [
    'client authentication failed, client_assertion: iss and sub must both be the client_id, or a rule of the tenant must ' +
      'accept the token of the issuer',
    'client_authentication_failed',
  ],
} as const

/** Steps up to the signature. */
const UNPROVEN = new Set<string>(['tenant', ...STEPS.slice(0, STEPS.indexOf('exp'))])

/** The refusal of an assertion as grant, or as client authentication. */
export function assertionRefused(
  error: keyof typeof REFUSALS,
  { refused, tenantId }: NotAdmittedClient,
  clientId: string | null,
  speaker: 'workload' | 'identity' = 'workload',
): OAuthRefused {
  const [description, reason] = REFUSALS[error]
  return {
    ...refuse(error, description, reason),
    requester: {
      ...refusedClient({ clientId }, { reason: `${speaker}_${refused}`, tenantId }),
      isAnyones: UNPROVEN.has(refused),
    },
  }
}
