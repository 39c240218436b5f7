/** Metrics of the vault. */
import type { Registry } from 'prom-client'
import { counter, histogram } from '../../platform/metrics.js'

export interface VaultMetrics {
  exported(kind: 'secret' | 'access_token', outcome: string): void
  /** Records a request to the token endpoint of an upstream. */
  refreshed(outcome: string, secs: number): void
  /** A credential needs a new refresh token. */
  lapsed(): void
  /** An API rejected a token. */
  rejected(outcome: 'ended' | 'kept'): void
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
  const lapses = counter(
    registry,
    'svc_vault_reauthorizations_total',
    'Credentials whose refresh token an upstream refused for good.',
  )
  const rejections = counter(
    registry,
    'svc_vault_token_rejections_total',
    'Access tokens that an API rejected: ended, or kept because fresh ones are rejected too.',
    ['outcome'],
  )
  return {
    exported: (kind, outcome) => exports.inc({ kind, outcome }),
    refreshed(outcome, secs) {
      refreshes.inc({ outcome })
      durations.observe(secs)
    },
    lapsed: () => lapses.inc(),
    rejected: (outcome) => rejections.inc({ outcome }),
  }
}
