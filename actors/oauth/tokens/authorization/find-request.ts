/** Finds the client of a request, and requests that are stored. */
import type { ActorRef, MessageContext } from '../../../../runtime/kernel/actor.js'
import type { AuthorizingClientRow } from '../../../../storage/oauth/applications.js'
import { findAuthorizationRequest } from '../../../../storage/oauth/authorization-requests.js'
import type { AssuranceLevel } from '../../../domain/assurance.js'
import { CONSOLE_CLIENT_ID } from '../../../domain/people/console-client.js'
import type { TenancySettings } from '../../../domain/tenants/resolution.js'
import { sha256 } from '../../../domain/secret-hashes.js'
import type { TenantsProtocol } from '../../../identity/users/tenants/protocol.js'
import type { MetadataClients } from '../clients/metadata/metadata-clients.js'
import {
  NO_SUCH_RESOURCE,
  NO_TENANT,
  type TenantOfRequest,
  tenantOfRequest,
} from '../clients/metadata/tenant-of-request.js'
import { activeClient } from '../clients/active-client.js'
import { provideConsoleClient } from '../clients/console-client.js'
import { ANOTHER_TENANT, CONFLICTING_TENANT, namedTenant } from '../clients/named-tenant.js'
import type { OAuthForm } from '../form.js'
import type { TokensProtocol } from '../protocol.js'
import type { OidcSettings } from '../settings.js'
import type { AuthorizationRequest } from './parameters.js'
import type { InteractionNeeds } from './pending-request.js'
import { type Refused, type RefusedError, REQUEST_URI_PREFIX } from './protocol.js'

export type AuthorizationNeeds = InteractionNeeds & {
  readonly tenancy: TenancySettings
  /** Clients that are identified by their metadata documents. */
  readonly metadataClients: MetadataClients
  /** `console.enabled`. */
  readonly console: boolean
  readonly tokens: ActorRef<TokensProtocol>
  readonly tenants: ActorRef<TenantsProtocol>
  readonly oidc: Pick<OidcSettings, 'code_ttl_secs' | 'par_ttl_secs'>
  /** The highest assurance level that a sign-in can reach: 3 with passkeys, otherwise 2. */
  readonly levelMax: AssuranceLevel
}

type NamedClient = {
  readonly client: AuthorizingClientRow
  /** The metadata document that identifies the client. Absent for a registered one. */
  readonly documentSha256?: string | undefined
}

export const clientOf = (
  { database }: AuthorizationNeeds,
  clientId: string,
  context: MessageContext,
) => activeClient(database, clientId, context)

/** The client of `client_id`, if it belongs to the tenant that the request names. */
export async function namedClient(
  needs: AuthorizationNeeds,
  form: OAuthForm,
  host: string,
  context: MessageContext,
): Promise<NamedClient | Refused> {
  const clientId = form.get('client_id')
  if (clientId === null) return refused('invalid_request', 'client_id is missing')
  if (clientId === CONSOLE_CLIENT_ID && needs.console)
    return consoleClient(needs, form, host, context)
  if (needs.metadataClients.isUrl(clientId))
    return documentedClient(needs, clientId, form, host, context)
  const client = await clientOf(needs, clientId, context)
  // The id of a client that a metadata document identifies is not its client_id.
  if (client === null || client.metadataUrl !== null)
    return refused('invalid_client', 'the application does not exist')
  const named = await namedTenant(needs.tenants, form, client, host, context)
  if (named === 'conflicting') return refused('invalid_request', CONFLICTING_TENANT)
  return named === 'theirs' ? { client } : refused('invalid_client', ANOTHER_TENANT)
}

/** The client of the console, in the tenant that the request or its host names. */
async function consoleClient(
  needs: AuthorizationNeeds,
  form: OAuthForm,
  host: string,
  context: MessageContext,
): Promise<NamedClient | Refused> {
  const tenantId = form.get('tenant_id') ?? undefined
  const tenantSlug = form.get('tenant_slug') ?? undefined
  const isNamed = tenantId !== undefined || tenantSlug !== undefined
  const selector = isNamed ? { tenantId, tenantSlug } : { host }
  const found = await needs.tenants.resolve(selector, context)
  if (found.tag !== 'resolved') return refused('invalid_client', 'the tenant does not exist')
  if (found.tenant.status !== 'active') return refused('invalid_client', 'the tenant is not active')
  const id = await provideConsoleClient(needs, found.tenant.id, context)
  const client = await clientOf(needs, id, context)
  return client === null ? refused('invalid_client', 'the tenant is not active') : { client }
}

/** The client of a metadata document, in the tenant of the request. */
async function documentedClient(
  needs: AuthorizationNeeds,
  clientId: string,
  form: OAuthForm,
  host: string,
  context: MessageContext,
): Promise<NamedClient | Refused> {
  const tenant = await tenantFor(needs, form, host, context)
  if (tenant.tag === 'unknown_resource') return refused('invalid_target', NO_SUCH_RESOURCE)
  if (tenant.tag === 'nothing_named') return refused('invalid_request', NO_TENANT)
  const { tenantId } = tenant
  const named = await namedTenant(needs.tenants, form, { tenantId }, host, context)
  if (named === 'conflicting') return refused('invalid_request', CONFLICTING_TENANT)
  if (named === 'another')
    return refused('invalid_request', 'the request is for another tenant than the one it names')
  const admitted = await needs.metadataClients.admit(clientId, tenantId, false, context)
  if (admitted.tag === 'not_admitted')
    return admitted.why === 'rate_limited'
      ? {
          ...refused('rate_limited', admitted.description),
          retryAfterSecs: admitted.retryAfterSecs,
        }
      : refused('invalid_client', admitted.description)
  const client = await clientOf(needs, admitted.id, context)
  if (client === null) return refused('invalid_client', 'the tenant is not active')
  return { client, documentSha256: admitted.document.sha256 }
}

/** A pushed request has its tenant already, so that request_uri and client_id suffice. */
async function tenantFor(
  needs: AuthorizationNeeds,
  form: OAuthForm,
  host: string,
  context: MessageContext,
): Promise<TenantOfRequest> {
  const requestUri = form.get('request_uri')
  const row = requestUri?.startsWith(REQUEST_URI_PREFIX)
    ? await findRequest(needs, requestUri, context)
    : undefined
  if (row !== undefined) return { tag: 'tenant', tenantId: row.tenantId }
  return tenantOfRequest(needs, { host, resources: form.all('resource') }, context)
}

/** Finds a request by its resume handle or its whole request_uri. The two formats cannot collide. */
export async function findRequest(
  needs: AuthorizationNeeds,
  handle: string,
  context: MessageContext,
) {
  // The tenant is unknown until the request is found, so the look-up crosses tenants.
  return needs.database.system(
    (tx) => findAuthorizationRequest<AuthorizationRequest>(tx, sha256(handle), needs.clock.now()),
    context,
  )
}

export function refused(error: RefusedError, description: string): Refused {
  return { tag: 'refused', error, description }
}
