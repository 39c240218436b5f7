/** Request and response bodies of the identity-provider and domain routes. */
import { z } from 'zod'
import type { DomainRecord } from '../../../actors/identity/identity-providers/protocol.js'
import { ChangedName, ChosenName as Name } from '../../../actors/domain/entities/names.js'
import { idText } from '../../request/ids.js'
import { presenter } from '../../response/presenter.js'

const Url = z.string().min(1).max(2048)
const Method = z.enum(['client_secret_basic', 'client_secret_post', 'none'])
const Scopes = z.array(z.string().regex(/^[!#-[\]-~]{1,64}$/)).max(20)
const Acrs = z.array(z.string().min(1).max(255)).max(20)
const Secret = z.string().min(1).max(1024)

const members = {
  name: Name.meta({ description: 'Name on the sign-in page.' }),
  issuer: Url,
  client_id: z.string().min(1).max(255),
  client_secret: Secret.optional().meta({ description: 'Sealed; never shown again.' }),
  token_endpoint_auth_method: Method.default('client_secret_basic'),
  scopes: Scopes.default(['openid', 'email', 'profile']),
  authorization_endpoint: Url.nullable().default(null),
  token_endpoint: Url.nullable().default(null),
  userinfo_endpoint: Url.nullable().default(null),
  jwks_uri: Url.nullable().default(null),
  trusted_acr_values: Acrs.default([]).meta({
    description: 'acr values that count as two factors (aal2). No other value does.',
  }),
  provision: z
    .boolean()
    .default(true)
    .meta({ description: 'Users of a verified domain are provisioned at their first sign-in.' }),
  active: z.boolean().default(true),
}
export const CreateProvider = z.object(members).meta({ id: 'CreateSsoProvider' })
export const UpdateProvider = z
  .object({
    name: ChangedName.optional(),
    issuer: Url.optional(),
    client_id: z.string().min(1).max(255).optional(),
    client_secret: Secret.optional(),
    token_endpoint_auth_method: Method.optional(),
    scopes: Scopes.optional(),
    authorization_endpoint: Url.nullable().optional(),
    token_endpoint: Url.nullable().optional(),
    userinfo_endpoint: Url.nullable().optional(),
    jwks_uri: Url.nullable().optional(),
    trusted_acr_values: Acrs.optional(),
    provision: z.boolean().optional(),
    active: z.boolean().optional(),
  })
  .meta({ id: 'UpdateSsoProvider', description: 'Absent members stay unchanged.' })

export const Provider = z
  .object({
    id: z.uuid(),
    tenant_id: z.uuid(),
    name: z.string(),
    issuer: z.string(),
    client_id: z.string(),
    has_client_secret: z.boolean(),
    token_endpoint_auth_method: Method,
    scopes: z.array(z.string()),
    authorization_endpoint: z.string().nullable(),
    token_endpoint: z.string().nullable(),
    userinfo_endpoint: z.string().nullable(),
    jwks_uri: z.string().nullable(),
    trusted_acr_values: z.array(z.string()),
    provision: z.boolean(),
    active: z.boolean(),
    redirect_uri: z.string().meta({ description: 'To be registered at the provider.' }),
    created_at: z.iso.datetime(),
    updated_at: z.iso.datetime(),
  })
  .meta({ id: 'SsoProvider' })
export const providerJson = presenter(Provider)

export const CreateDomain = z
  .object({
    domain: z.string().min(1).max(253),
    sso_provider_id: idText().nullable().default(null),
    auto_join: z.boolean().default(false),
  })
  .meta({ id: 'CreateDomain' })
export const UpdateDomain = z
  .object({
    sso_provider_id: idText().nullable().optional(),
    auto_join: z.boolean().optional(),
  })
  .meta({ id: 'UpdateDomain', description: 'Absent members stay unchanged.' })

export const Domain = z
  .object({
    id: z.uuid(),
    tenant_id: z.uuid(),
    domain: z.string().meta({ description: 'Lower case, in A-labels.' }),
    status: z.enum(['pending', 'verified']),
    verification: z
      .object({ type: z.literal('dns_txt'), name: z.string(), value: z.string() })
      .meta({ description: 'The TXT record that verifies the domain.' }),
    sso_provider_id: z.uuid().nullable().meta({
      description: 'The provider that addresses of the domain are routed to, trusted for them.',
    }),
    auto_join: z
      .boolean()
      .meta({ description: 'Users who sign in through the domain join the organization.' }),
    created_at: z.iso.datetime(),
    verified_at: z.iso.datetime().nullable(),
  })
  .meta({ id: 'VerifiedDomain' })

export const domainJson = (domain: DomainRecord): z.input<typeof Domain> => ({
  id: domain.id,
  tenant_id: domain.tenantId,
  domain: domain.domain,
  status: domain.verifiedAt === null ? 'pending' : 'verified',
  verification: { type: 'dns_txt', ...domain.proof },
  sso_provider_id: domain.ssoProviderId,
  auto_join: domain.autoJoin,
  created_at: domain.createdAt.toISOString(),
  verified_at: domain.verifiedAt?.toISOString() ?? null,
})
