/** Discovery metadata and JWK Sets (anonymous GET). */
import Negotiator from 'negotiator'
import { z } from 'zod'
import {
  discovery,
  type DocumentAtPath,
  type DocumentName,
  type TenantDocument,
} from '../../../actors/oauth/discovery/protocol.js'
import { bytes, problem, type Route, route } from '../../route.js'

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
  return route(discovery, 'serviceDocument', {
    ...anonymous,
    path,
    operationId,
    summary,
    message: ({ host }) => ({ name, host }),
    replies: { published: published(schema), keys_unavailable: unavailable },
  })
}

/** The metadata of an issuer with a path: clients insert or append it (RFC 8414 section 3.1, section 5). */
function documentAtPath(name: DocumentAtPath['name'], path: string, operationId: string): Route {
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

export const AcceptHeader = z.object({ accept: z.string().max(1024).optional() })

/** True if the client takes the signed form rather than JSON. */
export const prefers = (accept: string | undefined, signed: string): boolean =>
  accept !== undefined &&
  new Negotiator({ headers: { accept } }).mediaType(['application/json', signed]) === signed
const prefersSigned = (accept: string | undefined) => prefers(accept, 'application/jwt')

const issuerReplies = {
  published: bytes<{ body: Uint8Array; etag: string; maxAgeSecs: number }>(
    200,
    'application/json',
    ({ body, etag, maxAgeSecs }) => ({ body, etag, maxAgeSecs, headers: { vary: 'Accept' } }),
    Metadata,
  ),
  signed: bytes<{ token: string }>(
    200,
    'application/jwt',
    ({ token }) => ({ body: token, headers: { vary: 'Accept' } }),
    z.string(),
  ),
  keys_unavailable: unavailable,
  not_enabled: problem(404, 'not-found', {
    detail: 'This URL does not belong to a credential issuer.',
  }),
}
const issuerFacts = {
  ...anonymous,
  description:
    'With Accept: application/jwt the metadata is a signed JWT (OpenID4VCI section 12.2.3).',
  headers: AcceptHeader,
  replies: issuerReplies,
} as const

const rootIssuer = route(discovery, 'getCredentialIssuerMetadata', {
  ...issuerFacts,
  path: '/.well-known/openid-credential-issuer',
  summary: 'Credential issuer metadata',
  message: ({ headers }) => ({ tenantSlug: null, signed: prefersSigned(headers.accept) }),
})

const tenantIssuer = route(discovery, 'getCredentialIssuerMetadata', {
  ...issuerFacts,
  path: '/.well-known/openid-credential-issuer/credential-issuers/{tenant_slug}',
  operationId: 'getTenantCredentialIssuerMetadata',
  summary: 'Credential issuer metadata of a tenant',
  params: z.object({ tenant_slug: z.string().max(63) }),
  message: ({ params, headers }) => ({
    tenantSlug: params.tenant_slug,
    signed: prefersSigned(headers.accept),
  }),
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
  document('jwt-vc-issuer', '/.well-known/jwt-vc-issuer', 'getJwtVcIssuerMetadata', 'SD-JWT VC issuer metadata'),
  tenantDocument('jwt-vc-issuer', '/.well-known/jwt-vc-issuer/credential-issuers/{tenant_slug}', 'getTenantJwtVcIssuerMetadata', 'SD-JWT VC issuer metadata of a tenant'),
  tenantDocument('jwks', '/credential-issuers/{tenant_slug}/.well-known/jwks.json', 'getTenantKeySet', 'Key set of a tenant', KeySet),
  document('ssf-configuration', '/.well-known/ssf-configuration', 'getSsfConfiguration', 'Shared Signals transmitter metadata (SSF 1.0)'),
  documentAtPath('ssf-configuration', '/.well-known/ssf-configuration/{issuer_path}', 'getSsfConfigurationAtPath'),
  document('ssf-jwks', '/ssf/jwks.json', 'getSecurityEventKeySet', 'Keys of security events', KeySet),
  rootIssuer,
  tenantIssuer,
]
