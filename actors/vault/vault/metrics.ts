/** svc_vault_exports_total, svc_vault_refreshes_total, svc_vault_refresh_duration_seconds. */
import { Counter, Histogram, type Registry } from 'prom-client'

export interface VaultMetrics {
  exported(kind: 'secret' | 'access_token', outcome: string): void
  /** An upstream's token endpoint was asked. */
  refreshed(outcome: string, secs: number): void
}

export function vaultMetrics(registry: Registry): VaultMetrics {
  const registers = [registry]
  const exports = new Counter({
    name: 'svc_vault_exports_total',
    help: 'Credentials asked for by token exchange, by what came of it.',
    labelNames: ['kind', 'outcome'],
    registers,
  })
  const refreshes = new Counter({
    name: 'svc_vault_refreshes_total',
    help: 'Token endpoints of upstreams that were asked, by what they answered.',
    labelNames: ['outcome'],
    registers,
  })
  const durations = new Histogram({
    name: 'svc_vault_refresh_duration_seconds',
    help: 'Until the token endpoint of an upstream had answered.',
    buckets: [0.05, 0.1, 0.25, 0.5, 1, 2, 4, 8],
    registers,
  })
  return {
    exported: (kind, outcome) => exports.inc({ kind, outcome }),
    refreshed(outcome, secs) {
      refreshes.inc({ outcome })
      durations.observe(secs)
    },
  }
}
