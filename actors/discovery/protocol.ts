/** Metadata that clients and resource servers read. interface.md, Discovery and keys; decisions.md 8. */
import { address, type Ask } from '../../runtime/kernel/protocol.js'

export type DiscoveryProtocol = {
  document: Ask<{ readonly name: DocumentName }, PublishedDocument>
  tenantDocument: Ask<TenantDocument, PublishedDocument | IssuerNotEnabled>
}

export type DocumentName =
  | 'openid-configuration'
  | 'oauth-authorization-server'
  | 'oauth-protected-resource'
  | 'openid-credential-issuer'
  | 'jwt-vc-issuer'
  | 'jwks'

export type TenantDocument = {
  readonly name: 'openid-credential-issuer' | 'jwt-vc-issuer' | 'jwks'
  readonly tenantSlug: string
}

export type PublishedDocument = {
  readonly tag: 'published'
  /** The JSON text, ready to send. The same bytes carry the same tag. */
  readonly body: string
  /** Strong entity tag with its quotes (RFC 9110 section 8.8.3). */
  readonly etag: string
  readonly maxAgeSecs: number
}
/** The tenant is unknown or issues no credentials; one answer for both. */
export type IssuerNotEnabled = { readonly tag: 'not_enabled' }

export const discovery = address<DiscoveryProtocol>('discovery', ['document', 'tenantDocument'])
