/** What the vault is given to hand credentials out, and what keeps its seals young. */
import type { VaultExports } from '../../actors/vault/vault/protocol.js'
import { createVaultExports } from '../../actors/vault/vault/exports.js'
import { vaultMetrics } from '../../actors/vault/vault/metrics.js'
import { createTokenEndpoint } from '../../actors/vault/vault/token-endpoint.js'
import { resealAll } from '../../storage/platform/sealing/reseal.js'
import type { ProcessResources } from '../process/process-resources.js'
import { egressSettingsOf } from './egress-settings.js'

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
  })
}

/** Re-encryption of sealed values by the retention actor, for the vault and all other areas. */
export function resealOf(resources: ProcessResources): (signal: AbortSignal) => Promise<number> {
  return (signal) => resealAll(resources, signal)
}
