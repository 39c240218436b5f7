/**
 * The reasons of OAuth errors: one word per check that can fail. The word is in the log line of the refusal and in the
 * `error_uri` of the response, which is the page of the error with the reason as anchor. docs/reference/errors.md.
 */

/** One error code of RFC 6749 section 5.2 or of an extension, with the reasons for it. */
type ErrorCode = {
  readonly meaning: string
  /** Reason -> its cause, and what the client does about it. */
  readonly reasons: Readonly<Record<string, readonly [cause: string, remedy: string]>>
}

const GRANT_NOT_ALLOWED = [
  'The client may not use this grant, or not use this endpoint at all.',
  'Add the grant type to the application, or use another client.',
] as const

export const OAUTH_ERRORS = {
  invalid_request: {
    meaning: 'The request lacks a parameter, repeats one, or has an invalid value.',
    reasons: {
      parameter_missing: [
        'A required parameter is missing.',
        'Send the parameter that error_description names.',
      ],
      parameter_repeated: [
        'A parameter occurs twice (RFC 6749 section 3.2).',
        'Send each parameter once. Only resource may repeat.',
      ],
      parameter_invalid: [
        'A parameter has an invalid value, or does not belong to this request.',
        'Correct the parameter that error_description names.',
      ],
      several_authentication_methods: [
        'The request authenticates the client in more than one way.',
        'Use one of: the Authorization header, client_secret, client_assertion.',
      ],
      client_ids_differ: [
        'client_id differs from the client of the Authorization header.',
        'Send one client_id, or none with the header.',
      ],
      tenant_unknown: [
        'The tenant of the request is unknown, or two parameters name different tenants.',
        'Send tenant_id or tenant_slug, or use the host of the tenant.',
      ],
    },
  },
  invalid_client: {
    meaning: 'Client authentication failed.',
    reasons: {
      client_authentication_missing: [
        'The request identifies no client.',
        'Send client_id with client_secret, a client_assertion, or an Authorization header.',
      ],
      client_authentication_failed: [
        'The client is unknown, or its secret or assertion is wrong.',
        'Check client_id and secret. Create a new secret if the old one is lost.',
      ],
      client_method_wrong: [
        'The client does not use this way of authentication.',
        'Use the token_endpoint_auth_method of the client.',
      ],
      authorization_scheme_wrong: [
        'The Authorization header of a client is not Basic.',
        'Send Basic, or authenticate in the form.',
      ],
      basic_malformed: [
        'The Basic credentials of the Authorization header cannot be read.',
        'Send base64 of client_id:client_secret, each form-encoded.',
      ],
      assertion_type_unknown: [
        'client_assertion_type is missing or unknown, or client_assertion is missing.',
        'Send both. The type is the URN of jwt-bearer or jwt-spiffe.',
      ],
      client_metadata_invalid: [
        'The metadata document of the client cannot be used.',
        'Correct the document at the URL of the client_id.',
      ],
    },
  },
  invalid_grant: {
    meaning: 'The code or token is invalid, expired, used, or belongs to another client.',
    reasons: {
      code_unknown: [
        'The code does not exist, or was issued to another client.',
        'Start the flow again and redeem its code with the same client.',
      ],
      code_reused: [
        'The code was redeemed before. All tokens of that code are revoked.',
        'Redeem each code once. Check for requests that are sent twice.',
      ],
      code_expired: [
        'The code has expired.',
        'Redeem the code immediately, or start the flow again.',
      ],
      code_key_mismatch: [
        'The code is bound to another DPoP key.',
        'Redeem the code with the key of the authorization request.',
      ],
      redirect_uri_mismatch: [
        'redirect_uri differs from the one of the authorization request.',
        'Send the same redirect_uri, character by character.',
      ],
      pkce_mismatch: [
        'code_verifier is missing, malformed, or does not match the code_challenge.',
        'Send the verifier from which the challenge of this flow was computed.',
      ],
      session_ended: [
        'The session, or the user, agent or application behind the grant, is no longer active.',
        'Ask the user to sign in again.',
      ],
      refresh_token_unknown: [
        'The refresh token does not exist, or was issued to another client.',
        'Use the latest refresh token, or sign in again.',
      ],
      refresh_token_reused: [
        'The refresh token was used before. Its family is revoked.',
        'Store the new refresh token of every response. Refresh in one place only. Sign in again.',
      ],
      refresh_token_revoked: ['The refresh token was revoked.', 'Sign in again.'],
      refresh_token_expired: ['The refresh token has expired.', 'Sign in again.'],
      tx_code_wrong: [
        'The transaction code of the credential offer is wrong.',
        'Ask the user for the transaction code again.',
      ],
      token_invalid: [
        'subject_token or actor_token is invalid, expired, or not of the required kind.',
        'Send a valid access token of this service.',
      ],
      token_of_other_client: [
        'The token was issued to another client.',
        'Use the client of the token.',
      ],
      assertion_refused: [
        'The token of the issuer is invalid, or no rule of the tenant matches it.',
        'Ask an administrator of the tenant, who can evaluate the token.',
      ],
      tenant_mismatch: [
        'The tokens and the client belong to different tenants.',
        'Use tokens and a client of one tenant.',
      ],
    },
  },
  unauthorized_client: {
    meaning: 'The client may not use this grant or endpoint.',
    reasons: { grant_not_allowed: GRANT_NOT_ALLOWED },
  },
  unsupported_grant_type: {
    meaning: 'The service does not support this grant_type.',
    reasons: {
      grant_type_unsupported: [
        'The grant type is unknown or disabled.',
        'Use a grant type of grant_types_supported in the discovery document.',
      ],
    },
  },
  invalid_scope: {
    meaning: 'A scope is malformed, unknown, or not allowed.',
    reasons: {
      scope_malformed: ['scope is malformed.', 'Send scopes with one space between them.'],
      scope_not_allowed: [
        'The client or the grant does not have a requested scope.',
        'Request fewer scopes, or add the scope to the application.',
      ],
      scope_empty: [
        'No scope remains for the token.',
        'Add a scope to the application, or ask the user for consent again.',
      ],
    },
  },
  invalid_target: {
    meaning: 'The resource or audience is unknown or not allowed (RFC 8707).',
    reasons: {
      resource_invalid: [
        'resource or audience is malformed, or they contradict one another.',
        'Send an absolute URI without a fragment.',
      ],
      resource_unknown: [
        'The resource is not known in this tenant, or the client may not use it.',
        'Register the API resource, or correct its identifier.',
      ],
      resource_not_granted: [
        'The grant does not include the resource.',
        'Request a resource of the grant, or start the flow again with this resource.',
      ],
      upstream_refused: [
        'The upstream refused the credential of the vault.',
        'Ask the owner of the credential to connect it again.',
      ],
    },
  },
  invalid_authorization_details: {
    meaning: 'authorization_details cannot be granted (RFC 9396).',
    reasons: {
      details_unsupported: [
        'This grant or endpoint does not support authorization_details.',
        'Remove authorization_details, or use the authorization endpoint.',
      ],
      details_not_granted: [
        'The grant does not include these authorization_details.',
        'Request details of the grant.',
      ],
    },
  },
  insufficient_user_authentication: {
    meaning: 'The user must sign in at a higher level (RFC 9470).',
    reasons: {
      level_too_low: [
        'The sign-in of the user has a lower level than the policy demands.',
        'Send the user to the authorization endpoint with the acr_values that error_description names.',
      ],
    },
  },
  invalid_dpop_proof: {
    meaning: 'The DPoP proof is missing or invalid (RFC 9449).',
    reasons: {
      proof_missing: ['The request needs a DPoP proof.', 'Send a DPoP header.'],
      proof_invalid: [
        'The proof is malformed, too old, or for another request.',
        'Make a new proof for the method and URL of this request.',
      ],
      proof_key_mismatch: [
        'The proof has another key than the token.',
        'Sign the proof with the key that the token is bound to.',
      ],
      proof_reused: ['The proof was used before.', 'Make a new proof for each request.'],
      dpop_disabled: ['This deployment does not support DPoP.', 'Send no DPoP header.'],
    },
  },
  use_dpop_nonce: {
    meaning: 'The DPoP proof needs a nonce of this service (RFC 9449 section 8).',
    reasons: {
      nonce_missing: ['The proof has no nonce.', 'Repeat the request with the DPoP-Nonce.'],
      nonce_expired: [
        'The nonce is unknown or too old.',
        'Repeat the request with the DPoP-Nonce.',
      ],
    },
  },
  authorization_pending: {
    meaning: 'The user has not decided yet. Poll again after the interval.',
    reasons: {
      user_undecided: ['The user has not decided yet.', 'Poll again after the interval.'],
    },
  },
  slow_down: {
    meaning: 'The client polls too often. The interval is longer from now on.',
    reasons: { polled_too_soon: ['The last poll was too recent.', 'Wait for the new interval.'] },
  },
  access_denied: {
    meaning: 'The user denied the request.',
    reasons: { user_denied: ['The user denied the request.', 'Do not poll again.'] },
  },
  expired_token: {
    meaning: 'The device code or authentication request has expired.',
    reasons: { request_expired: ['The user did not decide in time.', 'Start a new request.'] },
  },
  consent_required: {
    meaning: 'A consent or delegation is missing.',
    reasons: {
      delegation_missing: [
        'The user has no delegation for this agent, or the agent may not act for the subject.',
        'Request a delegation from the user.',
      ],
      actor_not_allowed: [
        'The client or agent may not exchange this token.',
        'Exchange the token as its acting agent, or name the next agent in may_act.',
      ],
    },
  },
  policy_denied: {
    meaning: 'A policy forbids the request.',
    reasons: {
      export_denied: [
        'The credential of the vault cannot be exported to this caller.',
        'Use the egress proxy, or ask the owner of the credential.',
      ],
      access_policy: [
        'An access policy of the tenant forbids the sign-in or the token.',
        'Ask an owner or admin of the tenant, who can evaluate the policies.',
      ],
    },
  },
  insufficient_scope: {
    meaning: 'The access token lacks a scope.',
    reasons: {
      scope_missing: [
        'The access token lacks the scope of the operation.',
        'Get a token with the scope that WWW-Authenticate names.',
      ],
    },
  },
  rate_limited: {
    meaning: 'A rate limit is exceeded.',
    reasons: {
      limit_exceeded: ['A rate limit is exceeded.', 'Wait for Retry-After.'],
    },
  },
  server_error: {
    meaning: 'The service cannot complete the request.',
    reasons: {
      upstream_invalid: ['An upstream sent an invalid response.', 'Report the request id.'],
    },
  },
  temporarily_unavailable: {
    meaning: 'A dependency of the request is temporarily unavailable.',
    reasons: {
      upstream_unavailable: ['An upstream sent no response in time.', 'Wait for Retry-After.'],
      client_document_unavailable: [
        'The key set or the metadata document of the client cannot be fetched.',
        'Check that the URL is reachable, then repeat the request.',
      ],
    },
  },
  invalid_token: {
    meaning: 'The access token is invalid, expired or revoked (RFC 6750 section 3.1).',
    reasons: {},
  },
  invalid_redirect_uri: {
    meaning: 'A redirect URI is invalid, or is not registered for the client.',
    reasons: {},
  },
  invalid_client_metadata: {
    meaning: 'The metadata of a client registration is invalid (RFC 7591 section 3.2.2).',
    reasons: {},
  },
  invalid_request_uri: {
    meaning: 'The request_uri is unknown, expired, or belongs to another client (RFC 9126).',
    reasons: {},
  },
  invalid_request_object: {
    meaning: 'The request object is invalid (RFC 9101).',
    reasons: {},
  },
  registration_not_supported: {
    meaning:
      'The service does not support the registration parameter (OpenID Connect Core section 3.1.2.6).',
    reasons: {},
  },
  request_not_supported: {
    meaning:
      'The service does not support the request parameter (OpenID Connect Core section 3.1.2.6).',
    reasons: {},
  },
  request_uri_not_supported: {
    meaning: 'The service does not support this request_uri (OpenID Connect Core section 3.1.2.6).',
    reasons: {},
  },
  unsupported_response_type: {
    meaning: 'The service does not support this response_type. Use code.',
    reasons: {},
  },
  pkce_required: {
    meaning: 'A public client must send code_challenge with the method S256 (RFC 7636).',
    reasons: {},
  },
  login_required: {
    meaning: 'The user must sign in, and the request has prompt=none.',
    reasons: {},
  },
  interaction_required: {
    meaning: 'The user must do something, and the request has prompt=none.',
    reasons: {},
  },
  unmet_authentication_requirements: {
    meaning: 'The user cannot sign in at the requested level.',
    reasons: {},
  },
  unknown_user_id: {
    meaning: 'The hint of the CIBA request identifies no user.',
    reasons: {},
  },
  expired_login_hint_token: {
    meaning: 'The login_hint_token of the CIBA request has expired.',
    reasons: {},
  },
  invalid_binding_message: {
    meaning: 'The binding_message is too long or has control characters.',
    reasons: {},
  },
  invalid_user_code: {
    meaning: 'The user_code is wrong.',
    reasons: {},
  },
  missing_user_code: {
    meaning: 'The request needs a user_code.',
    reasons: {},
  },
  invalid_credential_request: {
    meaning: 'The credential request is malformed (OpenID4VCI section 8.3.1).',
    reasons: {},
  },
  unknown_credential_configuration: {
    meaning: 'The issuer does not have this credential configuration.',
    reasons: {},
  },
  unknown_credential_identifier: {
    meaning: 'The token does not grant this credential identifier.',
    reasons: {},
  },
  invalid_proof: {
    meaning: 'A proof of possession is missing or invalid (OpenID4VCI section 8.3.1).',
    reasons: {},
  },
  invalid_nonce: {
    meaning: 'The c_nonce of a proof is unknown or too old. Get a new one at the nonce endpoint.',
    reasons: {},
  },
  invalid_encryption_parameters: {
    meaning: 'The encryption parameters are invalid or not supported.',
    reasons: {},
  },
  credential_request_denied: {
    meaning: 'The issuer denies this credential. Do not repeat the request.',
    reasons: {},
  },
  invalid_notification_id: {
    meaning: 'The notification_id is unknown.',
    reasons: {},
  },
  invalid_notification_request: {
    meaning: 'The notification is malformed.',
    reasons: {},
  },
} as const satisfies Readonly<Record<string, ErrorCode>>

type Known = typeof OAUTH_ERRORS
type ReasonsOf<Code> = Code extends keyof Known ? keyof Known[Code]['reasons'] : never

/** The word for a failed check. */
export type OAuthReason = { [C in keyof Known]: ReasonsOf<C> }[keyof Known] & string

/** A client that authenticated, or whose token is verified, and its tenant. */
export type VerifiedClient = { readonly clientId: string; readonly tenantId: string }

/** Who sent a refused request. For logs: never a secret. */
export type RefusedRequester = {
  /** Null until authentication succeeds. */
  readonly client: VerifiedClient | null
  /** What the request says of itself, and the tenant that this names. Strangers can say it too. */
  readonly presented: { readonly [Name in keyof VerifiedClient]: string | null }
  readonly grantType: string | null
  /** Finer than the word in the answer, which must not tell which clients exist. */
  readonly reason?: string | undefined
  /** A stranger can cause any number: one line a second is logged. */
  readonly isAnyones?: boolean | undefined
}
