/** Metrics of exports and token refreshes. */
import { Counter, Histogram, type Registry } from 'prom-client'

export interface VaultMetrics {
  exported(kind: 'secret' | 'access_token', outcome: string): void
  /** Records a request to an upstream's token endpoint. */
  refreshed(outcome: string, secs: number): void
}

export function vaultMetrics(registry: Registry): VaultMetrics {
  const registers = [registry]
  const exports = new Counter({
    name: 'svc_vault_exports_total',
    help: 'Credential exports by token exchange, by outcome.',
    labelNames: ['kind', 'outcome'],
    registers,
  })
  const refreshes = new Counter({
    name: 'svc_vault_refreshes_total',
    help: 'Requests to token endpoints of upstreams, by outcome.',
    labelNames: ['outcome'],
    registers,
  })
  const durations = new Histogram({
    name: 'svc_vault_refresh_duration_seconds',
    help: 'Response time of token endpoints of upstreams.',
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
