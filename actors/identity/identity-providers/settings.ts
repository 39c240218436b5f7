/** [enterprise_sso] and [verified_domains]: providers and domains of tenants. */
import { count, flag, nameServers } from '../../../runtime/kernel/config/kinds.js'
import { section, type SettingsOf } from '../../../runtime/kernel/config/section.js'

export const enterpriseSsoSettings = section(
  'enterprise_sso',
  {
    enabled: flag(false).describe('Tenants may configure their own OpenID Connect providers.'),
    max_providers_per_tenant: count(20, 1, 1_000).describe(
      'Maximum number of providers of one tenant.',
    ),
  },
  { about: 'Sign-in through an enterprise identity provider.' },
)

export const verifiedDomainsSettings = section(
  'verified_domains',
  {
    enabled: flag(false).describe('Organizations may verify their domains by DNS.'),
    max_per_tenant: count(100, 1, 10_000).describe('Maximum number of domains of one tenant.'),
    dns_servers: nameServers().describe(
      'DNS resolvers for the TXT record; the system’s when empty.',
    ),
  },
  { about: 'Verified domains of organizations.' },
)

export type EnterpriseSsoSettings = SettingsOf<typeof enterpriseSsoSettings>
export type VerifiedDomainsSettings = SettingsOf<typeof verifiedDomainsSettings>
