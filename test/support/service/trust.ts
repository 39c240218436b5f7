/** The global client of tests. */
import { rootCertificates } from 'node:tls'
import { Agent, setGlobalDispatcher } from 'undici'

/** From now on `fetch` uses HTTP/2 where it is offered, and trusts the certificate. */
export function trust(pem: string): void {
  const connect = { ca: [...rootCertificates, pem] }
  setGlobalDispatcher(new Agent({ allowH2: true, connect }))
}
