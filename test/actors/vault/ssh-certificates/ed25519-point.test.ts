/** Validation of Ed25519 public keys (RFC 8032 section 5.1.3). */
import { generateKeyPairSync } from 'node:crypto'
import test from 'ava'
import { isSoundPoint } from '../../../../actors/vault/ssh-certificates/keys.js'
import { readPublicKey } from '../../../../actors/vault/ssh-certificates/keys.js'
import { publicKeyLine, string } from '../../../../actors/vault/ssh-certificates/wire.js'

const P = 2n ** 255n - 19n
/** Every encoding of a point of small order: canonical, past p, and with a sign where x is 0. */
const SMALL = [
  0n,
  1n,
  P - 1n,
  P,
  P + 1n,
  2707385501144840649318225287225658788936804267575313519463743609750303402022n,
  55188659117513257062467267217118295137698188065244968500265048394206261417927n,
].flatMap((y) => [encoded(y), encoded(y + 2n ** 255n)])

function encoded(y: bigint): Buffer {
  return Buffer.from(Buffer.from(y.toString(16).padStart(64, '0'), 'hex').toReversed())
}

const lineOf = (point: Uint8Array) =>
  publicKeyLine('ssh-ed25519', Buffer.concat([string('ssh-ed25519'), string(Buffer.from(point))]))

test('public keys of private keys are accepted', (t) => {
  for (let count = 0; count < 200; count += 1) {
    const { x = '' } = generateKeyPairSync('ed25519').publicKey.export({ format: 'jwk' })
    const point = Buffer.from(x, 'base64url')
    t.true(isSoundPoint(point), point.toString('hex'))
    t.not(readPublicKey(lineOf(point)), undefined)
  }
})

test('points of small order are refused, in every encoding', (t) => {
  for (const point of SMALL) {
    t.false(isSoundPoint(point), point.toString('hex'))
    t.is(readPublicKey(lineOf(point)), undefined)
  }
})

test('encodings past p, points off the curve and other lengths are refused', (t) => {
  for (let y = P; y < 2n ** 255n; y += 1n) t.false(isSoundPoint(encoded(y)))
  // About half of all y are valid: 3 is, 2 is not.
  t.false(isSoundPoint(encoded(2n)))
  t.true(isSoundPoint(encoded(3n)))
  t.false(isSoundPoint(encoded(3n).subarray(0, 31)))
  t.false(isSoundPoint(Buffer.concat([encoded(3n), Buffer.alloc(1)])))
})
