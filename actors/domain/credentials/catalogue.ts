/** The verifiable credentials of the service (OpenID4VCI, SD-JWT VC). See docs/reference/oauth.md. */

/** The ids of the credential configurations. Each is also the scope that requests it (OpenID4VCI section 5.1.2). */
export const CREDENTIAL_CONFIGURATIONS = [
  'TenantMembership',
  'VerifiedEmail',
  'AgentDelegation',
] as const
export type CredentialConfigurationId = (typeof CREDENTIAL_CONFIGURATIONS)[number]

/** Scopes of authorization requests. A token with one can only request that credential. */
export const CREDENTIAL_SCOPES: readonly string[] = CREDENTIAL_CONFIGURATIONS

/** The type of `authorization_details` for credentials (OpenID4VCI section 5.1.1). */
export const CREDENTIAL_DETAILS_TYPE = 'openid_credential'

export function isCredentialConfiguration(id: unknown): id is CredentialConfigurationId {
  return (CREDENTIAL_CONFIGURATIONS as readonly unknown[]).includes(id)
}

/** A credential issuer: the service (null) or one of its tenants. */
export type CredentialIssuer = { readonly slug: string; readonly name: string } | null

/** The credential issuer identifier (OpenID4VCI section 12.2.1). */
export function credentialIssuerIdentifier(
  baseUrl: string,
  tenant: Pick<NonNullable<CredentialIssuer>, 'slug'> | null,
): string {
  return tenant === null ? baseUrl : `${baseUrl}/credential-issuers/${tenant.slug}`
}

/** The identifiers that may name a tenant as issuer: its own, and the root for the tenant of the root. */
export function credentialIssuersOf(
  baseUrl: string,
  slug: string,
  rootSlug: string | undefined,
): readonly string[] {
  const own = credentialIssuerIdentifier(baseUrl, { slug })
  return slug === rootSlug ? [own, baseUrl] : [own]
}

/** The `vct` of a configuration: the URL of its type metadata (SD-JWT VC section 6). */
export function credentialTypeUrl(baseUrl: string, id: CredentialConfigurationId): string {
  return `${baseUrl}/credential-types/${id}`
}

/** The `client_id` for an unknown wallet with a pre-authorized code (OpenID4VCI section 6.1). */
export const ANONYMOUS_CLIENT = 'anonymous'
