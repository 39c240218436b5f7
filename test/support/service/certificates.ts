/** Throwaway certificates for tests, written with node:crypto alone: one self-signed P-256 leaf. */
import { createSign, randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freshKeyPair } from '../../../runtime/kernel/key-pair.js'

export type Certificate = {
  readonly certPath: string
  readonly keyPath: string
  /** The certificate as PEM, for the trust store of a client. */
  readonly pem: string
  remove(): void
}

const SEQUENCE = 0x30
const SET = 0x31
const INTEGER = 0x02
const BIT_STRING = 0x03
const OCTET_STRING = 0x04
const OBJECT_ID = 0x06
const UTF8_STRING = 0x0c
const UTC_TIME = 0x17

/** One DER element: tag, length, content (X.690 section 8.1). */
function der(tag: number, ...parts: readonly Uint8Array[]): Buffer {
  const content = Buffer.concat(parts)
  const { length } = content
  const size =
    length < 0x80 ? [length] : length < 0x100 ? [0x81, length] : [0x82, length >> 8, length & 0xff]
  return Buffer.concat([Buffer.from([tag, ...size]), content])
}

function objectId(...arcs: readonly number[]): Buffer {
  const [first = 0, second = 0, ...rest] = arcs
  const bytes = [first * 40 + second]
  for (const arc of rest) {
    const groups = [arc & 0x7f]
    for (let left = arc >> 7; left > 0; left >>= 7) groups.unshift((left & 0x7f) | 0x80)
    bytes.push(...groups)
  }
  return der(OBJECT_ID, Buffer.from(bytes))
}

function utcTime(date: Date): Buffer {
  const text = `${date.toISOString().slice(2, 19).replaceAll(/[-:T]/g, '')}Z`
  return der(UTC_TIME, Buffer.from(text, 'ascii'))
}

function name(common: string): Buffer {
  const attribute = der(SEQUENCE, objectId(2, 5, 4, 3), der(UTF8_STRING, Buffer.from(common)))
  return der(SEQUENCE, der(SET, attribute))
}

/** A certificate for localhost, 127.0.0.1 and the hosts of tests, valid for a day around now. */
export function makeCertificate(): Certificate {
  const { publicKey, privateKey } = freshKeyPair('P-256')
  const algorithm = der(SEQUENCE, objectId(1, 2, 840, 10045, 4, 3, 2))
  const serial = randomBytes(8)
  serial[0] = (serial[0]! & 0x7f) | 0x40
  // A client tells two certificates apart by their names.
  const own = name(`svc test ${serial.toString('hex')}`)
  const dayMs = 86_400_000
  const validity = der(
    SEQUENCE,
    utcTime(new Date(Date.now() - dayMs)),
    utcTime(new Date(Date.now() + dayMs)),
  )
  const names = der(
    SEQUENCE,
    der(0x82, Buffer.from('localhost')),
    der(0x82, Buffer.from('id.test')),
    // Tests of tenant hosts have this base domain.
    der(0x82, Buffer.from('svc.example')),
    der(0x82, Buffer.from('*.svc.example')),
    der(0x87, Buffer.from([127, 0, 0, 1])),
  )
  const extension = der(SEQUENCE, objectId(2, 5, 29, 17), der(OCTET_STRING, names))
  const body = der(
    SEQUENCE,
    der(0xa0, der(INTEGER, Buffer.from([2]))),
    der(INTEGER, serial),
    algorithm,
    own,
    validity,
    own,
    publicKey.export({ type: 'spki', format: 'der' }),
    der(0xa3, der(SEQUENCE, extension)),
  )
  const signature = createSign('sha256').update(body).sign(privateKey)
  const whole = der(SEQUENCE, body, algorithm, der(BIT_STRING, Buffer.from([0]), signature))
  const base64 = whole.toString('base64').replaceAll(/(.{64})/g, '$1\n')
  const pem = `-----BEGIN CERTIFICATE-----\n${base64.trimEnd()}\n-----END CERTIFICATE-----\n`
  const folder = mkdtempSync(join(tmpdir(), 'svc-cert-'))
  const certPath = join(folder, 'cert.pem')
  const keyPath = join(folder, 'key.pem')
  writeFileSync(certPath, pem)
  writeFileSync(keyPath, privateKey.export({ type: 'pkcs8', format: 'pem' }), { mode: 0o600 })
  return { certPath, keyPath, pem, remove: () => rmSync(folder, { recursive: true, force: true }) }
}
