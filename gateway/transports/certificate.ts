/**
 * The certificate and the key of the TLS listener: read and tried before anything listens, and read anew
 * while it does, since a certificate is renewed every few weeks.
 */
import { readFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { createSecureContext, type SecureContextOptions } from 'node:tls'
import type { Logger } from '../../runtime/kernel/log.js'
import { ListenFailed } from './open.js'

export type CertificateFiles = { readonly certPath: string; readonly keyPath: string }
export type CertifiedPair = { readonly cert: Buffer; readonly key: Buffer }

export type Renewal = { readonly log: Logger; readonly everyMs: number }

/** @throws {ListenFailed} naming the file that is at fault, or both where they do not go together. */
export function certified(files: CertificateFiles): CertifiedPair {
  const { certPath, keyPath } = files
  const read = (path: string) => {
    try {
      return readFileSync(path)
    } catch (error) {
      throw unreadable(path, error)
    }
  }
  return judged(files, { cert: read(certPath), key: read(keyPath) })
}

/**
 * Reads the files again and again, and hands on another certificate with its key. Content is compared: links may
 * be turned to other files, and dates may be kept. What cannot be served is logged, once, and the pair in use stays.
 * @returns what ends it.
 */
export function watchCertificate(
  files: CertificateFiles,
  inUse: CertifiedPair,
  { log, everyMs }: Renewal,
  use: (pair: CertifiedPair) => void,
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
        use(judged(files, pair))
        known = pair
        log.info({ file: files.certPath }, 'the certificate has changed: new connections get it')
      }
      refusal = null
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error)
      if (reason !== refusal) {
        log.error({ reason }, 'the certificate has changed and cannot be served: the old one stays')
      }
      refusal = reason
    } finally {
      reading = false
    }
  }
  const timer = setInterval(() => void look(), everyMs).unref()
  return () => clearInterval(timer)
}

function judged({ certPath, keyPath }: CertificateFiles, pair: CertifiedPair): CertifiedPair {
  const { cert, key } = pair
  const judge = (what: string, given: SecureContextOptions) => {
    try {
      createSecureContext(given)
    } catch (error) {
      throw new ListenFailed(`${what}: ${error instanceof Error ? error.message : error}`)
    }
  }
  judge(`${certPath} holds no certificate chain in PEM`, { cert })
  judge(`${keyPath} holds no private key in PEM without a passphrase`, { key })
  judge(`the key of ${keyPath} is not that of the certificate in ${certPath}`, { cert, key })
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
