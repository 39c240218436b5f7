/** Metrics of SSH certificates. */
import type { Registry } from 'prom-client'
import { counter } from '../../platform/metrics.js'

export interface SshCertificatesMetrics {
  signed(): void
}

export function sshCertificatesMetrics(registry: Registry): SshCertificatesMetrics {
  const signed = counter(
    registry,
    'svc_ssh_certificates_signed_total',
    'SSH certificates that were signed.',
  )
  return { signed: () => signed.inc() }
}
