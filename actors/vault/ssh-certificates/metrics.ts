/** svc_ssh_certificates_signed_total. */
import { Counter, type Registry } from 'prom-client'

export interface SshCertificatesMetrics {
  signed(): void
}

export function sshCertificatesMetrics(registry: Registry): SshCertificatesMetrics {
  const name = 'svc_ssh_certificates_signed_total'
  const known = registry.getSingleMetric(name) as Counter | undefined
  const counter =
    known ?? new Counter({ name, help: 'Signed SSH certificates.', registers: [registry] })
  return { signed: () => counter.inc() }
}
