/** Builds the dialer and the URL rules from the settings, the same for every feature. */
import { readFileSync } from 'node:fs'
import type { ShareCounts } from '../../../runtime/kernel/fairness/fair-share.js'
import type { TenantGroups } from '../tenant-groups.js'
import { createDialer, type DialerOptions } from './dialer.js'
import { createNameLookup } from './name-lookup.js'
import type { ProxySettings } from './proxy-settings.js'
import type { TargetRules } from './targets.js'

/** Members of [vault] that apply to all outbound requests to hosts that callers choose. */
export type EgressSettings = {
  readonly egress_allow_private_networks: boolean
  readonly egress_allow_non_standard_ports: boolean
  readonly egress_ca_pem_path?: string | undefined
  readonly egress_dns_overrides: Readonly<Record<string, string>>
  readonly egress_dns_servers?: readonly string[] | undefined
  readonly lookups_per_tenant_max?: number | undefined
  /** Host names of this service, which outbound requests must not reach. */
  readonly own_names: readonly string[]
  /** `[proxy]`. */
  readonly proxy?: ProxySettings | undefined
}

type Outbound = {
  /** Connects to allowed addresses only. */
  readonly dialer: ReturnType<typeof createDialer>
  /** For the check of a URL before it is dialled. */
  readonly rules: TargetRules
}

export const targetRules = (
  settings: Pick<
    EgressSettings,
    'egress_allow_private_networks' | 'egress_allow_non_standard_ports'
  >,
): TargetRules => ({
  nonStandardPorts: settings.egress_allow_non_standard_ports,
  privateNetworks: settings.egress_allow_private_networks,
})

/** @throws when the file of `egress_ca_pem_path` cannot be read. */
export function outbound(
  settings: EgressSettings,
  more: Pick<DialerOptions, 'connectTimeoutMs' | 'http2' | 'sharedReads' | 'resolve'> & {
    /** The operator chooses the hosts, so the system resolver is used. Default false: callers do. */
    readonly isOperators?: boolean | undefined
    readonly counts?: ShareCounts | undefined
    readonly groups?: TenantGroups | undefined
  },
): Outbound {
  const caPath = settings.egress_ca_pem_path
  const privateNetworks = settings.egress_allow_private_networks
  const { isOperators = false, counts, groups, resolve, ...rest } = more
  const callersNames = () =>
    createNameLookup({
      servers: settings.egress_dns_servers,
      perTenantMax: settings.lookups_per_tenant_max,
      counts,
      groups,
    })
  return {
    dialer: createDialer({
      privateNetworks,
      ownNames: settings.own_names,
      dnsOverrides: settings.egress_dns_overrides,
      ca: caPath === undefined ? undefined : readFileSync(caPath, 'utf8'),
      proxy: settings.proxy,
      resolve: resolve ?? (isOperators ? undefined : callersNames()),
      ...rest,
    }),
    rules: targetRules(settings),
  }
}
