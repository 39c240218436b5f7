/** The metadata documents (RFC 8414, RFC 9728, OpenID Connect Discovery, OpenID4VCI). */
import {
  acrValues,
  CODE_CHALLENGE_METHODS,
  PROMPTS,
  RESPONSE_MODES,
  RESPONSE_TYPES,
} from '../tokens/authorization/protocol.js'
import {
  CREDENTIAL_DETAILS_TYPE,
  CREDENTIAL_SCOPES,
  type CredentialIssuer,
  credentialIssuerIdentifier,
} from '../../domain/credentials/catalogue.js'
import { BATCH_SIZE } from '../../domain/credentials/configurations.js'
import type { Locale } from '../../domain/i18n/locales.js'
import { CRITICAL_SUBJECT_MEMBERS, DELIVERY_METHODS } from '../../domain/webhooks/signals.js'
import { PERSON_CLAIMS } from '../../domain/person-claims.js'
import { SELF_REGISTERED_SCOPES } from '../../domain/scopes.js'
import { SIGNING_ALGORITHMS } from '../signing-keys/protocol.js'
import { GRANT_TYPES, ID_JAG, PRE_AUTHORIZED_CODE } from '../../domain/oauth/grant-types.js'
import { CLIENT_AUTH_METHODS, PROOF_ALGORITHMS } from '../tokens/protocol.js'

/** The claims of every ID token, without the user claims. */
const TOKEN_CLAIMS = [
  'iss',
  'sub',
  'aud',
  'azp',
  'exp',
  'iat',
  'auth_time',
  'nonce',
  'acr',
  'amr',
  'at_hash',
  'sid',
  'tenant_id',
]

export type IssuerFacts = {
  /** `oidc.issuer_url`, exactly as in tokens. */
  readonly issuer: string
  /** Public base URL, without a trailing slash. */
  readonly baseUrl: string
  readonly dpopEnabled: boolean
  /** `passkey.enabled`. */
  readonly passkeys?: boolean | undefined
  readonly registrationEnabled: boolean
  /** `oidc.client_id_metadata_enabled`. */
  readonly clientIdMetadata?: boolean | undefined
  /** The languages that `[i18n]` offers. */
  readonly locales: readonly Locale[]
  /** `credentials.enabled`. */
  readonly credentials: boolean
  /** `credentials.root_tenant_slug`. */
  readonly rootTenantSlug?: string | undefined
  /** Absolute URL of the documentation pages. Null if they are not served. */
  readonly documentation: string | null
}

type Metadata = Readonly<Record<string, unknown>>

/** RFC 8414 section 2. Members of disabled features are absent. */
export function authorizationServer(facts: IssuerFacts): Metadata {
  const { issuer, baseUrl, dpopEnabled, registrationEnabled, credentials, documentation } = facts
  return {
    issuer,
    authorization_endpoint: `${baseUrl}/oauth/authorize`,
    pushed_authorization_request_endpoint: `${baseUrl}/oauth/par`,
    token_endpoint: `${baseUrl}/oauth/token`,
    device_authorization_endpoint: `${baseUrl}/oauth/device/code`,
    backchannel_authentication_endpoint: `${baseUrl}/bc-authorize`,
    backchannel_token_delivery_modes_supported: ['poll'],
    backchannel_user_code_parameter_supported: false,
    introspection_endpoint: `${baseUrl}/oauth/introspect`,
    revocation_endpoint: `${baseUrl}/oauth/revoke`,
    ...(registrationEnabled ? { registration_endpoint: `${baseUrl}/oauth/register` } : {}),
    ...(facts.clientIdMetadata === true ? { client_id_metadata_document_supported: true } : {}),
    jwks_uri: jwksUri(facts),
    status_list_aggregation_endpoint: `${baseUrl}/status-lists`,
    response_types_supported: RESPONSE_TYPES,
    response_modes_supported: RESPONSE_MODES,
    code_challenge_methods_supported: CODE_CHALLENGE_METHODS,
    authorization_response_iss_parameter_supported: true,
    require_pushed_authorization_requests: false,
    grant_types_supported: GRANT_TYPES.filter(
      (grant) => credentials || grant !== PRE_AUTHORIZED_CODE,
    ),
    ...(credentials
      ? {
          'pre-authorized_grant_anonymous_access_supported': true,
          authorization_details_types_supported: [CREDENTIAL_DETAILS_TYPE],
        }
      : {}),
    // draft-ietf-oauth-identity-assertion-authz-grant-04, metadata of both roles.
    authorization_grant_profiles_supported: ['urn:ietf:params:oauth:grant-profile:id-jag'],
    identity_chaining_requested_token_types_supported: [ID_JAG],
    token_endpoint_auth_methods_supported: CLIENT_AUTH_METHODS,
    token_endpoint_auth_signing_alg_values_supported: PROOF_ALGORITHMS,
    // A public client cannot introspect.
    introspection_endpoint_auth_methods_supported: CLIENT_AUTH_METHODS.filter(
      (method) => method !== 'none',
    ),
    introspection_endpoint_auth_signing_alg_values_supported: PROOF_ALGORITHMS,
    revocation_endpoint_auth_methods_supported: CLIENT_AUTH_METHODS,
    revocation_endpoint_auth_signing_alg_values_supported: PROOF_ALGORITHMS,
    ...(dpopEnabled ? { dpop_signing_alg_values_supported: PROOF_ALGORITHMS } : {}),
    // Clients register with all listed scopes, so scopes that need a right are not listed.
    scopes_supported: [...SELF_REGISTERED_SCOPES, ...(credentials ? CREDENTIAL_SCOPES : [])],
    ui_locales_supported: facts.locales,
    authorization_signing_alg_values_supported: SIGNING_ALGORITHMS,
    introspection_signing_alg_values_supported: SIGNING_ALGORITHMS,
    request_object_signing_alg_values_supported: PROOF_ALGORITHMS,
    // At the authorization endpoint. Request objects are pushed.
    request_parameter_supported: false,
    // The default is true (OpenID Connect Discovery section 3).
    request_uri_parameter_supported: false,
    ...(documentation === null ? {} : { service_documentation: documentation }),
  }
}

/** The same members and the members of OpenID Connect Discovery section 3. */
export function openidConfiguration(facts: IssuerFacts): Metadata {
  return {
    ...authorizationServer(facts),
    userinfo_endpoint: `${facts.baseUrl}/userinfo`,
    end_session_endpoint: `${facts.baseUrl}/oauth/end-session`,
    backchannel_logout_supported: true,
    backchannel_logout_session_supported: true,
    frontchannel_logout_supported: true,
    frontchannel_logout_session_supported: true,
    subject_types_supported: ['pairwise'],
    id_token_signing_alg_values_supported: SIGNING_ALGORITHMS,
    userinfo_signing_alg_values_supported: SIGNING_ALGORITHMS,
    acr_values_supported: acrValues(facts.passkeys === true),
    prompt_values_supported: PROMPTS,
    claims_supported: [...TOKEN_CLAIMS, ...PERSON_CLAIMS],
    claims_parameter_supported: true,
  }
}

/**
 * RFC 9728 section 2. A client without a challenge requests all listed scopes, so the list has only
 * those that a self-registered client can get. Challenges name other scopes. `offline_access` belongs
 * to the authorization server, not to a resource.
 */
export function protectedResource(facts: IssuerFacts): Metadata {
  const { issuer, baseUrl, dpopEnabled, documentation } = facts
  return {
    resource: baseUrl,
    authorization_servers: [issuer],
    jwks_uri: jwksUri(facts),
    scopes_supported: SELF_REGISTERED_SCOPES.filter((scope) => scope !== 'offline_access'),
    bearer_methods_supported: ['header'],
    resource_name: 'svc',
    ...(documentation === null ? {} : { resource_documentation: documentation }),
    ...(dpopEnabled ? { dpop_signing_alg_values_supported: PROOF_ALGORITHMS } : {}),
    dpop_bound_access_tokens_required: false,
  }
}

/** Transmitter configuration (SSF 1.0 section 7.1). */
export function ssfConfiguration({ issuer, baseUrl }: IssuerFacts): Metadata {
  return {
    spec_version: '1_0',
    issuer,
    jwks_uri: `${baseUrl}/ssf/jwks.json`,
    delivery_methods_supported: DELIVERY_METHODS,
    configuration_endpoint: `${baseUrl}/ssf/streams`,
    status_endpoint: `${baseUrl}/ssf/status`,
    add_subject_endpoint: `${baseUrl}/ssf/subjects:add`,
    remove_subject_endpoint: `${baseUrl}/ssf/subjects:remove`,
    verification_endpoint: `${baseUrl}/ssf/verify`,
    critical_subject_members: CRITICAL_SUBJECT_MEMBERS,
    authorization_schemes: [{ spec_urn: 'urn:ietf:rfc:6749' }],
    default_subjects: 'ALL',
  }
}

/**
 * Metadata of a credential issuer (OpenID4VCI section 12.2.4).
 * @param configurations null if the issuer issues nothing.
 */
export function credentialIssuer(
  facts: IssuerFacts,
  tenant: CredentialIssuer,
  configurations: Metadata | null,
): Metadata {
  const identifier = credentialIssuerIdentifier(facts.baseUrl, tenant)
  return {
    credential_issuer: identifier,
    authorization_servers: [facts.issuer],
    credential_endpoint: `${identifier}/credential`,
    // For a tenant without credentials it is 404, as its credential endpoint.
    ...(configurations === null && tenant !== null
      ? {}
      : { nonce_endpoint: `${identifier}/nonce` }),
    ...(configurations === null
      ? {}
      : {
          notification_endpoint: `${identifier}/notification`,
          batch_credential_issuance: { batch_size: BATCH_SIZE },
          status_list_aggregation_endpoint: `${facts.baseUrl}/status-lists`,
        }),
    credential_configurations_supported: configurations ?? {},
    display: [{ name: tenant?.name ?? 'svc', locale: 'en' }],
  }
}

/**
 * SD-JWT VC issuer metadata. It must not have both `jwks_uri` and `jwks`.
 * @param signer the tenant that signs, also for the root.
 */
export function jwtVcIssuer(
  facts: IssuerFacts,
  tenant: CredentialIssuer,
  signer: CredentialIssuer = tenant,
): Metadata {
  const issuer = credentialIssuerIdentifier(facts.baseUrl, tenant)
  const keys = credentialIssuerIdentifier(facts.baseUrl, signer)
  return { issuer, jwks_uri: `${keys}/.well-known/jwks.json` }
}

function jwksUri({ baseUrl }: IssuerFacts): string {
  return `${baseUrl}/.well-known/jwks.json`
}
