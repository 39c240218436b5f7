import { createHmac, createPublicKey, type KeyObject, sign } from 'node:crypto'
import test from 'ava'
import * as fc from 'fast-check'
import * as jose from 'jose'
import { freshKeyPair } from '../../../../runtime/kernel/key-pair.js'
import { importPublicJwk } from '../../../../actors/platform/jose/jwk.js'
import {
  decodeJwt,
  JWT_CHARACTERS_MAX,
  type SigningKey,
  signJwt,
  type VerificationKey,
  type VerifyOptions,
  verifyJwt,
} from '../../../../actors/platform/jose/jwt.js'
import { runs } from '../../../support/runs.js'

const NOW = 1_900_000_000
const es256Pair = freshKeyPair('P-256')
const eddsaPair = freshKeyPair('ed25519')
const es256: SigningKey = { kid: 'es', algorithm: 'ES256', privateKey: es256Pair.privateKey }
const eddsa: SigningKey = { kid: 'ed', algorithm: 'EdDSA', privateKey: eddsaPair.privateKey }
const publicKeys: Record<string, VerificationKey> = {
  es: { algorithm: 'ES256', publicKey: es256Pair.publicKey },
  ed: { algorithm: 'EdDSA', publicKey: eddsaPair.publicKey },
}
const claims = {
  iss: 'https://id.example',
  sub: 'agent',
  aud: ['https://api.example', 'https://id.example'],
  iat: NOW - 10,
  nbf: NOW - 10,
  exp: NOW + 290,
}
const options: VerifyOptions = {
  keyOf: ({ kid }) => (kid === undefined ? undefined : publicKeys[kid]),
  typ: 'at+jwt',
  nowSecs: NOW,
  leewaySecs: 5,
  issuer: 'https://id.example',
  audience: 'https://api.example',
}
const b64 = (text: string | Uint8Array) => Buffer.from(text).toString('base64url')

/** A correctly signed token with any header and payload text. */
function forge(header: string | object, payload: string | object, key: SigningKey = es256): string {
  const text = (part: string | object) => (typeof part === 'string' ? part : JSON.stringify(part))
  const input = `${b64(text(header))}.${b64(text(payload))}`
  return `${input}.${b64(rawSignature(input, key))}`
}
function rawSignature(input: string, { algorithm, privateKey }: SigningKey): Buffer {
  return algorithm === 'ES256'
    ? sign('sha256', Buffer.from(input), { key: privateKey, dsaEncoding: 'ieee-p1363' })
    : sign(null, Buffer.from(input), privateKey)
}
const header = { alg: 'ES256', typ: 'at+jwt', kid: 'es' }
const reasonOf = (token: string, changes: Partial<VerifyOptions> = {}) => {
  const outcome = verifyJwt(token, { ...options, ...changes })
  return outcome.tag === 'refused' ? outcome.reason : outcome.tag
}

for (const key of [es256, eddsa]) {
  test(`a token signed with ${key.algorithm} verifies, here and with jose`, async (t) => {
    const token = signJwt(key, 'at+jwt', claims)
    const outcome = verifyJwt(token, options)
    t.true(outcome.tag === 'verified')
    if (outcome.tag === 'verified') {
      t.deepEqual({ ...outcome.claims }, claims)
      t.like(outcome.header, { alg: key.algorithm, typ: 'at+jwt', kid: key.kid })
    }
    const { payload } = await jose.jwtVerify(token, publicKeys[key.kid]!.publicKey, {
      currentDate: new Date(NOW * 1000),
    })
    t.deepEqual(payload, claims)
  })

  test(`a token that jose signed with ${key.algorithm} verifies here`, async (t) => {
    const token = await new jose.SignJWT(claims)
      .setProtectedHeader({ alg: key.algorithm, typ: 'at+jwt', kid: key.kid })
      .sign(key.privateKey)
    t.is(reasonOf(token), 'verified')
  })

  test(`a flipped bit anywhere in a ${key.algorithm} token is refused`, (t) => {
    const token = signJwt(key, 'at+jwt', claims)
    t.notThrows(() =>
      fc.assert(
        fc.property(fc.nat(token.length - 1), fc.integer({ min: 0, max: 6 }), (at, bit) => {
          const code = token.charCodeAt(at) ^ (1 << bit)
          const changed = token.slice(0, at) + String.fromCharCode(code) + token.slice(at + 1)
          return verifyJwt(changed, options).tag === 'refused'
        }),
        { numRuns: runs(300) },
      ),
    )
  })
}

test('arbitrary claims survive signing and verification', (t) => {
  const value = fc.jsonValue({ maxDepth: 4, stringUnit: 'binary' })
  t.notThrows(() =>
    fc.assert(
      fc.property(fc.dictionary(fc.string({ maxLength: 20 }), value, { maxKeys: 6 }), (more) => {
        const all = JSON.parse(JSON.stringify({ ...more, iat: NOW, exp: NOW + 1 }))
        const token = signJwt(eddsa, 'at+jwt', all)
        const outcome = verifyJwt(token, { ...options, issuer: undefined, audience: undefined })
        // A lone surrogate is not valid UTF-8: encoding turns it into U+FFFD.
        const carried = JSON.parse(Buffer.from(JSON.stringify(all)).toString())
        // The arbitrary members may contain times.
        if (outcome.tag === 'refused') return 'nbf' in all && outcome.reason !== 'signature'
        return (
          JSON.stringify({ ...carried, exp: 0, iat: 0 }) ===
          JSON.stringify({ ...outcome.claims, exp: 0, iat: 0 })
        )
      }),
      { numRuns: runs(200) },
    ),
  )
})

test('arbitrary text is refused and never throws', (t) => {
  const part = fc.oneof(fc.string(), fc.base64String(), fc.uint8Array().map(b64))
  t.notThrows(() =>
    fc.assert(
      fc.property(fc.array(part, { maxLength: 6 }), (parts) => {
        return verifyJwt(parts.join('.'), options).tag === 'refused'
      }),
      { numRuns: runs(2_000) },
    ),
  )
})

const good = signJwt(es256, 'at+jwt', claims)
const [goodHeader, goodPayload, goodSignature] = good.split('.') as [string, string, string]

for (const [title, token] of [
  ['nothing', ''],
  ['one part', goodHeader],
  ['two parts', `${goodHeader}.${goodPayload}`],
  ['an empty signature', `${goodHeader}.${goodPayload}.`],
  ['four parts', `${good}.x`],
  ['five parts', `${good}.x.y`],
  ['a space before', ` ${good}`],
  ['a newline after', `${good}\n`],
  ['a space inside', good.replace('.', '. ')],
  ['padding', `${good}==`],
  ['the alphabet of base64', `${goodHeader}.${goodPayload}.${'+/'.repeat(43)}`],
  ['stray bits in the signature', `${goodHeader}.${goodPayload}.${withStrayBit(goodSignature)}`],
  ['stray bits in the payload', strayPayload()],
  ['a signature of 63 bytes', `${goodHeader}.${goodPayload}.${b64(new Uint8Array(63))}`],
  ['a signature of 65 bytes', `${goodHeader}.${goodPayload}.${b64(new Uint8Array(65))}`],
  ['a DER signature', `${goodHeader}.${goodPayload}.${b64(derSignature())}`],
  ['more than 16 KiB', forge(header, { ...claims, long: 'x'.repeat(JWT_CHARACTERS_MAX) })],
  ['a megabyte', `${goodHeader}.${'A'.repeat(1_000_000)}.${goodSignature}`],
  ['an array as payload', forge(header, '[]')],
  ['null as payload', forge(header, 'null')],
  ['a string as payload', forge(header, '"x"')],
  ['an empty payload', forge(header, ' ')],
  ['bytes that are not UTF-8', forgeBytes(Buffer.from([0x7b, 0xff, 0x7d]))],
  ['an overlong UTF-8 form', forgeBytes(Buffer.from('7b22c0ae223a317d', 'hex'))],
  ['a byte order mark', forge(header, `\u{feff}${JSON.stringify(claims)}`)],
  ['trailing data after the payload object', forge(header, `${JSON.stringify(claims)}{}`)],
  ['a duplicate claim', forge(header, `{"iss":"evil",${JSON.stringify(claims).slice(1)}`)],
  [
    'a duplicate claim spelt otherwise',
    forge(header, `{"\\u0069ss":"evil",${JSON.stringify(claims).slice(1)}`),
  ],
  [
    'a duplicate member deep inside',
    forge(header, { ...claims, cnf: 1 }).replace(/^.*$/, () =>
      forge(header, `${JSON.stringify(claims).slice(0, -1)},"cnf":{"a":[{"b":1,"b":2}]}}`),
    ),
  ],
  [
    'deep nesting',
    forge(header, `${JSON.stringify(claims).slice(0, -1)},"x":${'['.repeat(20)}${']'.repeat(20)}}`),
  ],
  [
    'very deep nesting',
    forge(
      header,
      `${JSON.stringify(claims).slice(0, -1)},"x":${'['.repeat(5_000)}${']'.repeat(5_000)}}`,
    ),
  ],
] as const) {
  test(`a token with ${title} is malformed`, (t) => t.is(reasonOf(token), 'malformed'))
}

test('equal names in different objects are not duplicates', (t) => {
  const text = `${JSON.stringify(claims).slice(0, -1)},"a":{"x":1},"b":{"x":1},"c":["x","x",{"x":"x"}]}`
  t.is(reasonOf(forge(header, text)), 'verified')
})

for (const [title, changed] of [
  ['alg none', { ...header, alg: 'none' }],
  ['alg None', { ...header, alg: 'None' }],
  ['alg NONE', { ...header, alg: 'NONE' }],
  ['alg nOnE', { ...header, alg: 'nOnE' }],
  ['an empty alg', { ...header, alg: '' }],
  ['no alg', { typ: 'at+jwt', kid: 'es' }],
  ['an array as alg', { ...header, alg: ['ES256'] }],
  ['alg es256 in lower case', { ...header, alg: 'es256' }],
  ['alg HS256', { ...header, alg: 'HS256' }],
  ['alg RS256', { ...header, alg: 'RS256' }],
  ['alg PS256', { ...header, alg: 'PS256' }],
  ['alg ES256K', { ...header, alg: 'ES256K' }],
  ['alg ES384', { ...header, alg: 'ES384' }],
  ['unknown critical members', { ...header, crit: ['exp'], exp: NOW }],
  ['an empty crit', { ...header, crit: [] }],
  ['an unencoded payload', { ...header, b64: false, crit: ['b64'] }],
  ['a number as typ', { ...header, typ: 1 }],
  ['a number as kid', { ...header, kid: 1 }],
  ['an object as kid', { ...header, kid: { es: 1 } }],
  ['an empty kid', { ...header, kid: '' }],
  ['a kid of 10 kB', { ...header, kid: 'k'.repeat(10_000) }],
  ['a kid with NUL', { ...header, kid: 'es\0' }],
  ['a kid with a newline', { ...header, kid: 'es\n' }],
  ['duplicate members', '{"alg":"none","alg":"ES256","typ":"at+jwt","kid":"es"}'],
  ['duplicate kids', '{"alg":"ES256","typ":"at+jwt","kid":"ed","kid":"es"}'],
  ['an array', '[]'],
  ['text that is not JSON', 'alg=ES256'],
  ['a prototype', '{"__proto__":{"alg":"ES256"},"typ":"at+jwt","kid":"es"}'],
] as const) {
  test(`a header with ${title} is refused before any key is looked up`, (t) => {
    const keyOf = () => t.fail('no look-up') as never
    t.is(reasonOf(forge(changed, claims), { keyOf }), 'header')
  })
}

for (const [title, changed] of [
  ['an embedded key', { ...header, jwk: es256Pair.publicKey.export({ format: 'jwk' }) }],
  ['a key address', { ...header, jku: 'https://evil.example/jwks.json' }],
  ['a certificate address', { ...header, x5u: 'https://evil.example/c.pem' }],
  ['a certificate chain', { ...header, x5c: ['MIIB'] }],
  ['a certificate thumbprint', { ...header, 'x5t#S256': 'x' }],
  ['compression', { ...header, zip: 'DEF' }],
  ['a content type', { ...header, cty: 'JWT' }],
  ['an unknown member', { ...header, extra: 1 }],
] as const) {
  test(`a header with ${title} is verified with the registered key alone`, (t) => {
    t.is(reasonOf(forge(changed, claims)), 'verified')
  })
}

for (const kid of ['../../etc/passwd', "es' or '1'='1", 'unknown', '__proto__', 'constructor']) {
  test(`kid ${kid} is only looked up, and unknown`, (t) => {
    const keyOf: VerifyOptions['keyOf'] = ({ kid: named }) =>
      new Map(Object.entries(publicKeys)).get(named ?? '')
    const expected = /\s/.test(kid) ? 'header' : 'unknown_key'
    t.is(reasonOf(forge({ ...header, kid }, claims), { keyOf }), expected)
  })
}

test('a token without kid is refused where keys are found by kid', (t) => {
  t.is(reasonOf(forge({ alg: 'ES256', typ: 'at+jwt' }, claims)), 'unknown_key')
})

test('a public key used as the secret of a MAC verifies nothing', (t) => {
  const forms = [
    es256Pair.publicKey.export({ format: 'pem', type: 'spki' }),
    JSON.stringify(es256Pair.publicKey.export({ format: 'jwk' })),
    es256Pair.publicKey.export({ format: 'der', type: 'spki' }).subarray(-65),
  ]
  for (const secret of forms) {
    for (const alg of ['HS256', 'ES256', 'EdDSA']) {
      const input = `${b64(JSON.stringify({ ...header, alg }))}.${b64(JSON.stringify(claims))}`
      const mac = createHmac('sha512', secret).update(input).digest()
      t.not(reasonOf(`${input}.${b64(mac)}`), 'verified')
    }
  }
})

test('a key verifies its own algorithm only', (t) => {
  t.is(reasonOf(forge({ ...header, kid: 'ed' }, claims)), 'signature')
  t.is(reasonOf(forge({ ...header, alg: 'EdDSA' }, claims, eddsa)), 'signature')
  t.is(reasonOf(forge({ ...header, alg: 'EdDSA', kid: 'ed' }, claims, es256)), 'signature')
  t.is(reasonOf(forge({ ...header, alg: 'EdDSA' }, claims, es256)), 'signature', 'alg is a lie')
})

for (const [typ, expected, outcome] of [
  ['at+jwt', 'at+jwt', 'verified'],
  ['AT+JWT', 'at+jwt', 'verified'],
  ['application/at+jwt', 'at+jwt', 'verified'],
  ['JWT', 'at+jwt', 'type'],
  ['logout+jwt', 'at+jwt', 'type'],
  ['dpop+jwt', 'at+jwt', 'type'],
  ['at+jwt', 'dpop+jwt', 'type'],
  ['at+jwt ', 'at+jwt', 'type'],
  ['', 'at+jwt', 'type'],
  [undefined, 'at+jwt', 'type'],
  [undefined, null, 'verified'],
  ['JWT', null, 'verified'],
  ['at+jwt', null, 'type'],
] as const) {
  test(`typ ${typ} where ${expected} is expected: ${outcome}`, (t) => {
    t.is(reasonOf(forge({ ...header, typ }, claims), { typ: expected }), outcome)
  })
}

for (const [title, text, outcome] of [
  ['exp as a string', `"exp":"${NOW + 100}","iat":${NOW}`, 'claims'],
  ['exp as a float', `"exp":${NOW + 100}.5,"iat":${NOW}.25`, 'verified'],
  ['a fraction after the leeway', `"exp":${NOW - 6}.5,"iat":${NOW - 9}`, 'expired'],
  ['exp 1e400', `"exp":1e400,"iat":${NOW}`, 'claims'],
  ['exp beyond safe integers', `"exp":9007199254740993,"iat":${NOW}`, 'claims'],
  ['a negative exp', `"exp":-1,"iat":${NOW}`, 'claims'],
  ['exp null', `"exp":null,"iat":${NOW}`, 'claims'],
  ['no exp', `"iat":${NOW}`, 'claims'],
  ['no iat', `"exp":${NOW + 100}`, 'claims'],
  ['iat as a string', `"exp":${NOW + 100},"iat":"${NOW}"`, 'claims'],
  ['nbf as a string', `"exp":${NOW + 100},"iat":${NOW},"nbf":"0"`, 'claims'],
  ['an exp at the edge of the leeway', `"exp":${NOW - 5},"iat":${NOW - 9}`, 'expired'],
  ['an exp within the leeway', `"exp":${NOW - 4},"iat":${NOW - 9}`, 'verified'],
  ['an iat at the edge of the leeway', `"exp":${NOW + 100},"iat":${NOW + 5}`, 'verified'],
  ['an iat in the future', `"exp":${NOW + 100},"iat":${NOW + 6}`, 'not_yet_valid'],
  ['an nbf in the future', `"exp":${NOW + 100},"iat":${NOW},"nbf":${NOW + 6}`, 'not_yet_valid'],
  ['an exp written as 1.9e9', `"exp":1.9000001e9,"iat":${NOW}`, 'verified'],
] as const) {
  test(`a token with ${title}: ${outcome}`, (t) => {
    const token = forge(header, `{"iss":"https://id.example","aud":"https://api.example",${text}}`)
    t.is(reasonOf(token), outcome)
  })
}

for (const [title, changes, outcome] of [
  ['another issuer', { iss: 'https://evil.example' }, 'issuer'],
  ['an issuer with an extra slash', { iss: 'https://id.example/' }, 'issuer'],
  ['an array as issuer', { iss: ['https://id.example'] }, 'issuer'],
  ['no issuer', { iss: undefined }, 'issuer'],
  ['another audience', { aud: 'https://other.example' }, 'audience'],
  ['an empty audience list', { aud: [] }, 'audience'],
  ['an audience list with a number', { aud: ['https://api.example', 1] }, 'audience'],
  ['no audience', { aud: undefined }, 'audience'],
  ['one audience as a string', { aud: 'https://api.example' }, 'verified'],
] as const) {
  test(`a token with ${title}: ${outcome}`, (t) => {
    t.is(reasonOf(signJwt(es256, 'at+jwt', { ...claims, ...changes })), outcome)
  })
}

test('an embedded key is read, for proofs that carry their key', (t) => {
  const jwk = es256Pair.publicKey.export({ format: 'jwk' })
  const decoded = decodeJwt(forge({ typ: 'dpop+jwt', alg: 'ES256', jwk }, claims))
  t.true(decoded.tag === 'decoded')
  if (decoded.tag === 'decoded') t.deepEqual(decoded.jwt.header.jwk, jwk)
})

test('jose and jwt.ts agree on every well-formed token with one changed signature byte', async (t) => {
  const key: KeyObject = createPublicKey(es256Pair.privateKey)
  for (let at = 0; at < 64; at += 7) {
    const bytes = Buffer.from(goodSignature, 'base64url')
    bytes[at]! ^= 1
    const token = `${goodHeader}.${goodPayload}.${b64(bytes)}`
    t.is(reasonOf(token), 'signature')
    await t.throwsAsync(jose.jwtVerify(token, key, { currentDate: new Date(NOW * 1000) }))
  }
})

test('our own public JWK is imported unchanged', (t) => {
  for (const { publicKey } of Object.values(publicKeys)) {
    const jwk = publicKey.export({ format: 'jwk' })
    t.true(importPublicJwk(jwk)?.publicKey.equals(publicKey))
  }
})

function derSignature(): Buffer {
  return sign('sha256', Buffer.from(`${goodHeader}.${goodPayload}`), es256.privateKey)
}

function forgeBytes(payload: Buffer): string {
  const input = `${b64(JSON.stringify(header))}.${b64(payload)}`
  return `${input}.${b64(rawSignature(input, es256))}`
}

/** Another spelling of the same bytes: the last character has unused bits. */
function withStrayBit(text: string): string {
  const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'
  const last = alphabet.indexOf(text.at(-1)!)
  return text.slice(0, -1) + alphabet[last ^ 1]
}

/** Signed over the non-canonical spelling, so that only the spelling is wrong. */
function strayPayload(): string {
  let text = JSON.stringify(claims)
  while (Buffer.byteLength(text) % 3 === 0) text += ' '
  const input = `${b64(JSON.stringify(header))}.${withStrayBit(b64(text))}`
  return `${input}.${b64(rawSignature(input, es256))}`
}
