/**
 * The certificate and key of the TLS listener. They are read and checked before the service listens, and read
 * again while it runs: certificates are renewed every few weeks.
 */
import { readFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { createSecureContext, type SecureContextOptions } from 'node:tls'
import type { Logger } from '../../runtime/kernel/log.js'
import { ListenFailed } from './open.js'

/** Of TLS 1.2 the suites with forward secrecy and authenticated encryption (RFC 9325 section 4.2). */
export const TLS12_SUITES = ['ECDHE-ECDSA', 'ECDHE-RSA'].flatMap((exchange) =>
  ['AES128-GCM-SHA256', 'AES256-GCM-SHA384', 'CHACHA20-POLY1305'].map(
    (cipher) => `${exchange}-${cipher}`,
  ),
)
const TLS13_SUITES = [
  'TLS_AES_256_GCM_SHA384',
  'TLS_CHACHA20_POLY1305_SHA256',
  'TLS_AES_128_GCM_SHA256',
]
/** Versions and suites of the listeners on node:tls. */
export const TLS = {
  minVersion: 'TLSv1.2',
  ciphers: [...TLS13_SUITES, ...TLS12_SUITES].join(':'),
} as const

export type CertificateFiles = { readonly certPath: string; readonly keyPath: string }
export type CertifiedPair = { readonly cert: Buffer; readonly key: Buffer }

export type Renewal = { readonly log: Logger; readonly everyMs: number }

/** @throws {ListenFailed} that names the invalid file, or both files if key and certificate do not match. */
export function readCertificate(files: CertificateFiles): CertifiedPair {
  const { certPath, keyPath } = files
  const read = (path: string) => {
    try {
      return readFileSync(path)
    } catch (error) {
      throw unreadable(path, error)
    }
  }
  return checkedPair(files, { cert: read(certPath), key: read(keyPath) })
}

/**
 * Reads the files periodically and passes a changed certificate and key to `use`. It compares contents, because
 * links can be redirected and dates can be preserved. An invalid pair is logged once and not used.
 * @returns a function that stops the timer.
 */
export function watchCertificate(
  files: CertificateFiles,
  inUse: CertifiedPair,
  { log, everyMs }: Renewal,
  use: (pair: CertifiedPair) => void | Promise<void>,
): () => void {
  let known = inUse
  let refusal: string | null = null
  let reading = false
  const look = async () => {
    if (reading) return
    reading = true
    try {
      const pair = { cert: await readAgain(files.certPath), key: await readAgain(files.keyPath) }
      if (!pair.cert.equals(known.cert) || !pair.key.equals(known.key)) {
        await use(checkedPair(files, pair))
        known = pair
        log.info(
          { file: files.certPath },
          'the certificate has changed and is used for new connections',
        )
      }
      refusal = null
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error)
      if (reason !== refusal) {
        log.error(
          { reason },
          'the certificate has changed and is invalid, the old one is still used',
        )
      }
      refusal = reason
    } finally {
      reading = false
    }
  }
  const timer = setInterval(() => void look(), everyMs).unref()
  return () => clearInterval(timer)
}

function checkedPair({ certPath, keyPath }: CertificateFiles, pair: CertifiedPair): CertifiedPair {
  const { cert, key } = pair
  const check = (what: string, context: SecureContextOptions) => {
    try {
      createSecureContext(context)
    } catch (error) {
      throw new ListenFailed(`${what}: ${error instanceof Error ? error.message : error}`)
    }
  }
  check(`${certPath} does not contain a PEM certificate chain`, { cert })
  check(`${keyPath} does not contain a PEM private key without a passphrase`, { key })
  check(`the key of ${keyPath} does not match the certificate of ${certPath}`, { cert, key })
  return pair
}

async function readAgain(path: string): Promise<Buffer> {
  return readFile(path).catch((error: unknown) => {
    throw unreadable(path, error)
  })
}

function unreadable(path: string, error: unknown): ListenFailed {
  return new ListenFailed(`cannot read ${path}: ${error instanceof Error ? error.message : error}`)
}
