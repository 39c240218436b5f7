/** The settings of outbound connections, read once for all features that make them. */
import type { OwnAddresses } from '../../../actors/platform/oauth/audience-ownership.js'
import type { SenderSettings } from '../../../actors/webhooks/delivery/sender.js'
import type { EgressSettings } from '../../../actors/platform/outbound-http/outbound.js'
import type { Settings } from '../configuration/settings.js'

export function egressSettingsOf(settings: Settings): Settings['vault'] & EgressSettings {
  return { ...settings.vault, own_names: ownNamesOf(settings), proxy: settings.proxy }
}

export function senderSettingsOf(settings: Settings): SenderSettings {
  return {
    ...settings.webhooks,
    nonStandardPorts: settings.security.webhook_allow_non_standard_ports,
    ownNames: ownNamesOf(settings),
    proxy: settings.proxy,
    names: {
      servers: settings.vault.egress_dns_servers,
      perTenantMax: settings.vault.lookups_per_tenant_max,
    },
  }
}

/** The addresses that no tenant may have for an application or API resource. */
export function ownAddressesOf({ oidc, server }: Settings): OwnAddresses {
  const { protocol } = new URL(oidc.issuer_url)
  return {
    issuer: oidc.issuer_url,
    others: [
      server.egress_url,
      server.identity_app_origin,
      server.dashboard_app_origin,
      ...server.allowed_hosts.map((host) => `${protocol}//${host}`),
    ],
    baseDomain: server.base_domain,
  }
}

/** The host names of this service. Hosts of tenants are below `server.base_domain`. */
function ownNamesOf({ oidc, server }: Settings): readonly string[] {
  const urls = [oidc.issuer_url, server.egress_url]
  const hosts = urls.map((url) => new URL(url).hostname)
  return [...new Set([...hosts, server.base_domain.toLowerCase()])]
}
