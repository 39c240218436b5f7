/** Messages of discovery: metadata for clients and resource servers. */
import { address, type Ask } from '../../../runtime/kernel/protocol.js'

export type DiscoveryProtocol = {
  serviceDocument: Ask<NamedDocument, PublishedDocument | KeysUnavailable>
  /** The metadata at the addresses of an issuer with a path (RFC 8414 section 3.1). */
  documentAtPath: Ask<DocumentAtPath, PublishedDocument | IssuerNotEnabled | KeysUnavailable>
  /** The metadata of a credential issuer, as JSON or signed (OpenID4VCI section 12.2.2). */
  getCredentialIssuerMetadata: Ask<
    IssuerMetadataQuery,
    PublishedDocument | SignedMetadata | IssuerNotEnabled | KeysUnavailable
  >
  tenantDocument: Ask<TenantDocument, PublishedDocument | IssuerNotEnabled | KeysUnavailable>
}

export type IssuerMetadataQuery = {
  /** Null for the root issuer. */
  readonly tenantSlug: string | null
  /** True if the client prefers the signed form. */
  readonly signed: boolean
}
/** The signed form (OpenID4VCI section 12.2.3): a JWT with the metadata as claims. */
export type SignedMetadata = { readonly tag: 'signed'; readonly token: string }

export type DocumentName =
  | 'openid-configuration'
  | 'oauth-authorization-server'
  | 'oauth-protected-resource'
  | 'openid-credential-issuer'
  | 'jwt-vc-issuer'
  | 'jwks'
  | 'ssf-configuration'
  | 'ssf-jwks'

/** `host` is the Host header, which may name a tenant. */
export type NamedDocument = { readonly name: DocumentName; readonly host: string }

export type DocumentAtPath = NamedDocument & {
  readonly name: 'openid-configuration' | 'oauth-authorization-server' | 'ssf-configuration'
  /** The path of the issuer, without its first slash. */
  readonly issuerPath: string
}

export type TenantDocument = {
  readonly name: 'openid-credential-issuer' | 'jwt-vc-issuer' | 'jwks'
  readonly tenantSlug: string
}

export type PublishedDocument = {
  readonly tag: 'published'
  /** UTF-8 JSON, ready to send. Equal bytes have equal tags. */
  readonly body: Uint8Array
  /** Strong entity tag with its quotes (RFC 9110 section 8.8.3). */
  readonly etag: string
  readonly maxAgeSecs: number
}
/** The key set could not be built. */
export type KeysUnavailable = { readonly tag: 'keys_unavailable' }
/** There is no such issuer: the tenant is unknown or issues no credentials, or the path is another one. */
export type IssuerNotEnabled = { readonly tag: 'not_enabled' }

export const discovery = address<DiscoveryProtocol>('discovery', {
  idempotent: [
    'serviceDocument',
    'documentAtPath',
    'getCredentialIssuerMetadata',
    'tenantDocument',
  ],
})
