/** Metrics of SSH certificates. */
import type { Registry } from 'prom-client'
import { counter } from '../../platform/metrics.js'

export interface SshcaMetrics {
  signed(): void
}

export function sshcaMetrics(registry: Registry): SshcaMetrics {
  const signed = counter(
    registry,
    'svc_ssh_certificates_signed_total',
    'SSH certificates that were signed.',
  )
  return { signed: () => signed.inc() }
}
