/** Attacks with DPoP proofs (RFC 9449 sections 4.3 and 11). */
import { createHash, type KeyObject, sign } from 'node:crypto'
import test from 'ava'
import { calculateJwkThumbprint, exportJWK, SignJWT } from 'jose'
import { freshKeyPair } from '../../../../runtime/kernel/key-pair.js'
import {
  accessTokenHash,
  type ProofContext,
  readProof,
} from '../../../../actors/oauth/tokens/verify/dpop.js'

const NOW = 1_900_000_000
const URL = 'https://auth.example/oauth/token'
const context: ProofContext = {
  httpMethod: 'POST',
  httpUrl: URL,
  nowSecs: NOW,
  ageSecsMax: 300,
  accessToken: null,
}
const p256 = freshKeyPair('P-256')
const other = freshKeyPair('P-256')
const ed25519 = freshKeyPair('ed25519')
const claims = { jti: 'one', htm: 'POST', htu: URL, iat: NOW }

async function header(publicKey: KeyObject, more: Record<string, unknown> = {}) {
  const alg = publicKey.asymmetricKeyType === 'ec' ? 'ES256' : 'EdDSA'
  return { alg, typ: 'dpop+jwt', jwk: await exportJWK(publicKey), ...more }
}

/** Signs any header and payload, so that tests can make malformed ones. */
function forge(head: unknown, payload: unknown, key: KeyObject = p256.privateKey): string {
  const part = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url')
  const input = `${part(head)}.${part(payload)}`
  const signature =
    key.asymmetricKeyType === 'ec'
      ? sign('sha256', Buffer.from(input), { key, dsaEncoding: 'ieee-p1363' })
      : sign(null, Buffer.from(input), key)
  return `${input}.${signature.toString('base64url')}`
}

for (const { publicKey, privateKey } of [p256, ed25519]) {
  test(`a proof made by jose with an ${publicKey.asymmetricKeyType} key is accepted`, async (t) => {
    const head = await header(publicKey)
    const proof = await new SignJWT(claims).setProtectedHeader(head as never).sign(privateKey)
    const read = await readProof(proof, context)
    t.deepEqual(read, {
      jkt: await calculateJwkThumbprint(head.jwk),
      id: 'one',
      issuedAtSecs: NOW,
      nonce: null,
    })
  })
}

const accepted: [string, Record<string, unknown>, Partial<ProofContext>][] = [
  ['a query in htu', { htu: `${URL}?a=b` }, {}],
  ['a fragment in htu', { htu: `${URL}#x` }, {}],
  ['an explicit default port', { htu: 'https://auth.example:443/oauth/token' }, {}],
  ['an upper-case host', { htu: 'https://AUTH.example/oauth/token' }, {}],
  ['an iat ten seconds ahead', { iat: NOW + 10 }, {}],
  ['an iat at the edge of the window', { iat: NOW - 300 }, {}],
  ['an exp in the future', { exp: NOW + 1 }, {}],
  ['a nonce', { nonce: 'n' }, {}],
  ['the hash of the token', { ath: accessTokenHash('token') }, { accessToken: 'token' }],
]
for (const [title, change, more] of accepted) {
  test(`a proof with ${title} is accepted`, async (t) => {
    const proof = forge(await header(p256.publicKey), { ...claims, ...change })
    t.false('fault' in (await readProof(proof, { ...context, ...more })))
  })
}

const refused: [string, Record<string, unknown>, Partial<ProofContext>][] = [
  ['no jti', { jti: undefined }, {}],
  ['an empty jti', { jti: '' }, {}],
  ['a jti of 257 characters', { jti: 'x'.repeat(257) }, {}],
  ['another method', { htm: 'GET' }, {}],
  ['a lower-case method', { htm: 'post' }, {}],
  ['no method', { htm: undefined }, {}],
  ['another path', { htu: 'https://auth.example/oauth/introspect' }, {}],
  ['a path in another case', { htu: 'https://auth.example/OAuth/token' }, {}],
  ['a trailing slash', { htu: `${URL}/` }, {}],
  ['another scheme', { htu: 'http://auth.example/oauth/token' }, {}],
  ['another host', { htu: 'https://evil.example/oauth/token' }, {}],
  ['another port', { htu: 'https://auth.example:8443/oauth/token' }, {}],
  ['a relative htu', { htu: '/oauth/token' }, {}],
  ['an opaque htu', { htu: 'urn:x' }, {}],
  ['no htu', { htu: undefined }, {}],
  ['an iat too old', { iat: NOW - 301 }, {}],
  ['an iat in the future', { iat: NOW + 61 }, {}],
  ['an iat as a string', { iat: String(NOW) }, {}],
  ['a fractional iat too far ahead', { iat: NOW + 60.5 }, {}],
  ['no iat', { iat: undefined }, {}],
  ['an expired exp', { exp: NOW }, {}],
  ['an nbf in the future', { nbf: NOW + 61 }, {}],
  ['a nonce that is a number', { nonce: 7 }, {}],
  ['no ath with a token', {}, { accessToken: 'token' }],
  ['the hash of another token', { ath: accessTokenHash('other') }, { accessToken: 'token' }],
  [
    'a hexadecimal ath',
    { ath: createHash('sha256').update('token').digest('hex') },
    { accessToken: 'token' },
  ],
]
for (const [title, change, more] of refused) {
  test(`a proof with ${title} is refused`, async (t) => {
    const proof = forge(await header(p256.publicKey), { ...claims, ...change })
    t.true('fault' in (await readProof(proof, { ...context, ...more })))
  })
}

const jwk = () => exportJWK(p256.publicKey)
const badHeaders: [string, () => Promise<Record<string, unknown>>][] = [
  ['alg none', () => header(p256.publicKey, { alg: 'none' })],
  ['alg HS256', () => header(p256.publicKey, { alg: 'HS256' })],
  ['alg of another key type', () => header(p256.publicKey, { alg: 'EdDSA' })],
  ['Ed25519 as alg of a P-256 key', () => header(p256.publicKey, { alg: 'Ed25519' })],
  ['ed25519 in lower case', () => header(p256.publicKey, { alg: 'ed25519' })],
  ['Ed448', () => header(p256.publicKey, { alg: 'Ed448' })],
  ['an array as alg', () => header(p256.publicKey, { alg: ['ES256'] })],
  ['no typ', () => header(p256.publicKey, { typ: undefined })],
  ['typ JWT', () => header(p256.publicKey, { typ: 'JWT' })],
  ['typ at+jwt', () => header(p256.publicKey, { typ: 'at+jwt' })],
  ['crit', () => header(p256.publicKey, { crit: ['b64'] })],
  ['no jwk', () => header(p256.publicKey, { jwk: undefined })],
  ['a private jwk', async () => header(p256.publicKey, { jwk: await exportJWK(p256.privateKey) })],
  [
    'the jwk of another key',
    async () => header(p256.publicKey, { jwk: await exportJWK(other.publicKey) }),
  ],
  ['a symmetric jwk', () => header(p256.publicKey, { jwk: { kty: 'oct', k: 'AAAA' } })],
  [
    'a jwk on another curve',
    async () => header(p256.publicKey, { jwk: { ...(await jwk()), crv: 'P-384' } }),
  ],
  [
    'a point off the curve',
    async () => header(p256.publicKey, { jwk: { ...(await jwk()), y: 'A'.repeat(43) } }),
  ],
  [
    'a coordinate one byte short',
    async () => header(p256.publicKey, { jwk: { ...(await jwk()), x: 'AAAA' } }),
  ],
  ['an array as jwk', () => header(p256.publicKey, { jwk: [] })],
]
for (const [title, make] of badHeaders) {
  test(`a proof with ${title} in its header is refused`, async (t) =>
    t.true('fault' in (await readProof(forge(await make(), claims), context))))
}

test('anything but one compact JWS is refused', async (t) => {
  const proof = forge(await header(p256.publicKey), claims)
  const [head, body, signature] = proof.split('.') as [string, string, string]
  for (const text of [
    '',
    'x',
    `${proof}, ${proof}`,
    `${proof},${proof}`,
    `${proof}.x`,
    `${proof}.x.y`,
    ` ${proof}`,
    `${proof}=`,
    `${head}.${body}.`,
    `${head}.${body}`,
    `${head}.${body}.${signature.slice(0, -4)}`,
    `${head}.${Buffer.from('[]').toString('base64url')}.${signature}`,
    'a'.repeat(20_000),
  ])
    t.true('fault' in (await readProof(text, context)), text.slice(0, 40))
  t.false('fault' in (await readProof(proof, context)))
})

test('a proof whose payload was changed after signing is refused', async (t) => {
  const [head, , signature] = forge(await header(p256.publicKey), claims).split('.')
  const body = Buffer.from(JSON.stringify({ ...claims, jti: 'two' })).toString('base64url')
  t.true('fault' in (await readProof(`${head}.${body}.${signature}`, context)))
})
