/** Where calls to addresses of others may go, as the settings say: one reading of them for every feature. */
import { readFileSync } from 'node:fs'
import type { VaultSettings } from '../vault/settings.js'
import { createDialer, type DialerOptions } from './dialer.js'
import type { TargetRules } from './targets.js'

export type EgressSettings = Pick<
  VaultSettings,
  | 'egress_allow_private_networks'
  | 'egress_allow_non_standard_ports'
  | 'egress_ca_pem_path'
  | 'egress_dns_overrides'
> & {
  /** Hosts this service answers on, which nobody's call may come back to. */
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
  more: Pick<DialerOptions, 'connectTimeoutMs' | 'http2' | 'lends' | 'resolve'>,
): Outbound {
  const caPath = settings.egress_ca_pem_path
  const privateNetworks = settings.egress_allow_private_networks
  return {
    dialer: createDialer({
      privateNetworks,
      ownNames: settings.own_names,
      dnsOverrides: settings.egress_dns_overrides,
      ca: caPath === undefined ? undefined : readFileSync(caPath, 'utf8'),
      ...more,
    }),
    rules: { privateNetworks, nonStandardPorts: settings.egress_allow_non_standard_ports },
  }
}
