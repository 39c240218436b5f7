/** A CAPTCHA provider of a test: a widget that presses itself, and `siteverify`. */
import { createServer } from 'node:https'
import { readFileSync } from 'node:fs'
import type { AddressInfo } from 'node:net'
import { makeCertificate } from '../service/certificates.js'

export const CAPTCHA_SECRET = 'the secret of the site'

/** Puts the answer into the form around the widget, as the scripts of the providers do. */
const SCRIPT = `for (const box of document.querySelectorAll('.cf-turnstile')) {
  const field = document.createElement('input')
  field.type = 'hidden'
  field.name = 'cf-turnstile-response'
  field.value = 'a person with ' + box.dataset.sitekey
  box.append(field)
  box.dataset.done = 'yes'
}`

export type CaptchaProvider = {
  readonly asked: URLSearchParams[]
  becomes(next: 'answers' | 'stalls' | 'fails' | 'babbles' | 'blames'): void
  readonly environment: Readonly<Record<string, string>>
  close(): void
}

/** Accepts answers that begin with `a person`. */
export async function openCaptchaProvider(): Promise<CaptchaProvider> {
  const certificate = makeCertificate()
  const { certPath, keyPath } = certificate
  const asked: URLSearchParams[] = []
  let behaviour: Parameters<CaptchaProvider['becomes']>[0] = 'answers'
  const files = { key: readFileSync(keyPath), cert: readFileSync(certPath) }
  const server = createServer(files, (request, response) => {
    if (request.url === '/api.js') {
      response.setHeader('content-type', 'text/javascript')
      return response.end(SCRIPT)
    }
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      const form = new URLSearchParams(Buffer.concat(chunks).toString())
      asked.push(form)
      if (behaviour === 'stalls') return
      if (behaviour === 'fails') return response.writeHead(500).end('{}')
      if (behaviour === 'babbles') return response.end('<html>')
      const codes = behaviour === 'blames' ? ['invalid-input-secret'] : ['invalid-input-response']
      const success =
        behaviour === 'answers' &&
        (form.get('response') ?? '').startsWith('a person') &&
        form.get('secret') === CAPTCHA_SECRET
      response.end(JSON.stringify(success ? { success } : { success, 'error-codes': codes }))
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const base = `https://localhost:${(server.address() as AddressInfo).port}`
  return {
    asked,
    becomes: (next) => (behaviour = next),
    environment: {
      SVC_CHALLENGE__CAPTCHA_ENABLED: 'true',
      SVC_CHALLENGE__CAPTCHA_PROVIDER: 'turnstile',
      SVC_CHALLENGE__CAPTCHA_SECRET: CAPTCHA_SECRET,
      SVC_CHALLENGE__CAPTCHA_SITE_KEY: 'site-key',
      SVC_CHALLENGE__CAPTCHA_VERIFY_URL: `${base}/siteverify`,
      SVC_CHALLENGE__CAPTCHA_SCRIPT_URL: `${base}/api.js`,
      SVC_VAULT__EGRESS_ALLOW_PRIVATE_NETWORKS: 'true',
      SVC_VAULT__EGRESS_ALLOW_NON_STANDARD_PORTS: 'true',
      SVC_VAULT__EGRESS_CA_PEM_PATH: certPath,
    },
    close() {
      server.closeAllConnections()
      server.close()
      certificate.remove()
    },
  }
}
