/** What the vault is given to hand credentials out, and what keeps its seals young. */
import { createVaultExports, type VaultExports } from '../actors/vault/exports.js'
import { vaultMetrics } from '../actors/vault/metrics.js'
import { createTokenEndpoint } from '../actors/vault/token-endpoint.js'
import { resealAll } from '../storage/reseal.js'
import type { House } from './house.js'
import { egressSettingsOf } from './outward.js'

export function vaultExportsOf(house: House): VaultExports {
  const { settings, database, sealer, clock, random, log, metrics } = house
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

/** What upkeep does for sealed values: of the vault and of everybody else. */
export function resealOf(house: House): (signal: AbortSignal) => Promise<number> {
  return (signal) => resealAll(house, signal)
}
