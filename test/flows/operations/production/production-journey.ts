/**
 * What a production deployment is for, as its users see it: run by production.long.test.ts next to a service in
 * production mode, in a separate network. Environment: BASE, the service, and DIR, where its CA is. Prints the facts as
 * JSON.
 */
import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { connect as connectHttp2 } from 'node:http2'
import { createServer, get as getHttp1 } from 'node:https'
import type { IncomingHttpHeaders } from 'node:http'
import type { TLSSocket } from 'node:tls'
import { rootCertificates } from 'node:tls'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import * as oidc from 'openid-client'
import { Agent, setGlobalDispatcher } from 'undici'
import { receive } from '../../../../actors/domain/webhooks/receive.js'
import { callerOf, complete, demand, type Json, start } from '../../../support/agents/journey.js'
import { authorized, journey } from '../../../support/oauth/relying-party.js'
import { openBrowser } from '../../../support/pages/browser.js'

/** An address of the public internet, which the network of the test routes to itself. */
const PUBLIC_ADDRESS = '93.184.216.34'
const RECEIVER = 'hooks.svc-receiver.net'
const REDIRECT_URI = 'http://localhost:3000/callback'

const base = process.env['BASE']!
const folder = process.env['DIR']!
const ca = readFileSync(join(folder, 'ca.pem'), 'utf8')
setGlobalDispatcher(new Agent({ allowH2: true, connect: { ca: [...rootCertificates, ca] } }))

/** The protocol that a client gets which offers this one. */
async function protocolOf(offered: 'h2' | 'http/1.1'): Promise<string> {
  const url = `${base}/health/ready`
  if (offered === 'http/1.1') {
    const [answer] = await once(getHttp1(url, { ca, agent: false }), 'response')
    answer.resume()
    return `HTTP/${answer.httpVersion} ${answer.statusCode}`
  }
  const session = connectHttp2(base, { ca })
  const stream = session.request({ ':path': '/health/ready' })
  const [fields] = await once(stream, 'response')
  const used = (session.socket as TLSSocket).alpnProtocol
  session.destroy()
  return `${used} ${fields[':status']}`
}

type Delivery = { readonly headers: IncomingHttpHeaders; readonly body: Buffer }

/** A receiver of webhooks on the public address, with a certificate of the CA. */
async function startReceiver(): Promise<Delivery[]> {
  const path = (name: string) => join(folder, name)
  const openssl = (line: string) => execFileSync('openssl', line.split(' '), { stdio: 'ignore' })
  writeFileSync(path('receiver.ext'), `subjectAltName=DNS:${RECEIVER}\n`)
  openssl(
    `req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout ${path('receiver.key')} ` +
      `-out ${path('receiver.csr')} -subj /CN=${RECEIVER}`,
  )
  openssl(
    `x509 -req -in ${path('receiver.csr')} -CA ${path('ca.pem')} -CAkey ${path('ca.key')} ` +
      `-CAcreateserial -days 2 -out ${path('receiver.pem')} -extfile ${path('receiver.ext')}`,
  )
  const received: Delivery[] = []
  const tls = { cert: readFileSync(path('receiver.pem')), key: readFileSync(path('receiver.key')) }
  const server = createServer(tls, (request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      received.push({ headers: request.headers, body: Buffer.concat(chunks) })
      response.writeHead(204).end()
    })
  })
  server.listen(443, PUBLIC_ADDRESS)
  await once(server, 'listening')
  return received
}

const received = await startReceiver()
const caller = callerOf(base)
const registration = await start(caller)
// Production refuses a proof that comes sooner.
await sleep(2_100)
const { body: workspace } = demand(await complete(caller, registration), 201)
const authorization = `Bearer ${String(workspace['tenant_access_token'])}`

const subscription = demand(
  await caller.post(
    '/api/v1/webhooks',
    { url: `https://${RECEIVER}/svc`, event_types: ['auth.login.success'] },
    { authorization },
  ),
  201,
).body

const clientId = String(workspace['client_id'])
const config = await oidc.discovery(
  new URL(base),
  clientId,
  { id_token_signed_response_alg: 'ES256' },
  oidc.ClientSecretBasic(String(workspace['client_secret'])),
)
const begun = await journey(
  { config },
  { redirect_uri: REDIRECT_URI, tenant_id: String(workspace['tenant_id']) },
)
const browser = openBrowser({ baseUrl: base, ca })
const person = workspace['fixture_end_user'] as Json
const page = await authorized(
  browser,
  { email: String(person['email']), password: String(person['password']) },
  begun.url,
)
const tokens = await oidc.authorizationCodeGrant(
  config,
  new URL(page.location ?? page.html),
  begun.checks,
)
await browser.close()

const deadline = Date.now() + 30_000
while (received.length === 0 && Date.now() < deadline) await sleep(100)
const [delivery] = received
const verdict =
  delivery === undefined
    ? { tag: 'none' }
    : receive(delivery.headers as Record<string, string>, delivery.body, {
        secrets: [String(subscription['secret'])],
        nowSecs: Math.floor(Date.now() / 1_000),
      })

process.stdout.write(
  `${JSON.stringify({
    issuer: config.serverMetadata().issuer,
    subject: tokens.claims()?.sub,
    http2: await protocolOf('h2'),
    http1: await protocolOf('http/1.1'),
    agent: (workspace['agent'] as Json)['status'],
    webhook: verdict,
    strictTransport: (await fetch(`${base}/health/ready`)).headers.get('strict-transport-security'),
  })}\n`,
)
process.exit(0)
