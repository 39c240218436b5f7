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
import { openapiSettings, serverSettings } from '../gateway/settings.js'
import { kmsSettings } from '../storage/kms/settings.js'
import { databaseSettings, memcachedSettings, redisSettings } from '../storage/settings.js'

import { deploymentSettings, securitySettings } from './deployment.js'
import type { SettingsTree } from './kernel/config/assemble.js'
import { unavailableSections } from './unavailable.js'

export const sections = [
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

/** The whole settings tree. Actors receive their own section, never this. */
export type Settings = SettingsTree<typeof sections>
