/** Messages of discovery: metadata for clients and resource servers. */
import { address, type Ask } from '../../../runtime/kernel/protocol.js'

export type DiscoveryProtocol = {
  document: Ask<NamedDocument, PublishedDocument | KeysUnavailable>
  /** The metadata at the addresses of an issuer with a path (RFC 8414 section 3.1). */
  documentAtPath: Ask<DocumentAtPath, PublishedDocument | IssuerNotEnabled | KeysUnavailable>
  /** A request to a credential endpoint (OpenID4VCI section 8). No configuration is offered yet. */
  requestCredential: Ask<CredentialRequest, ConfigurationUnknown | IssuerNotEnabled>
  tenantDocument: Ask<TenantDocument, PublishedDocument | IssuerNotEnabled | KeysUnavailable>
}

export type DocumentName =
  | 'openid-configuration'
  | 'oauth-authorization-server'
  | 'oauth-protected-resource'
  | 'openid-credential-issuer'
  | 'jwt-vc-issuer'
  | 'jwks'

/** `host` is the Host header, which may name a tenant. */
export type NamedDocument = { readonly name: DocumentName; readonly host: string }

export type DocumentAtPath = NamedDocument & {
  readonly name: 'openid-configuration' | 'oauth-authorization-server'
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
/** Null for the root issuer. */
export type CredentialRequest = { readonly tenantSlug: string | null }
/** The issuer's metadata lists no such configuration (OpenID4VCI section 8.3.1.2). */
export type ConfigurationUnknown = { readonly tag: 'unknown_configuration' }
/** There is no such issuer: the tenant is unknown or issues no credentials, or the path is another one. */
export type IssuerNotEnabled = { readonly tag: 'not_enabled' }

export const discovery = address<DiscoveryProtocol>('discovery', [
  'document',
  'documentAtPath',
  'tenantDocument',
])
