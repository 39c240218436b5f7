import test from 'ava'
import * as jose from 'jose'
import { freshKeyPair } from '../../../../runtime/kernel/key-pair.js'
import { importPublicJwk } from '../../../../actors/platform/jose/external-jwk.js'
import { isSignedBy, readJws } from '../../../../actors/platform/jose/external-jws.js'
import { verifyBytes } from '../../../../actors/platform/jose/own-jwt.js'

const b64 = (bytes: Uint8Array) => Buffer.from(bytes).toString('base64url')
const hex = (text: string) => Buffer.from(text, 'hex')

/** Order of the P-256 group (SEC 2 section 2.4.2) and of the Ed25519 group (RFC 8032 section 5.1). */
const N = 0xffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551n
const L = 2n ** 252n + 27742317777372353535851937790883648493n
/** The field of Ed25519. */
const P = 2n ** 255n - 19n

const bigEndian = (value: bigint) => hex(value.toString(16).padStart(64, '0'))
const littleEndian = (value: bigint) => Buffer.from(bigEndian(value).toReversed())
const fromLittleEndian = (bytes: Uint8Array) =>
  BigInt(`0x${Buffer.from(bytes.toReversed()).toString('hex')}`)

/** The example key of RFC 7517 appendix A.1 and the Ed25519 key of RFC 8037 appendix A.2. */
const ec = {
  kty: 'EC',
  crv: 'P-256',
  x: 'MKBCTNIcKUSDii11ySs3526iDZ8AiTo7Tu6KPAqv7D4',
  y: '4Etl6SRW2YiLUrN5vfvVHuhp7x8PxltmWWlbbM4IFyM',
} as const
const okp = {
  kty: 'OKP',
  crv: 'Ed25519',
  x: '11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo',
} as const

test('the keys of the RFCs import, with the thumbprint of RFC 8037 appendix A.3', async (t) => {
  const [key, other] = [await importPublicJwk(okp), await importPublicJwk(ec)]
  t.is(key?.thumbprint, 'kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k')
  t.is(key?.algorithm, 'EdDSA')
  t.is(other?.algorithm, 'ES256')
  t.is(other?.thumbprint, await jose.calculateJwkThumbprint(ec))
  const stated = { ...ec, use: 'sig', alg: 'ES256', kid: 'anything', key_ops: ['verify'] }
  t.is(await importPublicJwk(stated), other, 'imported once')
})

for (const [title, jwk] of [
  ['nothing', undefined],
  ['a string', 'key'],
  ['an array', [ec]],
  ['a private member', { ...ec, d: ec.x }],
  ['a symmetric member', { ...okp, k: okp.x }],
  ['a member of a private RSA key', { ...ec, oth: [] }],
  ['a use that does not match', { ...ec, use: 'enc' }],
  ['key_ops without verify', { ...ec, key_ops: ['sign'] }],
  ['key_ops that are no list', { ...ec, key_ops: 'verify' }],
  ['the alg of the other key type', { ...ec, alg: 'ES384' }],
  ['the algorithm of the other kind', { ...okp, alg: 'ES256' }],
  ['RSA', { kty: 'RSA', n: 'AQAB', e: 'AQAB' }],
  ['a symmetric key', { kty: 'oct', k: 'AQAB' }],
  ['P-384', { ...ec, crv: 'P-384' }],
  ['secp256k1', { ...ec, crv: 'secp256k1' }],
  ['X25519', { ...okp, crv: 'X25519' }],
  ['Ed448', { ...okp, crv: 'Ed448' }],
  ['no y', { kty: 'EC', crv: 'P-256', x: ec.x }],
  ['x and y swapped: a point that is not on the curve', { ...ec, x: ec.y, y: ec.x }],
  ['the point (0, 0)', { ...ec, x: b64(new Uint8Array(32)), y: b64(new Uint8Array(32)) }],
  ['a coordinate of 31 bytes', { ...ec, x: b64(new Uint8Array(31)) }],
  [
    'a coordinate with a leading zero byte',
    { ...ec, x: b64(Buffer.concat([hex('00'), Buffer.from(ec.x, 'base64url')])) },
  ],
  ['padding', { ...ec, x: `${ec.x}=` }],
  ['stray bits', { ...okp, x: okp.x.replace(/o$/, 'p') }],
  ['the alphabet of base64', { ...okp, x: okp.x.replaceAll('_', '/') }],
  ['a number as coordinate', { ...okp, x: 1 }],
] as const) {
  test(`a JWK with ${title} is refused`, async (t) => t.is(await importPublicJwk(jwk), undefined))
}

/** The y of the points of order 1, 2, 4 and 8, and their unreduced spellings. */
function smallOrderSpellings(): Buffer[] {
  const y8 = fromLittleEndian(
    hex('26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05'),
  )
  const ys = [0n, 1n, P - 1n, y8, P - y8, P, P + 1n]
  return ys.flatMap((y) => {
    const plain = littleEndian(y)
    const signed = Buffer.from(plain)
    signed[31]! |= 0x80
    return [plain, signed]
  })
}

test('the listed y of order 8 is correct: doubling it twice gives y = 0, of order 4', (t) => {
  const y = fromLittleEndian(
    hex('26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05'),
  )
  const power = (base: bigint, exponent: bigint): bigint =>
    exponent === 0n
      ? 1n
      : exponent % 2n === 1n
        ? (base * power(base, exponent - 1n)) % P
        : power((base * base) % P, exponent / 2n)
  const invert = (value: bigint) => power(((value % P) + P) % P, P - 2n)
  const d = ((P - 121665n) * invert(121666n)) % P
  const ySquared = (y * y) % P
  const xSquared = ((ySquared - 1n + P) * invert(d * ySquared + 1n)) % P
  // RFC 8032 section 5.1.4: the y of a doubled point is (y^2 + x^2) / (1 - d x^2 y^2).
  t.is((ySquared + xSquared) % P, 0n)
  t.is((xSquared * power(xSquared, P - 2n)) % P, 1n, 'and x is not zero')
})

test('Ed25519 keys of small order are refused in every spelling', async (t) => {
  for (const spelling of smallOrderSpellings()) {
    t.is(await importPublicJwk({ kty: 'OKP', crv: 'Ed25519', x: b64(spelling) }), undefined)
  }
})

const message = Buffer.from('message')

test('ES256: r and s outside of 1..n-1 are refused, and a high s is accepted like a low one', async (t) => {
  const { sign } = await import('node:crypto')
  const { publicKey, privateKey } = freshKeyPair('P-256')
  const key = { algorithm: 'ES256', publicKey } as const
  const signature = sign('sha256', message, { key: privateKey, dsaEncoding: 'ieee-p1363' })
  const [r, s] = [signature.subarray(0, 32), signature.subarray(32)]
  t.true(verifyBytes(key, message, signature))
  const mirrored = bigEndian(N - BigInt(`0x${s.toString('hex')}`))
  t.true(verifyBytes(key, message, Buffer.concat([r, mirrored])))
  const zero = Buffer.alloc(32)
  for (const [title, bytes] of [
    ['r = 0', [zero, s]],
    ['s = 0', [r, zero]],
    ['r = s = 0', [zero, zero]],
    ['r = n', [bigEndian(N), s]],
    ['s = n', [r, bigEndian(N)]],
    ['r = s = n', [bigEndian(N), bigEndian(N)]],
    ['r = n - 1', [bigEndian(N - 1n), s]],
    ['r = n + 1', [bigEndian(N + 1n), s]],
    ['r = s = 1', [bigEndian(1n), bigEndian(1n)]],
    ['r = s = 2^256 - 1', [Buffer.alloc(32, 255), Buffer.alloc(32, 255)]],
    ['swapped', [s, r]],
    ['63 bytes', [r, s.subarray(0, 31)]],
    ['65 bytes', [r, s, hex('00')]],
    ['0 bytes', []],
  ] as const) {
    t.false(verifyBytes(key, message, Buffer.concat(bytes)), title)
  }
})

test('EdDSA: S not below L, changed R and other lengths are refused', async (t) => {
  const { sign } = await import('node:crypto')
  const { publicKey, privateKey } = freshKeyPair('ed25519')
  const key = { algorithm: 'EdDSA', publicKey } as const
  const signature = sign(null, message, privateKey)
  const [r, s] = [signature.subarray(0, 32), fromLittleEndian(signature.subarray(32))]
  t.true(verifyBytes(key, message, signature))
  // RFC 8032 section 5.1.7: S + L must be refused, because it would be a second spelling.
  t.false(verifyBytes(key, message, Buffer.concat([r, littleEndian(s + L)])), 'S + L')
  t.false(verifyBytes(key, message, Buffer.concat([r, littleEndian(L)])), 'S = L')
  t.false(verifyBytes(key, message, Buffer.concat([r, littleEndian(0n)])), 'S = 0')
  t.false(verifyBytes(key, message, Buffer.concat([r, Buffer.alloc(32, 255)])), 'S all ones')
  t.false(verifyBytes(key, message, Buffer.alloc(64)), 'all zero')
  for (const spelling of smallOrderSpellings()) {
    t.false(verifyBytes(key, message, Buffer.concat([spelling, signature.subarray(32)])))
  }
  t.false(verifyBytes(key, message, signature.subarray(0, 63)))
  t.false(verifyBytes(key, message, Buffer.concat([signature, hex('00')])))
})

test('the signatures of RFC 8032 section 7.1 verify', async (t) => {
  for (const [key, message, signature] of [
    [
      'd75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a',
      '',
      'e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b',
    ],
    [
      '3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c',
      '72',
      '92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00',
    ],
    [
      'fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025',
      'af82',
      '6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac18ff9b538d16f290ae67f760984dc6594a7c15e9716ed28dc027beceea1ec40a',
    ],
  ] as const) {
    const imported = await importPublicJwk({ kty: 'OKP', crv: 'Ed25519', x: b64(hex(key)) })
    const { publicKey } = imported!
    t.true(await crypto.subtle.verify('Ed25519', publicKey, hex(signature), hex(message)))
  }
})

test('the ES256 example of RFC 7515 appendix A.3 verifies', async (t) => {
  const key = await importPublicJwk({
    kty: 'EC',
    crv: 'P-256',
    x: 'f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU',
    y: 'x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0',
  })
  const input =
    'eyJhbGciOiJFUzI1NiJ9.eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ'
  const signature =
    'DtEhU3ljbEg8L38VWAfUAqOyKAM6-Xx-F4GawxaepmXFCgfTjDxw5djxLa8ISlSApmWQxfKTUJqPP3-Kg6NU1Q'
  t.true(await isSignedBy(readJws(`${input}.${signature}`)!, key!))
})
