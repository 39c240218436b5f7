/** Audit entries of application management. */
import type { MessageContext } from '../../../../runtime/kernel/actor.js'
import type { ApplicationRow } from '../../../../storage/oauth/applications.js'
import type { Transaction } from '../../../../storage/platform/sql.js'
import type { Caller } from '../../../domain/audit.js'
import { recordAudit } from '../../../platform/record-audit.js'

type Did = 'created' | 'updated' | 'deleted' | 'secret_rotated'

/** Writes an `admin.application.*` event. `data` never contains a secret. */
export function recordAction(
  tx: Transaction,
  needs: Parameters<typeof recordAudit>[1],
  caller: Caller,
  context: MessageContext,
  { did, id, data }: { did: Did; id: string; data: Readonly<Record<string, unknown>> },
): void {
  const resource = { type: 'application', id }
  recordAudit(tx, needs, caller, context, { type: `admin.application.${did}`, resource, data })
}

/** The members that show in the audit log what an application may do. */
export function powersOf(row: ApplicationRow) {
  return {
    name: row.name,
    status: row.status,
    client_type: row.clientType,
    grant_types: row.grantTypes,
    scopes: row.scopes,
  }
}

/** Members by their wire names, in the order of the API. */
const MEMBERS = {
  name: 'name',
  status: 'status',
  clientType: 'client_type',
  tokenEndpointAuthMethod: 'token_endpoint_auth_method',
  audience: 'audience',
  redirectUris: 'redirect_uris',
  postLogoutRedirectUris: 'post_logout_redirect_uris',
  backchannelLogoutUri: 'backchannel_logout_uri',
  backchannelLogoutSessionRequired: 'backchannel_logout_session_required',
  frontchannelLogoutUri: 'frontchannel_logout_uri',
  frontchannelLogoutSessionRequired: 'frontchannel_logout_session_required',
  allowedOrigins: 'allowed_origins',
  grantTypes: 'grant_types',
  responseTypes: 'response_types',
  scopes: 'scopes',
  defaultScopes: 'default_scopes',
  jwks: 'jwks',
  jwksUri: 'jwks_uri',
  dpopBoundAccessTokens: 'dpop_bound_access_tokens',
  rotateRefreshTokens: 'rotate_refresh_tokens',
  requirePushedAuthorizationRequests: 'require_pushed_authorization_requests',
  idTokenSignedResponseAlg: 'id_token_signed_response_alg',
  authorizationSignedResponseAlg: 'authorization_signed_response_alg',
  userinfoSignedResponseAlg: 'userinfo_signed_response_alg',
  introspectionSignedResponseAlg: 'introspection_signed_response_alg',
  requireSignedRequestObject: 'require_signed_request_object',
  requestObjectSigningAlg: 'request_object_signing_alg',
  logoUri: 'logo_uri',
  requirePkce: 'require_pkce',
  loopbackAnyPort: 'loopback_any_port',
  authorizationDetailsTypes: 'authorization_details_types',
} as const satisfies {
  readonly [member in Exclude<
    keyof ApplicationRow,
    'id' | 'tenantId' | 'heldToMethod' | 'metadataUrl' | 'createdAt' | 'updatedAt'
  >]: string
}

/** Names of the members in which two states of an application differ. */
export function changedMembers(before: ApplicationRow, after: ApplicationRow): readonly string[] {
  const names = Object.entries(MEMBERS) as [keyof typeof MEMBERS, string][]
  return names
    .filter(([member]) => JSON.stringify(before[member]) !== JSON.stringify(after[member]))
    .map(([, name]) => name)
}
