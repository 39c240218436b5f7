/** The certificate of loopback upstreams. */
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

/**
 * A throw-away, self-signed certificate for `api.upstream.example`, which only
 * these tests trust. Made with: openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes
 * -days 36500 -subj /CN=api.upstream.example -addext subjectAltName=DNS:api.upstream.example
 */
export const UPSTREAM_NAME = 'api.upstream.example'

export const UPSTREAM_KEY = `-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgq+0Ie0qGctHyGOl1
ren762YMcSOPsb4oKS8ibeT9p+WhRANCAATzGiD7YjaEo5XZgXSdsFx+Tw3yVSQ5
/oXGAa0UinFqqVjSTICSju93MYYcYC6c/ExQNI8/f+S2QkFPYk6Vy7lL
-----END PRIVATE KEY-----
`

/** A file, because a setting of services names it. */
export const UPSTREAM_CERT_PATH = fileURLToPath(
  new URL('../../../../../test/support/vault/upstream.pem', import.meta.url),
)
export const UPSTREAM_CERT = readFileSync(UPSTREAM_CERT_PATH, 'utf8')
