/** All sections of the configuration, in the order of the reference page. */
import { i18nSettings } from '../../../actors/domain/i18n/settings.js'
import { tenantAssetsSettings } from '../../../actors/identity/tenant-assets/settings.js'
import { consoleSettings } from '../../../actors/identity/console-sessions/settings.js'
import { sessionCookieSettings } from '../../../actors/identity/sign-in/sessions/settings.js'
import { chainsSettings, commerceSettings } from '../../../actors/commerce/payments/settings.js'
import { deviceAuthorizationSettings } from '../../../actors/agents/delegation/settings.js'
import { webhooksSettings } from '../../../actors/webhooks/delivery/settings.js'
import { eventSinksSettings } from '../../../actors/webhooks/event-sinks/settings.js'
import {
  emailOtpSettings,
  invitationsSettings,
  magicLinkSettings,
  twoFactorSettings,
  userSelfServiceSettings,
} from '../../../actors/identity/sign-in/settings.js'
import { emailSettings } from '../../../actors/operations/mail/settings.js'
import { anonymousSettings } from '../../../actors/identity/sign-in/ways/guest/settings.js'
import { adaptiveMfaSettings } from '../../../actors/identity/sign-in/second-factors/settings.js'
import { siweSettings } from '../../../actors/identity/sign-in/ways/ethereum/settings.js'
import { phoneSettings, smsSettings } from '../../../actors/identity/sign-in/ways/phone/settings.js'
import { passkeySettings } from '../../../actors/identity/sign-in/ways/passkey/settings.js'
import { authSettings } from '../../../actors/identity/passwords/settings.js'
import { scimSettings } from '../../../actors/identity/scim/settings.js'
import {
  enterpriseSsoSettings,
  verifiedDomainsSettings,
} from '../../../actors/identity/identity-providers/settings.js'
import {
  genericOauthSettings,
  oauthProxySettings,
  socialSettings,
} from '../../../actors/identity/sign-in/ways/federated/settings.js'
import { tenantSettings } from '../../../actors/identity/users/tenants/settings.js'
import {
  dpopSettings,
  jwtSettings,
  oidcSettings,
  refreshFamilyCacheSettings,
} from '../../../actors/oauth/tokens/settings.js'
import { credentialsSettings } from '../../../actors/oauth/credential-issuance/settings.js'
import { proxySettings } from '../../../actors/platform/outbound-http/proxy-settings.js'
import { vaultSettings } from '../../../actors/vault/vault/settings.js'
import { adminSettings, openapiSettings, serverSettings } from '../../../gateway/settings.js'
import { kmsSettings } from '../../../storage/platform/kms/settings.js'
import {
  databaseSettings,
  memcachedSettings,
  redisSettings,
} from '../../../storage/platform/settings.js'

import { challengeSettings } from './challenge.js'
import { deploymentSettings, securitySettings } from './deployment.js'
import type { SettingsTree } from '../../kernel/config/assemble.js'
import { telemetrySettings } from '../telemetry/settings.js'
import { accessControlSettings } from '../../../actors/oauth/resources/access-policies/settings.js'
import { apiKeysSettings } from '../../../actors/oauth/resources/api-keys/settings.js'
import { billingSettings } from '../../../actors/identity/users/plans/settings.js'
import { organizationsSettings } from '../../../actors/identity/users/organizations/settings.js'
import { logoutSettings } from '../../../actors/oauth/logout/settings.js'
import { sharedSignalsSettings } from '../../../actors/webhooks/signals/settings.js'
import { walletSettings } from '../../../actors/commerce/wallets/settings.js'

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
  logoutSettings,
  dpopSettings,
  refreshFamilyCacheSettings,
  credentialsSettings,
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
  oauthProxySettings,
  verifiedDomainsSettings,
  consoleSettings,
  challengeSettings,
  tenantSettings,
  openapiSettings,
  deviceAuthorizationSettings,
  vaultSettings,
  proxySettings,
  webhooksSettings,
  eventSinksSettings,
  sharedSignalsSettings,
  commerceSettings,
  chainsSettings,
  walletSettings,
  scimSettings,
  tenantAssetsSettings,
  i18nSettings,
  emailSettings,
  phoneSettings,
  smsSettings,
  siweSettings,
  anonymousSettings,
  adaptiveMfaSettings,
  telemetrySettings,
  organizationsSettings,
  billingSettings,
  apiKeysSettings,
  accessControlSettings,
  adminSettings,
] as const

/** The whole settings tree. An actor receives its own section only. */
export type Settings = SettingsTree<typeof sections>
