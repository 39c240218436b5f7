/** Discovery metadata and JWK Sets (anonymous GET). */
import { z } from 'zod'
import {
  discovery,
  type DocumentName,
  type TenantDocument,
} from '../../../actors/oauth/discovery/protocol.js'
import { bytes, json, oauthError, problem, type Route, route } from '../../route.js'

const KeySet = z
  .object({ keys: z.array(z.record(z.string(), z.unknown())) })
  .meta({ id: 'JsonWebKeySet' })
const Metadata = z.record(z.string(), z.unknown()).meta({ id: 'Metadata' })

const anonymous = {
  method: 'GET',
  tags: ['Discovery and keys'],
  exposure: 'public',
  security: { scheme: 'anonymous' },
  cors: 'public',
} as const

const unavailable = problem(500, 'server-error', { detail: 'The key set could not be built.' })

const published = (schema: z.ZodType) =>
  bytes<{ body: Uint8Array; etag: string; maxAgeSecs: number }>(
    200,
    'application/json',
    ({ body, etag, maxAgeSecs }) => ({ body, etag, maxAgeSecs }),
    schema,
  )

function document(
  name: DocumentName,
  path: string,
  operationId: string,
  summary: string,
  schema: z.ZodType = Metadata,
): Route {
  return route(discovery, 'document', {
    ...anonymous,
    path,
    operationId,
    summary,
    message: ({ host }) => ({ name, host }),
    replies: { published: published(schema), keys_unavailable: unavailable },
  })
}

/** The metadata of an issuer with a path: clients insert or append it (RFC 8414 section 3.1, section 5). */
function documentAtPath(
  name: 'openid-configuration' | 'oauth-authorization-server',
  path: string,
  operationId: string,
): Route {
  return route(discovery, 'documentAtPath', {
    ...anonymous,
    path,
    operationId,
    summary: 'The same document, at the address of an issuer with a path',
    params: z.object({ issuer_path: z.string().max(255) }),
    message: ({ host, params }) => ({ name, host, issuerPath: params.issuer_path }),
    replies: {
      published: published(Metadata),
      keys_unavailable: unavailable,
      not_enabled: problem(404, 'not-found', {
        detail: 'The path does not belong to the issuer.',
      }),
    },
  })
}

function tenantDocument(
  name: TenantDocument['name'],
  path: string,
  operationId: string,
  summary: string,
  schema: z.ZodType = Metadata,
): Route {
  return route(discovery, 'tenantDocument', {
    ...anonymous,
    path,
    operationId,
    summary,
    params: z.object({ tenant_slug: z.string().max(63) }),
    message: ({ params }) => ({ name, tenantSlug: params.tenant_slug }),
    replies: {
      published: published(schema),
      keys_unavailable: unavailable,
      not_enabled: problem(404, 'not-found', {
        detail: 'This URL does not belong to a credential issuer.',
      }),
    },
  })
}

/** OpenID4VCI section 8.3.1.2: the metadata lists no credential configuration. */
const credential = {
  method: 'POST',
  tags: ['Discovery and keys'],
  exposure: 'public',
  security: { scheme: 'bearer' },
  body: json(z.record(z.string(), z.unknown()).meta({ id: 'CredentialRequest' })),
  replies: {
    unknown_configuration: oauthError(400, 'unknown_credential_configuration', {
      description: 'use a configuration of credential_configurations_supported of the issuer',
    }),
    not_enabled: problem(404, 'not-found', {
      detail: 'This URL does not belong to a credential issuer.',
    }),
  },
} as const

const rootCredential = route(discovery, 'requestCredential', {
  ...credential,
  path: '/credential',
  operationId: 'requestCredential',
  summary: 'Request a credential of the root issuer',
  message: () => ({ tenantSlug: null }),
})

const tenantCredential = route(discovery, 'requestCredential', {
  ...credential,
  path: '/credential-issuers/{tenant_slug}/credential',
  operationId: 'requestTenantCredential',
  summary: 'Request a credential of a tenant',
  params: z.object({ tenant_slug: z.string().max(63) }),
  message: ({ params }) => ({ tenantSlug: params.tenant_slug }),
})

// biome-ignore format: one document a line
export const discoveryRoutes: readonly Route[] = [
  document('jwks', '/.well-known/jwks.json', 'getKeySet', 'All verifiable signing keys of the issuer', KeySet),
  document('openid-configuration', '/.well-known/openid-configuration', 'getOpenidConfiguration', 'OpenID Connect discovery document'),
  document('oauth-authorization-server', '/.well-known/oauth-authorization-server', 'getAuthorizationServerMetadata', 'Authorization server metadata (RFC 8414)'),
  documentAtPath('openid-configuration', '/.well-known/openid-configuration/{issuer_path}', 'getOpenidConfigurationAtPath'),
  documentAtPath('openid-configuration', '/{issuer_path}/.well-known/openid-configuration', 'getOpenidConfigurationBelowPath'),
  documentAtPath('oauth-authorization-server', '/.well-known/oauth-authorization-server/{issuer_path}', 'getAuthorizationServerMetadataAtPath'),
  document('oauth-protected-resource', '/.well-known/oauth-protected-resource', 'getProtectedResourceMetadata', 'Protected resource metadata (RFC 9728)'),
  document('openid-credential-issuer', '/.well-known/openid-credential-issuer', 'getCredentialIssuerMetadata', 'Credential issuer metadata'),
  document('jwt-vc-issuer', '/.well-known/jwt-vc-issuer', 'getJwtVcIssuerMetadata', 'SD-JWT VC issuer metadata'),
  tenantDocument('openid-credential-issuer', '/.well-known/openid-credential-issuer/credential-issuers/{tenant_slug}', 'getTenantCredentialIssuerMetadata', 'Credential issuer metadata of a tenant'),
  tenantDocument('jwt-vc-issuer', '/.well-known/jwt-vc-issuer/credential-issuers/{tenant_slug}', 'getTenantJwtVcIssuerMetadata', 'SD-JWT VC issuer metadata of a tenant'),
  tenantDocument('jwks', '/credential-issuers/{tenant_slug}/.well-known/jwks.json', 'getTenantKeySet', 'Key set of a tenant', KeySet),
  rootCredential,
  tenantCredential,
]
