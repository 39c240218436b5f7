/** An invalid certificate is refused by the name of its file, before the service listens. */
import { once } from 'node:events'
import { mkdtempSync, readFileSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { X509Certificate } from 'node:crypto'
import { type ClientHttp2Session, connect } from 'node:http2'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { connect as connectTls, type TLSSocket } from 'node:tls'
import { setTimeout as sleep } from 'node:timers/promises'
import test, { type ExecutionContext } from 'ava'
import { headerBlock, type HttpExchange, type Listener } from '../../gateway/http-exchange.js'
import type { CertificateFiles, Renewal } from '../../gateway/transports/certificate.js'
import { openHttp2 } from '../../gateway/transports/http2.js'
import { loadNative } from '../../gateway/transports/native.js'
import { ListenFailed } from '../../gateway/transports/open.js'
import { openUws } from '../../gateway/transports/uws-listener.js'
import { createLogger } from '../../runtime/kernel/log.js'
import { type Certificate, makeCertificate } from '../support/service/certificates.js'

const [own, other] = [makeCertificate(), makeCertificate()]
const folder = mkdtempSync(join(tmpdir(), 'svc-certificate-'))
const nonsense = join(folder, 'nonsense.pem')
writeFileSync(nonsense, 'nonsense')
test.after.always(() => {
  own.remove()
  other.remove()
  rmSync(folder, { recursive: true, force: true })
})

const { certPath, keyPath } = own
for (const [title, tls, message] of [
  [
    'no PEM',
    { certPath: nonsense, keyPath },
    'nonsense.pem does not contain a PEM certificate chain',
  ],
  [
    'a key in its place',
    { certPath: keyPath, keyPath },
    `${keyPath} does not contain a PEM certificate chain`,
  ],
  ['no key', { certPath, keyPath: nonsense }, 'nonsense.pem does not contain a PEM private key'],
  ['the key of another', { certPath, keyPath: other.keyPath }, `${other.keyPath} does not match`],
  ['no file', { certPath: join(folder, 'none.pem'), keyPath }, 'cannot read'],
] as const) {
  test(`a certificate with ${title} is refused by name`, async (t) => {
    const options = { host: '127.0.0.1', port: 0, handler: () => undefined, monotonicMs: () => 0 }
    const error = await t.throwsAsync(openHttp2({ ...options, tls }), { instanceOf: ListenFailed })
    t.true(error.message.includes(message), error.message)
  })
}

const printOf = ({ pem }: Certificate) => new X509Certificate(pem).fingerprint256

function statusOf(session: ClientHttp2Session): Promise<number> {
  return new Promise((resolve, reject) => {
    const stream = session.request({ ':path': '/' })
    stream.once('response', (fields) => resolve(fields[':status']!))
    stream.once('error', reject)
    stream.resume()
    stream.end()
  })
}

type Open = (
  tls: CertificateFiles,
  renewal: Renewal,
  handler: (exchange: HttpExchange) => void,
) => Promise<Listener>

const at = { host: '127.0.0.1', port: 0, monotonicMs: () => performance.now() }
const LISTENERS: Readonly<Record<string, Open>> = {
  tls_h2_only: (tls, renewal, handler) => openHttp2({ ...at, tls, renewal, handler }),
  tls_http1: (files, renewal, handler) => {
    const native = loadNative()
    if (native.tag === 'refused') throw new Error(native.reason)
    return openUws(native.uws, { ...at, tls: { files, renewal }, handler })
  },
}

/** A connection that stays, and the certificate that it was made with. */
async function connection(t: ExecutionContext, { url, transport }: Listener) {
  if (transport === 'http2') {
    const session = connect(url, { rejectUnauthorized: false })
    t.teardown(() => session.destroy())
    const status = () => statusOf(session)
    t.is(await status(), 204)
    t.is(session.alpnProtocol, 'h2')
    return { status, print: (session.socket as TLSSocket).getPeerCertificate().fingerprint256 }
  }
  const socket = connectTls({ port: Number(new URL(url).port), rejectUnauthorized: false })
  t.teardown(() => socket.destroy())
  await once(socket, 'secureConnect')
  const status = async () => {
    socket.write('GET / HTTP/1.1\r\nhost: id.test\r\n\r\n')
    const [answer] = (await once(socket, 'data')) as [Buffer]
    return Number(answer.toString().split(' ')[1])
  }
  t.is(await status(), 204)
  return { status, print: socket.getPeerCertificate().fingerprint256 }
}

function unlessReset(error: NodeJS.ErrnoException): undefined {
  if (error.code !== 'ECONNRESET') throw error
}

for (const [name, openListener] of Object.entries(LISTENERS)) {
  test(`${name}: a renewed certificate is served to new connections, and ends none`, async (t) => {
    await renewed(t, name, openListener)
  })
}

async function renewed(t: ExecutionContext, name: string, openListener: Open): Promise<void> {
  const [second, third] = [makeCertificate(), makeCertificate()]
  const [cert, key] = [join(folder, `${name}-cert.pem`), join(folder, `${name}-key.pem`)]
  // As ACME clients do: links to the current files.
  const lead = (one: Certificate) => {
    for (const [name, path] of [
      [key, one.keyPath],
      [cert, one.certPath],
    ] as const) {
      symlinkSync(path, `${name}.new`)
      renameSync(`${name}.new`, name)
    }
  }
  lead(own)
  const lines: string[] = []
  const logged = (text: string) => lines.filter((line) => line.includes(text)).length
  const log = createLogger({ level: 'info', destination: { write: (line) => lines.push(line) } })
  const listener = await openListener(
    { certPath: cert, keyPath: key },
    { log, everyMs: 10 },
    (exchange) => exchange.send({ status: 204, block: headerBlock([]), headers: [], body: null }),
  )
  t.teardown(async () => {
    await listener.close()
    second.remove()
    third.remove()
  })
  const open = () => connection(t, listener)
  async function served(one: Certificate) {
    for (let tries = 0; tries < 500; tries += 1) {
      // The kernel resets a connection that waits at the socket which closes, and clients connect again.
      const opened = await open().catch(unlessReset)
      if (opened?.print === printOf(one)) return true
      await sleep(20)
    }
    return false
  }

  const first = await open()
  t.is(first.print, printOf(own))
  lead(second)
  t.true(await served(second), 'the certificate that the name leads to now')
  t.is(await first.status(), 204)

  // An invalid certificate is logged once, and the one before is still served.
  renameSync(cert, `${cert}.kept`)
  writeFileSync(cert, 'nonsense')
  while (logged('the old one is still used') === 0) await sleep(10)
  await sleep(100)
  t.is(logged(`${name}-cert.pem does not contain a PEM certificate chain`), 1)
  t.is((await open()).print, printOf(second))
  renameSync(`${cert}.kept`, cert)

  // Overwritten in place, as by a copy.
  rmSync(cert)
  rmSync(key)
  writeFileSync(key, readFileSync(third.keyPath))
  writeFileSync(cert, third.pem)
  t.true(await served(third), 'the certificate that was written in its place')
  t.is(await first.status(), 204)
  t.is(lines.filter((line) => line.includes('PRIVATE KEY')).length, 0)
}
