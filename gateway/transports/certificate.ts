/** The certificate and the key of the TLS listener, read and tried before anything listens. */
import { readFileSync } from 'node:fs'
import { createSecureContext, type SecureContextOptions } from 'node:tls'
import { ListenFailed } from './open.js'

export type CertificateFiles = { readonly certPath: string; readonly keyPath: string }

/** @throws {ListenFailed} naming the file that is at fault, or both where they do not go together. */
export function certified({ certPath, keyPath }: CertificateFiles) {
  const [cert, key] = [pem(certPath), pem(keyPath)]
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
  return { cert, key }
}

function pem(path: string): Buffer {
  try {
    return readFileSync(path)
  } catch (error) {
    throw new ListenFailed(`cannot read ${path}: ${error instanceof Error ? error.message : error}`)
  }
}
