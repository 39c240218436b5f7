/** The endpoints of wallets: offer, nonce, credential and notification (OpenID4VCI 1.0), and type metadata. */
import { z } from 'zod'
import {
  credentialIssuance,
  type CredentialRefused,
  type NotificationRefused,
  type OfferPresented,
  type WalletRequest,
} from '../../../actors/oauth/credential-issuance/protocol.js'
import { type ProofRefused, type Unauthenticated } from '../../../actors/oauth/tokens/protocol.js'
import { offerEndedPage, offerPage } from '../../pages/oauth/credential-offer.js'
import {
  challengeHints,
  reasonOfToken,
  refusedToken,
  scopeChallenge,
} from '../../request/authenticate.js'
import {
  bytes,
  choice,
  type Credentials,
  empty,
  oauthError,
  page,
  problem,
  raw,
  type Route,
  reply,
  route,
} from '../../route.js'

const BODY_BYTES_MAX = 128 * 1024

const wallet = {
  tags: ['Verifiable credentials'],
  exposure: 'public',
  cors: 'public',
} as const
const ofTenant = z.object({ tenant_slug: z.string().max(63) })

const CredentialRequest = z
  .object({
    credential_identifier: z.string().optional(),
    credential_configuration_id: z.string().optional(),
    proofs: z.object({ jwt: z.array(z.string()) }),
  })
  .meta({
    id: 'CredentialRequest',
    description: 'Exactly one of credential_identifier and credential_configuration_id.',
  })
const CredentialResponse = z
  .object({
    credentials: z.array(z.object({ credential: z.string() })),
    notification_id: z.string(),
  })
  .meta({ id: 'CredentialResponse' })
const NotificationRequest = z
  .object({
    notification_id: z.string(),
    event: z.enum(['credential_accepted', 'credential_failure', 'credential_deleted']),
    event_description: z.string().optional(),
  })
  .meta({ id: 'CredentialNotification' })
const Nonce = z.object({ c_nonce: z.string() }).meta({ id: 'CredentialNonce' })
const OfferObject = z.record(z.string(), z.unknown()).meta({ id: 'CredentialOfferObject' })
const TypeMetadata = z.record(z.string(), z.unknown()).meta({ id: 'CredentialTypeMetadata' })

const notEnabled = problem(404, 'not-found', {
  detail: 'This URL does not belong to a credential issuer.',
})

/** RFC 6750 section 3.1: one error code for a token that is not valid, whatever the reason. */
const tokenRefused = oauthError(
  401,
  'invalid_token',
  (refused: Unauthenticated, { baseUrl }: { baseUrl: string }) => ({
    description: refused.description,
    logReason: reasonOfToken(refused),
    headers: refusedToken(refused, challengeHints(baseUrl, [])).headers as Record<string, string>,
  }),
)
const proofRefused = (code: ProofRefused['error']) =>
  oauthError(401, code, (refused: Unauthenticated, { baseUrl }: { baseUrl: string }) => ({
    description: refused.description,
    logReason: reasonOfToken(refused),
    headers: refusedToken(refused, challengeHints(baseUrl, [])).headers as Record<string, string>,
  }))

const tokenReplies = {
  not_enabled: notEnabled,
  no_token: oauthError(
    401,
    'invalid_token',
    (_outcome: { tag: 'no_token' }, { baseUrl }: { baseUrl: string }) => ({
      description: 'This operation needs an access token in the Authorization header.',
      logReason: 'token_missing',
      headers: { 'www-authenticate': `Bearer ${challengeHints(baseUrl, [])}` },
    }),
  ),
  refused: choice<Unauthenticated, Unauthenticated['error']>(({ error }) => error, {
    unauthorized: tokenRefused,
    policy_denied: tokenRefused,
    token_expired: tokenRefused,
    token_revoked: tokenRefused,
    delegation_expired: tokenRefused,
    invalid_dpop_proof: proofRefused('invalid_dpop_proof'),
    use_dpop_nonce: proofRefused('use_dpop_nonce'),
  }),
}

const describe = ({ description }: { description: string }) => ({ description })
const bad = (code: CredentialRefused['error']) => oauthError<CredentialRefused>(400, code, describe)
const badNotification = (code: NotificationRefused['error']) =>
  oauthError<NotificationRefused>(400, code, describe)

const credentialReplies = {
  issued: reply(
    200,
    CredentialResponse,
    ({
      credentials,
      notificationId,
    }: {
      credentials: readonly string[]
      notificationId: string
    }) => ({
      credentials: credentials.map((credential) => ({ credential })),
      notification_id: notificationId,
    }),
  ),
  credential_refused: choice<CredentialRefused, CredentialRefused['error']>(({ error }) => error, {
    invalid_credential_request: bad('invalid_credential_request'),
    unknown_credential_configuration: bad('unknown_credential_configuration'),
    unknown_credential_identifier: bad('unknown_credential_identifier'),
    invalid_proof: bad('invalid_proof'),
    invalid_nonce: bad('invalid_nonce'),
    invalid_encryption_parameters: bad('invalid_encryption_parameters'),
    credential_request_denied: bad('credential_request_denied'),
  }),
  scope_missing: oauthError(
    403,
    'insufficient_scope',
    ({ scopes }: { scopes: readonly string[] }, { baseUrl }: { baseUrl: string }) => ({
      description: `the token needs the scope ${scopes.join(' ')}`,
      headers: scopeChallenge(baseUrl, scopes),
    }),
  ),
  ...tokenReplies,
}

type SentRequest = {
  readonly credentials: Credentials
  readonly clientAddress: string
  readonly body: Uint8Array
}
const walletRequest = (
  { credentials, clientAddress, body }: SentRequest,
  tenantSlug: string | null,
): WalletRequest => ({ tenantSlug, ...credentials, address: clientAddress, body })

const presented = reply(200, OfferObject, ({ offer }: OfferPresented) => ({ ...offer }))
const unknownOffer = problem(404, 'not-found', {
  detail: 'The credential offer does not exist, has expired or was used.',
})

const offer = {
  ...wallet,
  method: 'GET',
  security: { scheme: 'anonymous' },
  summary: 'Read a credential offer by its URI',
  replies: { presented, unknown: unknownOffer },
} as const
const nonce = {
  ...wallet,
  method: 'POST',
  security: { scheme: 'anonymous' },
  replies: {
    made: reply(200, Nonce, ({ nonce: made }: { nonce: string }) => ({ c_nonce: made })),
    not_enabled: notEnabled,
  },
} as const
const credential = {
  ...wallet,
  method: 'POST',
  // The actor verifies the token, because its audience is the credential issuer.
  security: { scheme: 'client' },
  description:
    'OpenID4VCI section 8. The access token comes from a pre-authorized code or an authorization code. ' +
    'proofs.jwt has 1 to 10 key proofs with a c_nonce of the nonce endpoint. The response has one SD-JWT VC ' +
    'for each proof, bound to its key.',
  body: raw(['application/json'], { maxBytes: BODY_BYTES_MAX, schema: CredentialRequest }),
  replies: credentialReplies,
} as const
const notification = {
  ...wallet,
  method: 'POST',
  security: { scheme: 'client' },
  description: 'OpenID4VCI section 11. A repeated notification changes nothing.',
  body: raw(['application/json'], { maxBytes: BODY_BYTES_MAX, schema: NotificationRequest }),
  replies: {
    notified: empty(204),
    notification_refused: choice<NotificationRefused, NotificationRefused['error']>(
      ({ error }) => error,
      {
        invalid_notification_id: badNotification('invalid_notification_id'),
        invalid_notification_request: badNotification('invalid_notification_request'),
      },
    ),
    ...tokenReplies,
  },
} as const

const AT = '/credential-issuers/{tenant_slug}'
const OfferParams = z.object({ offer_handle: z.string().max(64) })

export const credentialIssuanceRoutes: readonly Route[] = [
  route(credentialIssuance, 'showCredentialOffer', {
    ...offer,
    path: '/credential-offers/{offer_handle}',
    operationId: 'readRootCredentialOffer',
    params: OfferParams,
    message: ({ params }) => ({ tenantSlug: null, handle: params.offer_handle }),
  }),
  route(credentialIssuance, 'showCredentialOffer', {
    ...offer,
    path: `${AT}/credential-offers/{offer_handle}`,
    operationId: 'readTenantCredentialOffer',
    params: ofTenant.extend(OfferParams.shape),
    message: ({ params }) => ({ tenantSlug: params.tenant_slug, handle: params.offer_handle }),
  }),
  route(credentialIssuance, 'showCredentialOffer', {
    ...wallet,
    method: 'GET',
    path: '/credential-offers/{offer_handle}/page',
    summary: 'Show a credential offer as a QR code',
    cors: 'configured',
    security: { scheme: 'browser' },
    errors: 'page',
    params: OfferParams,
    message: ({ params }) => ({ tenantSlug: undefined, handle: params.offer_handle }),
    replies: { presented: page(200, offerPage), unknown: page(404, offerEndedPage) },
  }),
  route(credentialIssuance, 'createCredentialNonce', {
    ...nonce,
    path: '/nonce',
    summary: 'Get a nonce for key proofs to the root issuer',
    message: () => ({ tenantSlug: null }),
  }),
  route(credentialIssuance, 'createCredentialNonce', {
    ...nonce,
    path: `${AT}/nonce`,
    operationId: 'createTenantCredentialNonce',
    summary: 'Get a nonce for key proofs to a tenant',
    params: ofTenant,
    message: ({ params }) => ({ tenantSlug: params.tenant_slug }),
  }),
  route(credentialIssuance, 'requestCredential', {
    ...credential,
    path: '/credential',
    summary: 'Request a credential of the root issuer',
    message: (request) => walletRequest(request, null),
  }),
  route(credentialIssuance, 'requestCredential', {
    ...credential,
    path: `${AT}/credential`,
    operationId: 'requestTenantCredential',
    summary: 'Request a credential of a tenant',
    params: ofTenant,
    message: (request) => walletRequest(request, request.params.tenant_slug),
  }),
  route(credentialIssuance, 'notifyRootCredentialIssuer', {
    ...notification,
    path: '/notification',
    summary: 'Report to the root issuer what became of credentials',
    message: (request) => walletRequest(request, null),
  }),
  route(credentialIssuance, 'notifyRootCredentialIssuer', {
    ...notification,
    path: `${AT}/notification`,
    operationId: 'notifyTenantCredentialIssuer',
    summary: 'Report to a tenant what became of credentials',
    params: ofTenant,
    message: (request) => walletRequest(request, request.params.tenant_slug),
  }),
  route(credentialIssuance, 'getCredentialTypeMetadata', {
    ...wallet,
    method: 'GET',
    path: '/credential-types/{credential_type}',
    summary: 'Type metadata of a credential (SD-JWT VC)',
    description: 'The document at the claim vct. The claim vct#integrity is its hash.',
    security: { scheme: 'anonymous' },
    params: z.object({ credential_type: z.string().max(64) }),
    message: ({ params }) => ({ id: params.credential_type }),
    replies: {
      found: bytes<{ body: Uint8Array; etag: string; maxAgeSecs: number }>(
        200,
        'application/json',
        ({ body, etag, maxAgeSecs }) => ({ body, etag, maxAgeSecs }),
        TypeMetadata,
      ),
      unknown: problem(404, 'not-found', { detail: 'There is no such credential type.' }),
    },
  }),
]
