/** What services of tests call on loopback over TLS, other than upstreams: one certificate, which settings of shared services name. */
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import type { Certificate } from '../service/certificates.js'

const fileOf = (name: string) =>
  fileURLToPath(new URL(`../../../../test/support/fleet/${name}`, import.meta.url))

/**
 * A throw-away, self-signed certificate for localhost, which only tests trust. Made with: openssl req -x509 -newkey ec -pkeyopt
 * ec_paramgen_curve:prime256v1 -nodes -days 36500 -subj /CN=localhost -addext subjectAltName=DNS:localhost,IP:127.0.0.1
 */
export const LOOPBACK: Certificate = {
  certPath: fileOf('loopback.pem'),
  keyPath: fileOf('loopback.key'),
  pem: readFileSync(fileOf('loopback.pem'), 'utf8'),
  remove: () => undefined,
}

/** With these settings a service fetches documents from servers with that certificate. */
export const REACHES_LOOPBACK = {
  SVC_VAULT__EGRESS_ALLOW_PRIVATE_NETWORKS: 'true',
  SVC_VAULT__EGRESS_ALLOW_NON_STANDARD_PORTS: 'true',
  SVC_VAULT__EGRESS_CA_PEM_PATH: LOOPBACK.certPath,
} as const
