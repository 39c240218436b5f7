/** The configured providers: the deployment's from the settings, a tenant's from the database. */
import type { MessageContext } from '../../../../../runtime/kernel/actor.js'
import type { Sealer } from '../../../../../storage/platform/sealing/sealer.js'
import type { Database } from '../../../../../storage/platform/sql.js'
import {
  findActiveProvider,
  findIdentityProvider,
  offeredIdentityProviders,
  providerSecretContext,
  type IdentityProviderRow,
} from '../../../../../storage/identity/identity-providers.js'
import { isUuid } from '../../../../domain/ids.js'
import type { Upstream } from '../../../../domain/upstream.js'
import type { GenericOauthSettings, SocialSettings } from './settings.js'
import { inTenant } from '../../../../platform/in-tenant.js'

export type Provider = {
  readonly id: string
  readonly name: string
  /** Null: a provider of the deployment, available to every tenant. */
  readonly tenantId: string | null
  readonly issuer: string
  readonly clientId: string
  readonly clientSecret: string | null
  readonly authMethod: IdentityProviderRow['tokenEndpointAuthMethod']
  readonly scopes: readonly string[]
  /** Configured endpoints; null: use discovery. */
  readonly endpoints: Endpoints | null
  readonly trustedAcrValues: readonly string[]
  /** For a tenant's provider: whether it provisions new users. */
  readonly provision: boolean
  /** Changes with every update of the provider. */
  readonly version: string
}
type Endpoints = {
  readonly authorization: string
  readonly token: string
  readonly userinfo: string | null
  readonly jwks: string
}

export type ProviderSettings = {
  readonly social: SocialSettings
  readonly generic: GenericOauthSettings
  readonly enterprise: { readonly enabled: boolean }
}

export interface Providers {
  /** `deployment`: whether providers of the deployment are included. */
  find(
    tenant: { readonly id: string; readonly deployment: boolean },
    id: string,
    context: MessageContext,
  ): Promise<Provider | undefined>
  /** An active provider by its id alone, without its secret: nothing is asked of it. */
  named(id: string, context: MessageContext): Promise<Provider | undefined>
  offered(
    tenant: { readonly id: string; readonly deployment: boolean },
    context: MessageContext,
  ): Promise<readonly Upstream[]>
}

export function providersOf(
  settings: ProviderSettings,
  database: Database,
  sealer: Sealer,
): Providers {
  const own = new Map(deploymentProviders(settings).map((provider) => [provider.id, provider]))

  return {
    async find({ id: tenantId, deployment }, id, context) {
      const known = own.get(id)
      if (known !== undefined) return deployment ? known : undefined
      if (!settings.enterprise.enabled || !isUuid(id)) return undefined
      const row = await inTenant(database, tenantId, context, (tx) =>
        findIdentityProvider(tx, tenantId, id),
      )
      return row?.active === true ? tenantProvider(row, await secretOf(row, sealer)) : undefined
    },
    async named(id, context) {
      const known = own.get(id)
      if (known !== undefined || !settings.enterprise.enabled || !isUuid(id)) return known
      const row = await database.system((tx) => findActiveProvider(tx, id), context)
      return row && tenantProvider(row, null)
    },
    async offered({ id: tenantId, deployment }, context) {
      const everywhere = deployment ? [...own.values()].map(({ id, name }) => ({ id, name })) : []
      if (!settings.enterprise.enabled) return everywhere
      const rows = await inTenant(database, tenantId, context, (tx) =>
        offeredIdentityProviders(tx, tenantId),
      )
      return [...rows, ...everywhere]
    },
  }
}

async function secretOf(
  { tenantId, id, clientSecretSealed: sealed }: IdentityProviderRow,
  sealer: Sealer,
): Promise<string | null> {
  if (sealed === null) return null
  const secret = await sealer.open(tenantId, providerSecretContext(id), sealed)
  return Buffer.from(secret).toString('utf8')
}

function tenantProvider(row: IdentityProviderRow, clientSecret: string | null): Provider {
  const { authorizationEndpoint, tokenEndpoint, jwksUri } = row
  const isStated = authorizationEndpoint !== null && tokenEndpoint !== null && jwksUri !== null
  return {
    id: row.id,
    name: row.name,
    tenantId: row.tenantId,
    issuer: row.issuer,
    clientId: row.clientId,
    clientSecret,
    authMethod: row.tokenEndpointAuthMethod,
    scopes: row.scopes,
    endpoints: isStated
      ? {
          authorization: authorizationEndpoint,
          token: tokenEndpoint,
          userinfo: row.userinfoEndpoint,
          jwks: jwksUri,
        }
      : null,
    trustedAcrValues: row.trustedAcrValues,
    provision: row.provision,
    version: row.updatedAt.toISOString(),
  }
}

/** Providers of the settings. They provision users only where a tenant enables it. */
function deploymentProviders({
  social,
  generic,
}: Pick<ProviderSettings, 'social' | 'generic'>): readonly Provider[] {
  const shared = {
    tenantId: null,
    authMethod: 'client_secret_post',
    scopes: ['openid', 'email', 'profile'],
    endpoints: null,
    trustedAcrValues: [],
    provision: false,
    version: 'settings',
  } as const
  const presets = [
    {
      id: 'google',
      name: 'Google',
      issuer: 'https://accounts.google.com',
      clientId: social.google_client_id,
      clientSecret: social.google_client_secret,
    },
    {
      id: 'microsoft',
      name: 'Microsoft',
      issuer: `https://login.microsoftonline.com/${social.microsoft_tenant_id ?? ''}/v2.0`,
      clientId: social.microsoft_client_id,
      clientSecret: social.microsoft_client_secret,
    },
    {
      id: 'gitlab',
      name: 'GitLab',
      issuer: 'https://gitlab.com',
      clientId: social.gitlab_client_id,
      clientSecret: social.gitlab_client_secret,
    },
  ]
  const providers: Provider[] = []
  for (const { clientId, clientSecret, ...preset } of social.enabled ? presets : []) {
    if (clientId === undefined) continue
    const authMethod = clientSecret === undefined ? 'none' : shared.authMethod
    const secret = clientSecret ?? null
    providers.push({ ...shared, ...preset, clientId, clientSecret: secret, authMethod })
  }
  if (generic.enabled && generic.issuer !== undefined && generic.client_id !== undefined) {
    providers.push({
      ...shared,
      id: 'oidc',
      name: generic.name,
      issuer: generic.issuer,
      clientId: generic.client_id,
      clientSecret: generic.client_secret ?? null,
      authMethod: generic.token_endpoint_auth_method,
      scopes: generic.scopes,
      trustedAcrValues: generic.trusted_acr_values,
    })
  }
  return providers
}
