/** Publishes discovery metadata. Documents without tenant content are encoded once. */
import { createHash } from 'node:crypto'
import { type ActorRef, defineActor, type MessageContext } from '../../../runtime/kernel/actor.js'
import type { Clock } from '../../../runtime/kernel/clock.js'
import type { Database } from '../../../storage/platform/sql.js'
import { signingKeys, type SigningKeysProtocol } from '../signing-keys/protocol.js'
import { supportedConfigurations } from '../../domain/credentials/configurations.js'
import { isSlug } from '../../domain/tenants/slugs.js'
import type { Tenant } from '../../domain/tenants/tenancy.js'
import { tenants, type TenantsProtocol } from '../../identity/tenants/protocol.js'
import type { TenancySettings } from '../../domain/tenants/resolution.js'
import { detailTypes } from './detail-types.js'
import {
  authorizationServer,
  credentialIssuer,
  type IssuerFacts,
  jwtVcIssuer,
  openidConfiguration,
  protectedResource,
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

export type DiscoveryNeeds = {
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
    const documents: Record<Exclude<DocumentName, 'jwks'>, PublishedDocument> = {
      'openid-configuration': publish(openidConfiguration(facts)),
      'oauth-authorization-server': publish(authorizationServer(facts)),
      'oauth-protected-resource': publish(protectedResource(facts)),
      'openid-credential-issuer': publish(credentialIssuer(facts, null, null)),
      'jwt-vc-issuer': publish(jwtVcIssuer(facts, null)),
    }

    const issuingRoot = publish(credentialIssuer(facts, null, configurations))

    async function keySet(context: MessageContext): Promise<PublishedDocument | KeysUnavailable> {
      const found = await keys.keySet(null, context)
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

    /** The root issuer issues the credentials of the default tenant. */
    async function rootIssuer(context: MessageContext): Promise<PublishedDocument> {
      const { defaultTenantSlug } = needs.tenancy
      if (defaultTenantSlug === undefined || configurations === null)
        return documents['openid-credential-issuer']
      const issues = (await issuing(defaultTenantSlug, context)) !== undefined
      return issues ? issuingRoot : documents['openid-credential-issuer']
    }

    async function sign(
      { body }: PublishedDocument,
      context: MessageContext,
    ): Promise<SignedMetadata | KeysUnavailable> {
      const metadata = JSON.parse(Buffer.from(body).toString()) as Record<string, unknown>
      const claims = {
        iss: metadata['credential_issuer'],
        sub: metadata['credential_issuer'],
        iat: needs.clock.nowSecs(),
        ...metadata,
      }
      const signed = await keys.sign(
        { typ: SIGNED_METADATA_TYPE, claims: JSON.stringify(claims), algorithm: 'ES256' },
        context,
      )
      return signed.tag === 'signed'
        ? { tag: 'signed', token: signed.token }
        : { tag: 'keys_unavailable' }
    }

    async function documentOf({ name, host }: NamedDocument, context: MessageContext) {
      if (name === 'jwks') return keySet(context)
      if (name === 'openid-credential-issuer') return rootIssuer(context)
      if (name !== 'openid-configuration' && name !== 'oauth-authorization-server')
        return documents[name]
      const types = await detailTypesAt(host, context)
      return types === null
        ? documents[name]
        : publish({ ...METADATA[name](facts), authorization_details_types_supported: types })
    }

    return {
      document: documentOf,

      documentAtPath: async (message, context) =>
        ownPath !== '' && message.issuerPath === ownPath
          ? documentOf(message, context)
          : { tag: 'not_enabled' },

      async issuerMetadata({ tenantSlug, signed }, context) {
        let document: PublishedDocument
        if (tenantSlug === null) document = await rootIssuer(context)
        else {
          const tenant = await issuing(tenantSlug, context)
          if (tenant === undefined) return { tag: 'not_enabled' }
          document = publish(credentialIssuer(facts, tenant, configurations))
        }
        return signed ? sign(document, context) : document
      },

      async tenantDocument({ name, tenantSlug }, context) {
        const tenant = await issuing(tenantSlug, context)
        if (tenant === undefined) return { tag: 'not_enabled' }
        switch (name) {
          // Tenants have no keys of their own: the service signs their credentials.
          case 'jwks':
            return keySet(context)
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
