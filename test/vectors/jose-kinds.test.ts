/**
 * The kinds of cases of Wycheproof's sets for JWS and JWK documents, with keys of the two algorithms
 * of the service: the published files are not in any package that the build can install.
 * test/actors/platform/jose/external-jws.test.ts has the same for the single parts of a token.
 */
import { createHmac, generateKeyPairSync, type KeyObject, randomBytes, sign } from 'node:crypto'
import test from 'ava'
import { freshKeyPair } from '../../runtime/kernel/key-pair.js'
import { importPublicJwk } from '../../actors/platform/jose/external-jwk.js'
import { isSignedBy, readJws } from '../../actors/platform/jose/external-jws.js'

const b64 = (text: string | Uint8Array) => Buffer.from(text).toString('base64url')
const ec = () => freshKeyPair('P-256')
const PAIRS = [
  ['ES256', ec()],
  ['EdDSA', freshKeyPair('ed25519')],
] as const
const PAYLOAD = { foo: 'bar' }

function signed(alg: string, header: object, key: KeyObject, payload: object = PAYLOAD): string {
  const input = `${b64(JSON.stringify({ alg, kid: 'kid', ...header }))}.${b64(JSON.stringify(payload))}`
  const signature =
    alg === 'ES256'
      ? sign('sha256', Buffer.from(input), { key, dsaEncoding: 'ieee-p1363' })
      : sign(null, Buffer.from(input), key)
  return `${input}.${b64(signature)}`
}

async function accepted(token: string, jwk: unknown): Promise<boolean> {
  const jws = readJws(token)
  const key = await importPublicJwk(jwk)
  if (key === undefined) throw new Error('the key is not accepted')
  return jws !== undefined && isSignedBy(jws, key)
}

for (const [alg, { publicKey, privateKey }] of PAIRS) {
  const jwk = publicKey.export({ format: 'jwk' })
  const good = signed(alg, {}, privateKey)
  const [header, payload, signature] = good.split('.') as [string, string, string]
  const other = alg === 'ES256' ? ec() : freshKeyPair('ed25519')
  const flattened = { payload, protected: header, signature }
  const mac = (secret: string | Uint8Array) => {
    const input = `${b64('{"alg":"HS256","kid":"kid"}')}.${payload}`
    return `${input}.${createHmac('sha256', secret).update(input).digest('base64url')}`
  }
  const none = b64('{"alg":"none","kid":"kid"}')
  const flipped = Buffer.from(signature, 'base64url')
  flipped[0]! ^= 0x80

  test(`${alg}: a signed token is accepted`, async (t) => t.true(await accepted(good, jwk)))

  for (const [kind, token] of [
    ['a changed signature', `${header}.${payload}.${b64(flipped)}`],
    ['no signature', `${header}.${payload}.`],
    ['no signature and no dot', `${header}.${payload}`],
    ['a changed payload', `${header}.${b64('{"foo":"baz"}')}.${signature}`],
    ['no payload', `${header}..${signature}`],
    ['no payload and no dot', `${header}.${signature}`],
    ['a changed header', `${b64(JSON.stringify({ alg, kid: 'Kid' }))}.${payload}.${signature}`],
    ['no header', `.${payload}.${signature}`],
    ['no header and no dot', `${payload}.${signature}`],
    ['only a payload', payload],
    ['a payload between dots', `.${payload}.`],
    ['nothing', ''],
    ['an extra empty part', `${good}.`],
    ['an extra part', `${good}.foo`],
    ['the algorithm none and no signature', `${none}.${payload}.`],
    ['the algorithm none and the signature', `${none}.${payload}.${signature}`],
    ['the JSON serialization, flattened', JSON.stringify(flattened)],
    ['the JSON serialization', JSON.stringify({ payload, signatures: [flattened] })],
    [
      'a MAC keyed with the public key as PEM',
      mac(publicKey.export({ format: 'pem', type: 'spki' })),
    ],
    [
      'a MAC keyed with the public key as DER',
      mac(publicKey.export({ format: 'der', type: 'spki' })),
    ],
    ['a MAC keyed with the public key as JWK', mac(JSON.stringify(jwk))],
    ['a MAC keyed with its coordinate', mac(Buffer.from(jwk.x!, 'base64url'))],
    [
      'the key of an attacker in the header',
      signed(alg, { jwk: other.publicKey.export({ format: 'jwk' }) }, other.privateKey),
    ],
    ['a foreign key', signed(alg, {}, other.privateKey)],
    [
      'white space in the header',
      `${header.slice(0, 4)} ${header.slice(4)}.${payload}.${signature}`,
    ],
    [
      'a newline in the payload',
      `${header}.${payload.slice(0, 4)}\n${payload.slice(4)}.${signature}`,
    ],
    [
      'white space in the signature',
      `${header}.${payload}.${signature.slice(0, 4)}\t${signature.slice(4)}`,
    ],
    ['padding of the signature', `${good}==`],
    ['padding of the payload', `${header}.${payload}=.${signature}`],
    ['bytes between the characters', `${header}.${payload}.\u0000${signature}`],
    ['a signature twice as long', `${header}.${payload}.${signature}${signature}`],
  ] as const) {
    test(`${alg}: ${kind} is refused`, async (t) => t.false(await accepted(token, jwk)))
  }

  // RFC 8725 section 3.1: a key is used with one known algorithm only.
  test(`${alg}: a header with the other algorithm is refused`, async (t) => {
    const wrong = alg === 'ES256' ? 'EdDSA' : 'ES256'
    const swapped = b64(JSON.stringify({ alg: wrong, kid: 'kid' }))
    t.false(await accepted(`${swapped}.${payload}.${signature}`, jwk))
  })
}

const p256 = PAIRS[0][1].publicKey.export({ format: 'jwk' })
const rsa = (bits: number, publicExponent = 65_537) =>
  generateKeyPairSync('rsa', { modulusLength: bits, publicExponent }).publicKey.export({
    format: 'jwk',
  })
const curve = (namedCurve: string) =>
  generateKeyPairSync('ec', { namedCurve }).publicKey.export({ format: 'jwk' })

for (const [kind, jwk] of [
  ['a symmetric key', { kty: 'oct', alg: 'HS256', k: b64(randomBytes(32)) }],
  ['a symmetric member in a public key', { ...p256, k: b64(randomBytes(32)) }],
  ['a private key', PAIRS[0][1].privateKey.export({ format: 'jwk' })],
  ['a private key of Ed25519', PAIRS[1][1].privateKey.export({ format: 'jwk' })],
  ['an RSA key', rsa(2048)],
  ['a small RSA key', rsa(1024)],
  ['an RSA key with exponent 3', rsa(2048, 3)],
  ['an RSA key with exponent 1', { ...rsa(2048), e: 'AQ' }],
  ['a key for encryption', { ...p256, use: 'enc' }],
  ['a key for another algorithm', { ...p256, alg: 'ES384' }],
  ['a key for a MAC', { ...p256, alg: 'HS256' }],
  ['a key for key agreement', { ...p256, alg: 'ECDH-ES' }],
  ['P-384', curve('P-384')],
  ['P-521', curve('P-521')],
  ['secp256k1', curve('secp256k1')],
  ['X25519', generateKeyPairSync('x25519').publicKey.export({ format: 'jwk' })],
  ['Ed448', generateKeyPairSync('ed448').publicKey.export({ format: 'jwk' })],
  ['a point that is not on its curve', { ...p256, y: p256.x }],
  ['a point of another curve under this name', { ...curve('secp256k1'), crv: 'P-256' }],
  [
    'a coordinate with a zero before it',
    { ...p256, x: b64(Buffer.concat([Buffer.alloc(1), Buffer.from(p256.x!, 'base64url')])) },
  ],
  ['a set instead of a key', { keys: [p256] }],
  ['an array', [p256]],
  ['null', null],
  ['text', JSON.stringify(p256)],
] as const) {
  test(`${kind} is not accepted as a client key`, async (t) =>
    t.is(await importPublicJwk(jwk), undefined))
}
