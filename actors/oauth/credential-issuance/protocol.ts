/** Messages of credential issuance (OpenID4VCI 1.0, SD-JWT VC). See docs/reference/oauth.md. */
import { address, type Ask } from '../../../runtime/kernel/protocol.js'
import type { Caller } from '../../domain/audit.js'
import type { CredentialConfigurationId } from '../../domain/credentials/catalogue.js'
import type { IdempotencyClaim, IdempotencyRefused } from '../../domain/idempotency.js'
import type { ListCursor, Page } from '../../domain/paging.js'
import type { PageTenant } from '../../domain/tenants/branding.js'
import type { Unauthenticated } from '../tokens/protocol.js'

export type CredentialIssuanceProtocol = {
  createCredentialOffer: Ask<CreateOffer, OfferCreated | OfferRefused | IdempotencyRefused>
  listCredentialOffers: Ask<ListPage, OffersListed>
  getCredentialOffer: Ask<OneOffer, OfferFound | OfferUnknown>
  /** Withdraws an offer. Its code and the tokens from it request nothing any more. */
  deleteCredentialOffer: Ask<OneOffer, { readonly tag: 'deleted' } | OfferUnknown>
  /** The offer at its `credential_offer_uri` (OpenID4VCI section 4.1.3). Anonymous: the URL is the secret. */
  showCredentialOffer: Ask<PresentOffer, OfferPresented | OfferUnknown>
  listIssuedCredentials: Ask<ListPage, IssuedListed>
  revokeIssuedCredential: Ask<OneIssued, IssuedFound | IssuedUnknown>
  /** The nonce endpoint (OpenID4VCI section 7). */
  createCredentialNonce: Ask<OfIssuer, NonceMade | IssuerNotEnabled>
  /** The credential endpoint (OpenID4VCI section 8). */
  requestCredential: Ask<
    WalletRequest,
    | CredentialsIssued
    | CredentialRefused
    | NoToken
    | ScopeMissing
    | Unauthenticated
    | IssuerNotEnabled
  >
  /** The notification endpoint (OpenID4VCI section 11). */
  notifyRootCredentialIssuer: Ask<
    WalletRequest,
    Notified | NotificationRefused | NoToken | Unauthenticated | IssuerNotEnabled
  >
  /** The document at a `vct` (SD-JWT VC section 6). */
  getCredentialTypeMetadata: Ask<{ readonly id: string }, TypeMetadataFound | TypeUnknown>
}

export type OfferGrantType = 'pre-authorized_code' | 'authorization_code'
export type OfferStatus = 'offered' | 'redeemed' | 'issued' | 'expired'

export type CreateOffer = {
  readonly caller: Caller
  readonly configurationId: CredentialConfigurationId
  readonly userId: string | null
  readonly delegationId: string | null
  readonly grant: OfferGrantType
  readonly txCode: boolean
  readonly idempotency: IdempotencyClaim | null
}

export type OfferRecord = {
  readonly id: string
  readonly tenantId: string
  readonly configurationId: string
  readonly userId: string
  readonly delegationId: string | null
  readonly grant: OfferGrantType
  readonly status: OfferStatus
  readonly createdAt: Date
  readonly expiresAt: Date
}

/** The members with the secret of an offer. Returned once. */
export type OfferSecrets = {
  readonly uri: string
  /** OpenID4VCI section 4.1.1. */
  readonly offer: Readonly<Record<string, unknown>>
  readonly deepLink: string
  readonly pageUrl: string
  readonly txCode: string | null
}

export type OfferCreated = {
  readonly tag: 'created'
  readonly record: OfferRecord
  /** Null in an idempotent replay. */
  readonly secrets: OfferSecrets | null
  readonly replayed: boolean
}
export type OfferRefused =
  /** The deployment or the tenant does not issue credentials. */
  | { readonly tag: 'issuance_off' }
  | { readonly tag: 'unknown_subject'; readonly detail: string }
  /** The person has no address that they proved. */
  | { readonly tag: 'email_not_verified' }
  | { readonly tag: 'invalid'; readonly pointer: string; readonly detail: string }

export type ListPage = Page & {
  readonly caller: Caller
}
export type OffersListed = {
  readonly tag: 'listed'
  readonly offers: readonly OfferRecord[]
  readonly next: ListCursor | null
}
export type OneOffer = { readonly caller: Caller; readonly offerId: string }
export type OfferFound = { readonly tag: 'found'; readonly record: OfferRecord }
export type OfferUnknown = { readonly tag: 'unknown' }

/** `tenantSlug` is null for the root issuer, and undefined if the URL names no issuer. */
export type PresentOffer = {
  readonly tenantSlug: string | null | undefined
  readonly handle: string
}
export type OfferPresented = {
  readonly tag: 'presented'
  readonly offer: Readonly<Record<string, unknown>>
  readonly deepLink: string
  readonly needsTxCode: boolean
  readonly configurationId: CredentialConfigurationId
  readonly tenant: PageTenant
}

/** An issued credential without its claims, which are not stored. */
export type IssuedRecord = {
  readonly id: string
  readonly offerId: string | null
  readonly userId: string
  readonly delegationId: string | null
  readonly configurationId: string
  readonly status: 'valid' | 'revoked'
  readonly statusList: { readonly uri: string; readonly idx: number }
  readonly issuedAt: Date
  readonly expiresAt: Date
  readonly revokedAt: Date | null
  readonly revokedReason: string | null
}
export type IssuedListed = {
  readonly tag: 'listed'
  readonly credentials: readonly IssuedRecord[]
  readonly next: ListCursor | null
}
export type OneIssued = { readonly caller: Caller; readonly credentialId: string }
export type IssuedFound = { readonly tag: 'found'; readonly record: IssuedRecord }
export type IssuedUnknown = { readonly tag: 'unknown' }

/** Null for the root issuer. */
export type OfIssuer = { readonly tenantSlug: string | null }
export type NonceMade = { readonly tag: 'made'; readonly nonce: string }
/** The tenant is unknown or not a credential issuer. Both get the same response. */
export type IssuerNotEnabled = { readonly tag: 'not_enabled' }

/** A request of a wallet with an access token. */
export type WalletRequest = OfIssuer & {
  readonly authorization: string | null
  readonly dpopProof: string | null
  readonly httpMethod: string
  readonly httpUrl: string
  /** Address of the client behind trusted proxies. */
  readonly address: string
  /** The body as sent. */
  readonly body: Uint8Array
}
export type CredentialsIssued = {
  readonly tag: 'issued'
  /** SD-JWT VCs, in the order of the proofs. */
  readonly credentials: readonly string[]
  readonly notificationId: string
}
/** OpenID4VCI section 8.3.1.2. */
export type CredentialError =
  | 'invalid_credential_request'
  | 'unknown_credential_configuration'
  | 'unknown_credential_identifier'
  | 'invalid_proof'
  | 'invalid_nonce'
  | 'invalid_encryption_parameters'
  | 'credential_request_denied'
export type CredentialRefused = {
  readonly tag: 'credential_refused'
  readonly error: CredentialError
  readonly description: string
}

export function credentialRefused(error: CredentialError, description: string): CredentialRefused {
  return { tag: 'credential_refused', error, description }
}

/** The request has no access token (RFC 6750 section 3.1). */
export type NoToken = { readonly tag: 'no_token' }
export type ScopeMissing = { readonly tag: 'scope_missing'; readonly scopes: readonly string[] }

export type Notified = { readonly tag: 'notified' }
export type NotificationRefused = {
  readonly tag: 'notification_refused'
  readonly error: 'invalid_notification_id' | 'invalid_notification_request'
  readonly description: string
}

export type TypeMetadataFound = {
  readonly tag: 'found'
  readonly body: Uint8Array
  readonly etag: string
  readonly maxAgeSecs: number
}
export type TypeUnknown = { readonly tag: 'unknown' }

export const credentialIssuance = address<CredentialIssuanceProtocol>('credential-issuance', {
  idempotent: [
    'listCredentialOffers',
    'getCredentialOffer',
    'showCredentialOffer',
    'listIssuedCredentials',
    'createCredentialNonce',
    'getCredentialTypeMetadata',
  ],
})
