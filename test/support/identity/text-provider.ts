/** A provider of text messages for tests: an endpoint of the `http` provider, and one of Twilio's shape. */
import { createHmac, timingSafeEqual } from 'node:crypto'
import { readFileSync } from 'node:fs'
import type { IncomingMessage } from 'node:http'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { makeCertificate } from '../service/certificates.js'

const SECRET = 'a key of the text message gateway'
const SID = 'AC0123456789abcdef0123456789abcdef'
const TOKEN = 'the token of the account'
const WAIT_MS = 60_000

export type Text = { readonly id: string | null; readonly to: string; readonly text: string }

export type TextServer = {
  /** Accepted messages. */
  readonly received: readonly Text[]
  /** Requests, refused ones included. */
  readonly requests: () => number
  /** How many requests fail with 503 before the next one is accepted. */
  failNext(times: number): void
  /** The `skip`-th message to the number. */
  textTo(number: string, skip?: number): Promise<Text>
  readonly http: Readonly<Record<string, string>>
  readonly twilio: Readonly<Record<string, string>>
  close(): void
}

export const codeOf = ({ text }: Text): string => /[0-9]{6}/.exec(text)![0]

const same = (one: string, other: string) =>
  one.length === other.length && timingSafeEqual(Buffer.from(one), Buffer.from(other))

export async function openTextServer(): Promise<TextServer> {
  const certificate = makeCertificate()
  const { certPath, keyPath } = certificate
  const received: Text[] = []
  let requests = 0
  let failures = 0

  /** The message of a request that is authentic, else the status of the refusal. */
  function read({ headers, url, method }: IncomingMessage, body: string): Text | number {
    if (method !== 'POST') return 405
    if (url === '/send?region=eu') {
      const { 'webhook-id': id, 'webhook-timestamp': at, 'webhook-signature': sent } = headers
      const mac = createHmac('sha256', SECRET).update(`${String(id)}.${String(at)}.${body}`)
      if (!same(String(sent), `v1,${mac.digest('base64')}`)) return 401
      const message = JSON.parse(body) as Text
      return message.id === id ? message : 400
    }
    if (url !== `/2010-04-01/Accounts/${SID}/Messages.json`) return 404
    const basic = `Basic ${Buffer.from(`${SID}:${TOKEN}`).toString('base64')}`
    if (!same(headers.authorization ?? '', basic)) return 401
    const form = new URLSearchParams(body)
    if (form.get('From') !== '+15005550006') return 400
    return { id: null, to: form.get('To') ?? '', text: form.get('Body') ?? '' }
  }

  const files = { key: readFileSync(keyPath), cert: readFileSync(certPath) }
  const server = createServer(files, (request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      requests += 1
      if (failures > 0) {
        failures -= 1
        return response.writeHead(503).end('{}')
      }
      const message = read(request, Buffer.concat(chunks).toString())
      if (typeof message === 'number') return response.writeHead(message).end('{"code":20003}')
      received.push(message)
      response.writeHead(201, { 'content-type': 'application/json' })
      response.end(JSON.stringify({ sid: `SM${received.length}`, status: 'queued' }))
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const base = `https://localhost:${(server.address() as AddressInfo).port}`
  const reachable = {
    SVC_PHONE__ENABLED: 'true',
    SVC_SMS__ENABLED: 'true',
    SVC_SMS__PER_NUMBER_GAP_SECS: '0',
    SVC_VAULT__EGRESS_ALLOW_PRIVATE_NETWORKS: 'true',
    SVC_VAULT__EGRESS_ALLOW_NON_STANDARD_PORTS: 'true',
    SVC_VAULT__EGRESS_CA_PEM_PATH: certPath,
  }
  return {
    received,
    requests: () => requests,
    failNext: (times) => (failures = times),
    async textTo(number, skip = 0) {
      const deadline = Date.now() + WAIT_MS
      for (;;) {
        const found = received.filter(({ to }) => to === number)[skip]
        if (found !== undefined) return found
        if (Date.now() > deadline) throw new Error(`no text message ${skip} to ${number}`)
        await new Promise((resolve) => setTimeout(resolve, 10))
      }
    },
    http: {
      ...reachable,
      SVC_PHONE__PROVIDER: 'http',
      SVC_PHONE__HTTP_URL: `${base}/send?region=eu`,
      SVC_PHONE__HTTP_SECRET: SECRET,
    },
    twilio: {
      ...reachable,
      SVC_PHONE__PROVIDER: 'twilio',
      SVC_PHONE__TWILIO_URL: base,
      SVC_PHONE__TWILIO_ACCOUNT_SID: SID,
      SVC_PHONE__TWILIO_AUTH_TOKEN: TOKEN,
      SVC_PHONE__TWILIO_FROM: '+15005550006',
    },
    close() {
      server.closeAllConnections()
      server.close()
      certificate.remove()
    },
  }
}
