/** The vault's access to its sealed values, and the worker's function to seal values again. */
import type { VaultExports } from '../../../actors/vault/vault/protocol.js'
import { createVaultExports } from '../../../actors/vault/vault/exports.js'
import { vaultMetrics } from '../../../actors/vault/vault/metrics.js'
import { egress } from '../../../actors/vault/egress/protocol.js'
import { createTokenEndpoint } from '../../../actors/vault/vault/token-endpoint.js'
import { resealAll } from '../../../storage/platform/sealing/reseal.js'
import type { ActorContext } from '../../kernel/wiring.js'
import type { ProcessResources } from '../process-resources.js'
import { egressSettingsOf } from './egress-settings.js'

/** Waits this long for the egress proxy to learn of a change. The announcement of the database follows in any case. */
const CHANGE_WITHIN_MS = 500

/** Has the egress proxy of this process forget a tenant, so that a revocation applies to the next call. */
export function egressForgets(
  { ref }: Pick<ActorContext, 'ref'>,
  { clock }: Pick<ProcessResources, 'clock'>,
): (tenantId: string) => Promise<void> {
  const proxy = ref(egress)
  return async (tenantId) => {
    try {
      await proxy.forget({ tenantId }, { deadlineMs: clock.monotonicMs() + CHANGE_WITHIN_MS })
    } catch {
      // There is no egress proxy in the control plane, or it has not started yet. Others learn of the change by NOTIFY.
    }
  }
}

export function vaultExportsOf(resources: ProcessResources): VaultExports {
  const { settings, database, sealer, clock, random, log, metrics } = resources
  return createVaultExports({
    database,
    sealer,
    endpoint: createTokenEndpoint({ settings: egressSettingsOf(settings), clock }),
    clock,
    random,
    log,
    metrics: vaultMetrics(metrics.registry),
    connectionTtlSecs: settings.vault.connection_ttl_secs,
  })
}

/** Seals the values of a replaced data key with the new one, in all areas. */
export function resealOf(resources: ProcessResources): (signal: AbortSignal) => Promise<number> {
  return (signal) => resealAll(resources, signal)
}
