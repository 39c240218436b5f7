/** The client of a request to the token endpoint or one of its neighbors. */
import type { MessageContext } from '../../../../runtime/kernel/actor.js'
import { asId } from '../../../domain/ids.js'
import { CONSOLE_CLIENT_ID } from '../../../domain/people/console-client.js'
import { consoleClientOf } from './console-client.js'
import type { OAuthForm } from '../form.js'
import type { ClientQuota, OAuthRefused, ProofRefused, TokenRequest } from '../protocol.js'
import { refuse, refusedClient } from '../refusals.js'
import type { TokenTools } from '../tools.js'
import { readAssertion } from './client-assertion.js'
import { type ClientAuthentication, readClientAuthentication } from './client-authentication.js'
import { readIssuerJws } from '../../../platform/jose/issuer-jws.js'
import { admittedClient, assertionRefused } from '../grants/workload.js'
import type { Client } from './clients.js'
import { authenticateMetadataClient, presentedUrl } from './metadata-client.js'

const FAILED = 'client authentication failed'
type Found = Client | OAuthRefused
type PresentedAssertion = Extract<ClientAuthentication, { method: 'assertion' }>

/** Reads the client and counts the request. @param quota null counts failures only. */
export async function countedClient(
  tools: TokenTools,
  request: TokenRequest,
  form: OAuthForm,
  quota: ClientQuota | null,
  context: MessageContext,
) {
  const found = await clientOf(tools, request, form, context)
  return tools.quotas.count(found, { request, form, quota }, context)
}

/** The client of a request. The request names no tenant, or the tenant of the client. */
export function clientOf(
  tools: TokenTools,
  request: TokenRequest,
  form: OAuthForm,
  context: MessageContext,
): Found | Promise<Found> {
  const found = authenticated(tools, request, form, context)
  const named = form.get('tenant_id')
  if (named === null) return found
  const orMisplaced = (client: Found) =>
    'kind' in client && client.kind === 'application' && client.row.tenantId !== asId(named)
      ? refuse('invalid_request', 'tenant_id is not the tenant of the client', 'parameter_invalid')
      : client
  return found instanceof Promise ? found.then(orMisplaced) : orMisplaced(found)
}

/** Synchronous for a cached client, which most requests have. */
function authenticated(
  tools: TokenTools,
  { authorization, httpUrl }: TokenRequest,
  form: OAuthForm,
  context: MessageContext,
): Found | Promise<Found> {
  const { documented, clients, issuer, clock } = tools
  const authentication = readClientAuthentication(authorization, form)
  if (authentication.method === 'refused') {
    const { error, description, reason } = authentication
    return refuse(error, description, reason)
  }
  if (authentication.method === 'assertion' && isOfIssuer(authentication))
    return workloadClient(tools, authentication, { form, host: new URL(httpUrl).host }, context)
  const assertion =
    authentication.method === 'assertion'
      ? readAssertion(authentication.assertion, issuer, clock.nowSecs())
      : null
  const url = documented && presentedUrl(documented.metadataClients, authentication, assertion)
  if (documented !== undefined && url != null) {
    const { host } = new URL(httpUrl)
    return authenticateMetadataClient(
      { ...tools, ...documented },
      url,
      { presented: authentication, form, host },
      context,
    )
  }
  if (tools.console && authentication.clientId === CONSOLE_CLIENT_ID)
    return consoleClient(tools, authentication, form)
  const orRefused = (client: Client | null) => {
    if (client !== null) return client
    // It never reveals whether the client or its key exists.
    const fault =
      assertion !== null && 'fault' in assertion ? `, client_assertion: ${assertion.fault}` : ''
    return {
      ...refuse('invalid_client', `${FAILED}${fault}`, 'client_authentication_failed'),
      requester: refusedClient(authentication, clients.whyRefused(authentication)),
    }
  }
  const client = clients.authenticate(authentication)
  return client instanceof Promise ? client.then(orRefused) : orRefused(client)
}

/** A client signs its assertion itself: an issuer signs it for another party (RFC 7523 section 3). */
function isOfIssuer({ assertion, presentedAs }: PresentedAssertion): boolean {
  if (presentedAs === 'spiffe') return true
  const jws = readIssuerJws(assertion)
  return !('step' in jws) && jws.claims['iss'] !== jws.claims['sub']
}

async function workloadClient(
  tools: TokenTools,
  presented: PresentedAssertion,
  request: { readonly form: OAuthForm; readonly host: string },
  context: MessageContext,
): Promise<Found> {
  const client = await admittedClient(tools, presented, request, context)
  if ('refused' in client) return assertionRefused('invalid_client', client, presented.clientId)
  const { tokenEndpointAuthMethod: method, tenantId } = client.row
  return presented.presentedAs === 'spiffe' && method !== 'spiffe_jwt'
    ? assertionRefused('invalid_client', { refused: 'method', tenantId }, presented.clientId)
    : client
}

async function consoleClient(
  tools: TokenTools,
  { method }: ClientAuthentication,
  form: OAuthForm,
): Promise<Found> {
  const client = method === 'none' ? await consoleClientOf(tools, form) : null
  return client ?? refuse('invalid_client', FAILED, 'client_authentication_failed')
}

/** Verifies the DPoP proof of a request without an access token. Null without a proof. */
export async function provenKey(
  { dpopVerifier }: TokenTools,
  { httpMethod, httpUrl, dpopProof: proof }: TokenRequest,
): Promise<{ readonly jkt: string | null } | ProofRefused> {
  if (proof === null) return { jkt: null }
  const asked = { proof, httpMethod, httpUrl, accessToken: null, boundTo: null }
  const verified = await dpopVerifier.verify(asked)
  return verified.tag === 'proven' ? { jkt: verified.jkt } : verified
}
