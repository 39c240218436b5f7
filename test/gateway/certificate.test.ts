/** A certificate that cannot be served is refused by the name of its file, before anything listens. */
import { mkdtempSync, readFileSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { X509Certificate } from 'node:crypto'
import { type ClientHttp2Session, connect } from 'node:http2'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TLSSocket } from 'node:tls'
import { setTimeout as sleep } from 'node:timers/promises'
import test from 'ava'
import { headerBlock } from '../../gateway/http-exchange.js'
import { openHttp2 } from '../../gateway/transports/http2.js'
import { ListenFailed } from '../../gateway/transports/open.js'
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
  ['no PEM', { certPath: nonsense, keyPath }, 'nonsense.pem holds no certificate chain'],
  ['a key in its place', { certPath: keyPath, keyPath }, `${keyPath} holds no certificate chain`],
  ['no key', { certPath, keyPath: nonsense }, 'nonsense.pem holds no private key'],
  ['the key of another', { certPath, keyPath: other.keyPath }, `${other.keyPath} is not that of`],
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

test('a renewed certificate is served to new connections, and ends none', async (t) => {
  const [second, third] = [makeCertificate(), makeCertificate()]
  const [cert, key] = [join(folder, 'live-cert.pem'), join(folder, 'live-key.pem')]
  // As those who renew certificates lay them: names that lead to the files of the day.
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
  const listener = await openHttp2({
    host: '127.0.0.1',
    port: 0,
    monotonicMs: () => performance.now(),
    tls: { certPath: cert, keyPath: key },
    renewal: { log, everyMs: 10 },
    handler: (exchange) =>
      exchange.send({ status: 204, block: headerBlock([]), headers: [], body: null }),
  })
  const sessions: ClientHttp2Session[] = []
  t.teardown(async () => {
    for (const session of sessions) session.destroy()
    await listener.close()
    second.remove()
    third.remove()
  })
  async function open() {
    const session = connect(listener.url, { rejectUnauthorized: false })
    sessions.push(session)
    t.is(await statusOf(session), 204)
    const print = (session.socket as TLSSocket).getPeerCertificate().fingerprint256
    return { session, print }
  }
  async function served(one: Certificate) {
    for (let tries = 0; tries < 500; tries += 1) {
      if ((await open()).print === printOf(one)) return true
      await sleep(20)
    }
    return false
  }

  const first = await open()
  t.is(first.print, printOf(own))
  lead(second)
  t.true(await served(second), 'the certificate that the name leads to now')
  t.is(await statusOf(first.session), 204)

  // What nobody can serve is told once, however often it is read, and the one before stays.
  renameSync(cert, `${cert}.kept`)
  writeFileSync(cert, 'nonsense')
  while (logged('cannot be served') === 0) await sleep(10)
  await sleep(100)
  t.is(logged('live-cert.pem holds no certificate chain'), 1)
  t.is((await open()).print, printOf(second))
  renameSync(`${cert}.kept`, cert)

  // In place, as a copy would be.
  rmSync(cert)
  rmSync(key)
  writeFileSync(key, readFileSync(third.keyPath))
  writeFileSync(cert, third.pem)
  t.true(await served(third), 'the certificate that was written in its place')
  t.is(await statusOf(first.session), 204)
  t.is((await open()).session.alpnProtocol, 'h2')
  t.is(lines.filter((line) => line.includes('PRIVATE KEY')).length, 0)
})
