/** A certificate that cannot be served is refused by the name of its file, before anything listens. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import test from 'ava'
import { openHttp2 } from '../../gateway/transports/http2.js'
import { ListenFailed } from '../../gateway/transports/open.js'
import { makeCertificate } from '../support/certificates.js'

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
