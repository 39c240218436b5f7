/** Every section of the configuration, in the order of the reference page. No logic. */
import { tenantAssetsSettings } from '../actors/assets/settings.js'
import { sessionCookieSettings } from '../actors/browser-sessions/settings.js'
import { chainsSettings, commerceSettings } from '../actors/commerce/settings.js'
import { deviceAuthorizationSettings } from '../actors/delegation/settings.js'
import { webhooksSettings } from '../actors/deliveries/settings.js'
import {
  emailOtpSettings,
  invitationsSettings,
  magicLinkSettings,
  twoFactorSettings,
  userSelfServiceSettings,
} from '../actors/login/settings.js'
import { emailSettings, phoneSettings } from '../actors/notify/settings.js'
import { passkeySettings } from '../actors/passkeys/settings.js'
import { authSettings } from '../actors/passwords/settings.js'
import { challengeSettings } from '../actors/pow/settings.js'
import { scimSettings } from '../actors/scim/settings.js'
import {
  enterpriseSsoSettings,
  genericOauthSettings,
  socialSettings,
  verifiedDomainsSettings,
} from '../actors/sso/settings.js'
import { tenantSettings } from '../actors/tenants/settings.js'
import { dpopSettings, jwtSettings, oidcSettings } from '../actors/tokens/settings.js'
import { vaultSettings } from '../actors/vault/settings.js'
import { localOrigin, openapiSettings, serverSettings } from '../gateway/settings.js'
import { kmsSettings } from '../storage/kms/settings.js'
import { databaseSettings, memcachedSettings, redisSettings } from '../storage/settings.js'

import { deploymentSettings, securitySettings } from './deployment.js'
import { assemble, type SettingsTree } from './kernel/config/assemble.js'
import { databaseFallbacks } from './database-fallbacks.js'
import { productionRules } from './production.js'
import { unavailableRules, unavailableSections } from './unavailable.js'

const sections = [
  securitySettings,
  deploymentSettings,
  serverSettings,
  databaseSettings,
  redisSettings,
  memcachedSettings,
  kmsSettings,
  jwtSettings,
  oidcSettings,
  dpopSettings,
  authSettings,
  sessionCookieSettings,
  twoFactorSettings,
  emailOtpSettings,
  magicLinkSettings,
  invitationsSettings,
  userSelfServiceSettings,
  passkeySettings,
  socialSettings,
  genericOauthSettings,
  enterpriseSsoSettings,
  verifiedDomainsSettings,
  challengeSettings,
  tenantSettings,
  openapiSettings,
  deviceAuthorizationSettings,
  vaultSettings,
  webhooksSettings,
  commerceSettings,
  chainsSettings,
  scimSettings,
  tenantAssetsSettings,
  emailSettings,
  phoneSettings,
  ...unavailableSections,
] as const

export const assembly = assemble(sections, {
  fallbacks: [
    {
      key: 'oidc.issuer_url',
      reads: ['server.transport', 'server.base_domain', 'server.port', 'security.production'],
      from: 'server.transport, server.base_domain and server.port, outside production',
      value: ({ server, security }) => (security.production ? undefined : localOrigin(server)),
    },
    { key: 'server.egress_url', reads: ['oidc.issuer_url'], value: (s) => s.oidc.issuer_url },
    { key: 'server.errors_base_url', reads: ['oidc.issuer_url'], value: (s) => s.oidc.issuer_url },
    ...databaseFallbacks,
  ],
  rules: [
    {
      keys: ['redis.url', 'deployment.coordination_backend'],
      holds: (s) => s.deployment.coordination_backend !== 'redis' || s.redis.url !== undefined,
      rule: 'be set when deployment.coordination_backend is redis',
      fix: 'set redis.url',
    },
    {
      keys: ['memcached.address', 'deployment.coordination_backend'],
      holds: (s) =>
        s.deployment.coordination_backend !== 'memcached' || s.memcached.address !== undefined,
      rule: 'be set when deployment.coordination_backend is memcached',
      fix: 'set memcached.address',
    },
    {
      keys: ['commerce.x402_facilitator_url', 'commerce.x402_enabled'],
      holds: ({ commerce }) =>
        !commerce.x402_enabled || commerce.x402_facilitator_url !== undefined,
      rule: 'be set when commerce.x402_enabled is true',
      fix: 'set commerce.x402_facilitator_url',
    },
    {
      keys: ['deployment.embedded_chain_monitor', 'chains'],
      holds: ({ deployment, chains }) =>
        !deployment.embedded_chain_monitor || chains.some(({ rpc_url }) => rpc_url !== undefined),
      rule: 'be false unless a chain of [[chains]] has an rpc_url',
      fix: 'set rpc_url of the chains to watch',
    },
    ...unavailableRules,
    ...productionRules,
  ],
})

/** The whole settings tree. Actors receive their own section, never this. */
export type Settings = SettingsTree<typeof sections>
