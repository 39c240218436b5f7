/** The settings of outbound connections, read once for all features that make them. */
import type { SenderSettings } from '../../actors/webhooks/delivery/sender.js'
import type { EgressSettings } from '../../actors/platform/outbound-http/outbound.js'
import type { Settings } from '../configuration/settings.js'

export function egressSettingsOf(settings: Settings): Settings['vault'] & EgressSettings {
  return { ...settings.vault, own_names: ownNamesOf(settings) }
}

export function senderSettingsOf(settings: Settings): SenderSettings {
  return {
    ...settings.webhooks,
    nonStandardPorts: settings.security.webhook_allow_non_standard_ports,
    ownNames: ownNamesOf(settings),
    names: {
      servers: settings.vault.egress_dns_servers,
      perTenantMax: settings.vault.lookups_per_tenant_max,
    },
  }
}

/** The host names of this service. Those of tenants are below `server.base_domain`. */
function ownNamesOf({ oidc, server }: Settings): readonly string[] {
  return [...new Set([new URL(oidc.issuer_url).hostname, server.base_domain.toLowerCase()])]
}
