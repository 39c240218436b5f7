/** What clients of test services trust. */
import { X509Certificate } from 'node:crypto'
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { checkServerIdentity as checkName, type PeerCertificate, rootCertificates } from 'node:tls'
import { Agent, setGlobalDispatcher } from 'undici'

const trusted = new Set<string>()
let folder: string | undefined
process.once('exit', () => {
  if (folder !== undefined) rmSync(folder, { recursive: true, force: true })
})

/** From now on `fetch` uses HTTP/2 where it is offered, and trusts the certificate too. */
export function trust(pem: string): void {
  trusted.add(pem)
  const connect = { ca: [...rootCertificates, ...trusted], checkServerIdentity }
  setGlobalDispatcher(new Agent({ allowH2: true, connect }))
}

/**
 * The certificate of a test service is accepted for any name, because undici takes the name from the Host header, and
 * tests send any. @returns why the certificate is refused.
 */
export function checkServerIdentity(host: string, certificate: PeerCertificate): Error | undefined {
  const own = [...trusted].some((pem) => new X509Certificate(pem).raw.equals(certificate.raw))
  return own ? undefined : checkName(host, certificate)
}

/** Variables with which Node.js, curl and Python trust the same certificates. Empty without any. */
export function trustOfPrograms(): Readonly<Record<string, string>> {
  if (trusted.size === 0) return {}
  folder ??= mkdtempSync(join(tmpdir(), 'svc-trust-'))
  // A program that is starting may be reading the file, so it is written once for each set of certificates.
  const file = join(folder, `ca-${trusted.size}.pem`)
  if (!existsSync(file)) writeFileSync(file, [...trusted].join(''))
  return { NODE_EXTRA_CA_CERTS: file, SSL_CERT_FILE: file, CURL_CA_BUNDLE: file }
}
