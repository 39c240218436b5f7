/** The common part of device and CIBA requests: client authentication, tenant, scopes and audience. */
import type { ActorRef, MessageContext } from '../../../../runtime/kernel/actor.js'
import type { AuthorizingClientRow } from '../../../../storage/oauth/applications.js'
import type { ApiResource } from '../../../domain/entities/api-resource.js'
import type { Database } from '../../../../storage/platform/sql.js'
import { activeClient } from '../clients/active-client.js'
import type { TenantsProtocol } from '../../../identity/users/tenants/protocol.js'
import { ANOTHER_TENANT, CONFLICTING_TENANT, namedTenant } from '../clients/named-tenant.js'
import {
  defaultResourceScopes,
  foreignScopes,
  namedResources,
  resourceLookup,
  resourceScopesWithin,
  scopesBeside,
} from '../issue/api-resource.js'
import { knownAudience, readRequestedAudience } from '../issue/audience.js'
import { metered } from '../clients/client-quotas.js'
import { type OAuthForm, readScope } from '../form.js'
import type {
  ClientIdentified,
  ClientQuota,
  OAuthRefused,
  ProofRefused,
  TokenRequest,
  TokensProtocol,
} from '../protocol.js'
import { formOf, refuse } from '../refusals.js'

export type ClientRequestNeeds = {
  readonly database: Database
  readonly tokens: ActorRef<TokensProtocol>
  readonly tenants: ActorRef<TenantsProtocol>
  readonly issuer: string
}

export type ClientRequest = {
  readonly tag: 'client_request'
  readonly form: OAuthForm
  readonly client: AuthorizingClientRow
  /** The requested scopes, all allowed for the application. */
  readonly scopes: readonly string[]
  readonly audience: readonly string[]
  /** The API resources among the audience. Null for other audiences. */
  readonly resourceIds: readonly string[] | null
}

/** Authenticates the application, checks its request, and calls `start` with it. */
export async function withClientRequest<Outcome extends object>(
  needs: ClientRequestNeeds,
  request: TokenRequest,
  { grantType, quota }: { readonly grantType: string; readonly quota: ClientQuota },
  start: (clientRequest: ClientRequest) => Promise<Outcome>,
  context: MessageContext,
): Promise<Outcome | OAuthRefused | ProofRefused> {
  const form = formOf(request.form)
  if ('tag' in form) return form
  const identified = await needs.tokens.identifyClient({ ...request, quota }, context)
  if (identified.tag !== 'identified') return identified
  const read = await readClientRequest(needs, { ...request, form, grantType }, identified, context)
  const outcome = read.tag === 'client_request' ? await start(read) : read
  return metered(outcome, identified.windows)
}

type Asked = Omit<TokenRequest, 'form'> & {
  readonly form: OAuthForm
  readonly grantType: string
}

async function readClientRequest(
  { database, tenants, issuer }: ClientRequestNeeds,
  { form, grantType, httpUrl }: Asked,
  identified: ClientIdentified,
  context: MessageContext,
): Promise<ClientRequest | OAuthRefused> {
  const client =
    identified.kind === 'agent' ? null : await activeClient(database, identified.clientId, context)
  if (client === null || !client.grantTypes.includes(grantType))
    return refuse(
      'unauthorized_client',
      'the application does not have this grant',
      'grant_not_allowed',
    )

  const { host } = new URL(httpUrl)
  const named = await namedTenant(tenants, form, client, host, context)
  if (named === 'conflicting')
    return refuse('invalid_request', CONFLICTING_TENANT, 'tenant_unknown')
  if (named === 'another') return refuse('invalid_request', ANOTHER_TENANT, 'tenant_unknown')

  // RFC 9396 section 5: no page here shows authorization_details, so they cannot be granted.
  if (form.get('authorization_details') !== null)
    return refuse(
      'invalid_authorization_details',
      'authorization_details is supported at the authorization endpoint only',
      'details_unsupported',
    )
  const scope = form.get('scope')
  const read = readRequestedAudience(form)
  const target = 'fault' in read ? null : await resourcesOf(database, client, read.requested)
  if (target !== null && 'fault' in target)
    return refuse('invalid_target', target.fault, 'resource_invalid')
  if (target !== null && target.resources.length > 0)
    return requestOfResources(form, client, scope, target.resources)
  // Without the parameter: all scopes of the application.
  const scopes = scope === null ? client.scopes : readScope(scope)
  if (scopes === null || !scopes.every((one) => client.scopes.includes(one)))
    return refuse(
      'invalid_scope',
      'a scope is malformed or not allowed for the application',
      'scope_not_allowed',
    )
  if ('fault' in read) return refuse('invalid_target', read.fault, 'resource_invalid')
  const audience = await knownAudience(database, issuer, client, read.requested, context)
  if (audience === null)
    return refuse('invalid_target', 'the audience is not known in this tenant', 'resource_unknown')
  return { tag: 'client_request', form, client, scopes, audience, resourceIds: null }
}

const resourcesOf = (
  database: Database,
  client: AuthorizingClientRow,
  requested: readonly string[],
) => namedResources(resourceLookup(database, null), client, requested)

/** A request for API resources has their scopes, and user scopes of the application. */
function requestOfResources(
  form: OAuthForm,
  client: AuthorizingClientRow,
  scope: string | null,
  resources: readonly ApiResource[],
): ClientRequest | OAuthRefused {
  const requested =
    scope === null ? defaultResourceScopes(client.scopes, resources) : readScope(scope)
  if (requested === null || foreignScopes(requested, resources).length > 0)
    return refuse(
      'invalid_scope',
      'a scope is malformed or does not belong to the resource',
      'scope_not_allowed',
    )
  return {
    tag: 'client_request',
    form,
    client,
    scopes: resourceScopesWithin(requested, scopesBeside(client), resources),
    audience: resources.map(({ resource }) => resource),
    resourceIds: resources.map(({ id }) => id),
  }
}
