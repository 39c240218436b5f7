/** Metrics of the vault. */
import type { Registry } from 'prom-client'
import { counter, histogram } from '../../platform/metrics.js'

export interface VaultMetrics {
  exported(kind: 'secret' | 'access_token', outcome: string): void
  /** Records a request to the token endpoint of an upstream. */
  refreshed(outcome: string, secs: number): void
}

export function vaultMetrics(registry: Registry): VaultMetrics {
  const exports = counter(
    registry,
    'svc_vault_exports_total',
    'Credentials asked for by token exchange, by what came of it.',
    ['kind', 'outcome'],
  )
  const refreshes = counter(
    registry,
    'svc_vault_refreshes_total',
    'Token endpoints of upstreams that were asked, by what they answered.',
    ['outcome'],
  )
  const durations = histogram(
    registry,
    'svc_vault_refresh_duration_seconds',
    'Until the token endpoint of an upstream had answered.',
    [0.05, 0.1, 0.25, 0.5, 1, 2, 4, 8],
  )
  return {
    exported: (kind, outcome) => exports.inc({ kind, outcome }),
    refreshed(outcome, secs) {
      refreshes.inc({ outcome })
      durations.observe(secs)
    },
  }
}
