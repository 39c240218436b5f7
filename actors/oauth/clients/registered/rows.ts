/** Converts drafts of applications to rows. */
import type { ApplicationRow } from '../../../../storage/oauth/applications.js'
import type { ApplicationDraft } from './protocol.js'

export function needsSecret({
  tokenEndpointAuthMethod,
}: Pick<ApplicationRow, 'tokenEndpointAuthMethod'>): boolean {
  return tokenEndpointAuthMethod.startsWith('client_secret_')
}

/** The members with defaults, as far as the draft contains them. */
export function optionalMembers(draft: ApplicationDraft) {
  return stated({
    audience: draft.audience,
    postLogoutRedirectUris: copy(draft.postLogoutRedirectUris),
    backchannelLogoutUri: draft.backchannelLogoutUri,
    backchannelLogoutSessionRequired: draft.backchannelLogoutSessionRequired,
    frontchannelLogoutUri: draft.frontchannelLogoutUri,
    frontchannelLogoutSessionRequired: draft.frontchannelLogoutSessionRequired,
    allowedOrigins: copy(draft.allowedOrigins),
    grantTypes: copy(draft.grantTypes),
    responseTypes: copy(draft.responseTypes),
    scopes: copy(draft.scopes),
    defaultScopes: copy(draft.defaultScopes),
    jwks: draft.jwks && { keys: draft.jwks.keys.map((key) => ({ ...key })) },
    jwksUri: draft.jwksUri,
    dpopBoundAccessTokens: draft.dpopBoundAccessTokens,
    rotateRefreshTokens: draft.rotateRefreshTokens,
    requirePushedAuthorizationRequests: draft.requirePushedAuthorizationRequests,
    idTokenSignedResponseAlg: draft.idTokenSignedResponseAlg,
    authorizationSignedResponseAlg: draft.authorizationSignedResponseAlg,
    userinfoSignedResponseAlg: draft.userinfoSignedResponseAlg,
    introspectionSignedResponseAlg: draft.introspectionSignedResponseAlg,
    requireSignedRequestObject: draft.requireSignedRequestObject,
    requestObjectSigningAlg: draft.requestObjectSigningAlg,
    logoUri: draft.logoUri,
    requirePkce: draft.requirePkce,
    loopbackAnyPort: draft.loopbackAnyPort,
    authorizationDetailsTypes: copy(draft.authorizationDetailsTypes),
  })
}

function copy(values: readonly string[] | undefined): string[] | undefined {
  return values && [...values]
}

/** Removes undefined members, so that the defaults of the row apply. */
export function stated<T extends object>(
  members: T,
): { [K in keyof T]?: Exclude<T[K], undefined> } {
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined)) as {
    [K in keyof T]?: Exclude<T[K], undefined>
  }
}
