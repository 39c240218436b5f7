/** What the vault is given to hand credentials out. */
import { createVaultExports, type VaultExports } from '../actors/vault/exports.js'
import { vaultMetrics } from '../actors/vault/metrics.js'
import { createTokenEndpoint } from '../actors/vault/token-endpoint.js'
import type { House } from './furnish.js'

export function vaultExportsOf(house: House): VaultExports {
  const { settings, database, sealer, clock, random, log, metrics } = house
  return createVaultExports({
    database,
    sealer,
    endpoint: createTokenEndpoint({ settings: settings.vault, clock }),
    clock,
    random,
    log,
    metrics: vaultMetrics(metrics.registry),
  })
}
