/** Publishes discovery metadata. Documents without tenant content are encoded once. */
import { createHash } from 'node:crypto'
import { type ActorRef, defineActor, type MessageContext } from '../../../runtime/kernel/actor.js'
import type { Clock } from '../../../runtime/kernel/clock.js'
import type { Database } from '../../../storage/platform/sql.js'
import { type KeySet, signingKeys, type SigningKeysProtocol } from '../signing-keys/protocol.js'
import { supportedConfigurations } from '../../domain/credentials/configurations.js'
import { isSlug } from '../../domain/tenants/slugs.js'
import type { Tenant } from '../../domain/tenants/tenancy.js'
import { tenants, type TenantsProtocol } from '../../identity/users/tenants/protocol.js'
import type { TenancySettings } from '../../domain/tenants/resolution.js'
import { detailTypes } from './detail-types.js'
import {
  authorizationServer,
  credentialIssuer,
  type IssuerFacts,
  jwtVcIssuer,
  openidConfiguration,
  protectedResource,
  ssfConfiguration,
} from './documents.js'
import {
  type DiscoveryProtocol,
  type DocumentName,
  discovery,
  type KeysUnavailable,
  type NamedDocument,
  type PublishedDocument,
  type SignedMetadata,
} from './protocol.js'

const MAX_AGE_SECS = 300
/** OpenID4VCI section 12.2.3. */
const SIGNED_METADATA_TYPE = 'openidvci-issuer-metadata+jwt'

type DiscoveryNeeds = {
  readonly keys: ActorRef<SigningKeysProtocol>
  readonly tenants: ActorRef<TenantsProtocol>
  readonly database: Database
  readonly clock: Clock
  readonly tenancy: TenancySettings
  readonly facts: IssuerFacts
}

/** The documents with `authorization_details_types_supported` (RFC 9396 section 10). */
const METADATA = {
  'openid-configuration': openidConfiguration,
  'oauth-authorization-server': authorizationServer,
} as const

export const discoveryActor = defineActor<DiscoveryProtocol, DiscoveryNeeds>({
  address: discovery,
  asks: { keys: signingKeys, tenants },
  mailbox: { capacity: 8192, inflightMax: 1024 },
  create: ({ keys, tenants, facts, ...needs }) => {
    const detailTypesAt = detailTypes({ ...needs, tenants, credentials: facts.credentials })
    const configurations = facts.credentials ? supportedConfigurations(facts.baseUrl) : null
    const documents: Record<Exclude<DocumentName, 'jwks' | 'ssf-jwks'>, PublishedDocument> = {
      'openid-configuration': publish(openidConfiguration(facts)),
      'oauth-authorization-server': publish(authorizationServer(facts)),
      'oauth-protected-resource': publish(protectedResource(facts)),
      'openid-credential-issuer': publish(credentialIssuer(facts, null, null)),
      'jwt-vc-issuer': publish(jwtVcIssuer(facts, null)),
      'ssf-configuration': publish(ssfConfiguration(facts)),
    }

    const issuingRoot = publish(credentialIssuer(facts, null, configurations))

    async function keySet(
      asked: Promise<KeySet | KeysUnavailable>,
    ): Promise<PublishedDocument | KeysUnavailable> {
      const found = await asked
      if (found.tag === 'keys_unavailable') return { tag: 'keys_unavailable' }
      const { bytes, etag, maxAgeSecs } = found
      return { tag: 'published', body: bytes, etag, maxAgeSecs }
    }

    /** The tenant, if it is an active credential issuer. */
    async function issuing(
      tenantSlug: string,
      context: MessageContext,
    ): Promise<Tenant | undefined> {
      if (!isSlug(tenantSlug)) return undefined
      const resolved = await tenants.resolve({ tenantSlug }, context)
      if (resolved.tag !== 'resolved') return undefined
      const { tenant } = resolved
      return tenant.credentialIssuerEnabled && tenant.status === 'active' ? tenant : undefined
    }

    const ownPath = new URL(facts.issuer).pathname.slice(1)

    /** The tenant whose credentials the root issuer offers, if it is an active issuer. */
    async function rootTenant(context: MessageContext): Promise<Tenant | undefined> {
      const { rootTenantSlug } = facts
      if (rootTenantSlug === undefined || configurations === null) return undefined
      return issuing(rootTenantSlug, context)
    }

    const rootIssuer = (tenant: Tenant | undefined) =>
      tenant === undefined ? documents['openid-credential-issuer'] : issuingRoot

    async function sign(
      { body }: PublishedDocument,
      tenant: Tenant | undefined,
      context: MessageContext,
    ): Promise<SignedMetadata | KeysUnavailable> {
      const metadata = JSON.parse(Buffer.from(body).toString()) as Record<string, unknown>
      const iss = metadata['credential_issuer']
      const claims = { iss, sub: iss, iat: needs.clock.nowSecs(), ...metadata }
      const wanted = { typ: SIGNED_METADATA_TYPE, claims: JSON.stringify(claims) }
      const signed =
        tenant === undefined
          ? await keys.sign({ ...wanted, algorithm: 'ES256' }, context)
          : await keys.signForTenant({ ...wanted, tenantId: tenant.id }, context)
      return signed.tag === 'signed'
        ? { tag: 'signed', token: signed.token }
        : { tag: 'keys_unavailable' }
    }

    async function serviceDocument({ name, host }: NamedDocument, context: MessageContext) {
      if (name === 'jwks') return keySet(keys.keySet(null, context))
      if (name === 'ssf-jwks') return keySet(keys.securityEventKeySet(null, context))
      if (name === 'openid-credential-issuer') return rootIssuer(await rootTenant(context))
      if (name === 'jwt-vc-issuer') {
        const tenant = await rootTenant(context)
        return tenant === undefined ? documents[name] : publish(jwtVcIssuer(facts, null, tenant))
      }
      if (name !== 'openid-configuration' && name !== 'oauth-authorization-server')
        return documents[name]
      const types = await detailTypesAt(host, context)
      return types === null
        ? documents[name]
        : publish({ ...METADATA[name](facts), authorization_details_types_supported: types })
    }

    return {
      serviceDocument,

      async documentAtPath(message, context) {
        return ownPath !== '' && message.issuerPath === ownPath
          ? serviceDocument(message, context)
          : { tag: 'not_enabled' }
      },

      // Also the operation `getTenantCredentialIssuerMetadata`.
      async getCredentialIssuerMetadata({ tenantSlug, signed }, context) {
        const tenant =
          tenantSlug === null ? await rootTenant(context) : await issuing(tenantSlug, context)
        let document = rootIssuer(tenant)
        if (tenantSlug !== null) {
          if (tenant === undefined) return { tag: 'not_enabled' }
          document = publish(credentialIssuer(facts, tenant, configurations))
        }
        return signed ? sign(document, tenant, context) : document
      },

      async tenantDocument({ name, tenantSlug }, context) {
        const tenant = await issuing(tenantSlug, context)
        if (tenant === undefined) return { tag: 'not_enabled' }
        switch (name) {
          case 'jwks':
            return keySet(keys.tenantKeySet({ tenantId: tenant.id }, context))
          case 'openid-credential-issuer':
            return publish(credentialIssuer(facts, tenant, configurations))
          case 'jwt-vc-issuer':
            return publish(jwtVcIssuer(facts, tenant))
        }
      },
    }
  },
})

function publish(metadata: object): PublishedDocument {
  const body = Buffer.from(JSON.stringify(metadata))
  const tag = createHash('sha256').update(body).digest('base64url').slice(0, 22)
  return { tag: 'published', body, etag: `"${tag}"`, maxAgeSecs: MAX_AGE_SECS }
}
