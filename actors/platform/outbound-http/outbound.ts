/** Where calls to addresses of others may go, as the settings say: one reading of them for every feature. */
import { readFileSync } from 'node:fs'
import type { ShareCounts } from '../../../runtime/kernel/fairness/fair-share.js'
import { createDialer, type DialerOptions } from './dialer.js'
import { createNameLookup } from './name-lookup.js'
import type { TargetRules } from './targets.js'

/** Members of [vault]: calls to addresses that others name follow them, whichever feature makes the call. */
export type EgressSettings = {
  readonly egress_allow_private_networks: boolean
  readonly egress_allow_non_standard_ports: boolean
  readonly egress_ca_pem_path?: string | undefined
  readonly egress_dns_overrides: Readonly<Record<string, string>>
  readonly egress_dns_servers?: readonly string[] | undefined
  readonly lookups_per_tenant_max?: number | undefined
  /** Hosts that this service answers on. Calls must not come back to them. */
  readonly own_names: readonly string[]
}

export type Outbound = {
  /** Connects to checked addresses only. */
  readonly dialer: ReturnType<typeof createDialer>
  /** For judging a URL before it is dialled. */
  readonly rules: TargetRules
}

/** @throws when the file of `egress_ca_pem_path` cannot be read. */
export function outbound(
  settings: EgressSettings,
  more: Pick<DialerOptions, 'connectTimeoutMs' | 'http2' | 'sharedReads' | 'resolve'> & {
    /** The operator names the hosts: the resolver of the system finds them. Default: callers name them. */
    readonly isOperators?: boolean | undefined
    readonly counts?: ShareCounts | undefined
  },
): Outbound {
  const caPath = settings.egress_ca_pem_path
  const privateNetworks = settings.egress_allow_private_networks
  const { isOperators = false, counts, resolve, ...rest } = more
  const callersNames = () =>
    createNameLookup({
      servers: settings.egress_dns_servers,
      perTenantMax: settings.lookups_per_tenant_max,
      counts,
    })
  return {
    dialer: createDialer({
      privateNetworks,
      ownNames: settings.own_names,
      dnsOverrides: settings.egress_dns_overrides,
      ca: caPath === undefined ? undefined : readFileSync(caPath, 'utf8'),
      resolve: resolve ?? (isOperators ? undefined : callersNames()),
      ...rest,
    }),
    rules: { privateNetworks, nonStandardPorts: settings.egress_allow_non_standard_ports },
  }
}
