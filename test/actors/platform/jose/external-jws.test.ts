import { createHmac, type KeyObject, sign } from 'node:crypto'
import test from 'ava'
import * as fc from 'fast-check'
import * as jose from 'jose'
import { freshKeyPair } from '../../../../runtime/kernel/key-pair.js'
import { type ImportedKey, importPublicJwk } from '../../../../actors/platform/jose/external-jwk.js'
import {
  hasType,
  isSignedBy,
  JWS_CHARACTERS_MAX,
  readJws,
  untimely,
} from '../../../../actors/platform/jose/external-jws.js'
import type { SigningKey } from '../../../../actors/platform/jose/own-jwt.js'
import { runs } from '../../../support/runs.js'

const NOW = 1_900_000_000
const es256Pair = freshKeyPair('P-256')
const eddsaPair = freshKeyPair('ed25519')
const es256: SigningKey = { kid: 'es', algorithm: 'ES256', privateKey: es256Pair.privateKey }
const eddsa: SigningKey = { kid: 'ed', algorithm: 'EdDSA', privateKey: eddsaPair.privateKey }
const imported = async ({ publicKey }: { publicKey: KeyObject }) =>
  (await importPublicJwk(publicKey.export({ format: 'jwk' })))!
const publicKeys: ReadonlyMap<string, ImportedKey> = new Map([
  ['es', await imported(es256Pair)],
  ['ed', await imported(eddsaPair)],
])
const claims = {
  iss: 'https://id.example',
  sub: 'agent',
  aud: ['https://api.example', 'https://id.example'],
  iat: NOW - 10,
  nbf: NOW - 10,
  exp: NOW + 290,
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
/** What a caller learns that expects a type and finds keys by `kid`. */
async function outcomeOf(token: string, typ: string | null = 'at+jwt') {
  const jws = readJws(token)
  if (jws === undefined) return 'malformed'
  if (!hasType(jws, typ)) return 'type'
  const key = publicKeys.get(jws.header.kid ?? '')
  if (key === undefined) return 'unknown_key'
  return (await isSignedBy(jws, key)) ? 'verified' : 'signature'
}

for (const key of [es256, eddsa]) {
  test(`a token that jose signed with ${key.algorithm} verifies here`, async (t) => {
    const token = await new jose.SignJWT(claims)
      .setProtectedHeader({ alg: key.algorithm, typ: 'at+jwt', kid: key.kid })
      .sign(key.privateKey)
    t.is(await outcomeOf(token), 'verified')
    t.deepEqual(readJws(token)?.claims, claims)
  })

  test(`a flipped bit anywhere in a ${key.algorithm} token is refused`, async (t) => {
    const token = forge({ alg: key.algorithm, typ: 'at+jwt', kid: key.kid }, claims, key)
    await t.notThrowsAsync(() =>
      fc.assert(
        fc.asyncProperty(
          fc.nat(token.length - 1),
          fc.integer({ min: 0, max: 6 }),
          async (at, bit) => {
            const code = token.charCodeAt(at) ^ (1 << bit)
            const changed = token.slice(0, at) + String.fromCharCode(code) + token.slice(at + 1)
            return (await outcomeOf(changed)) !== 'verified'
          },
        ),
        { numRuns: runs(300) },
      ),
    )
  })
}

test('arbitrary text is refused and never throws', (t) => {
  const part = fc.oneof(fc.string(), fc.base64String(), fc.uint8Array().map(b64))
  t.notThrows(() =>
    fc.assert(
      fc.property(fc.array(part, { maxLength: 6 }), (parts) => {
        return readJws(parts.join('.')) === undefined
      }),
      { numRuns: runs(2_000) },
    ),
  )
})

const good = forge(header, claims)
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
  ['more than 16 KiB', forge(header, { ...claims, long: 'x'.repeat(JWS_CHARACTERS_MAX) })],
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
  test(`a token with ${title} is malformed`, (t) => t.is(readJws(token), undefined))
}

test('equal names in different objects are not duplicates', async (t) => {
  const text = `${JSON.stringify(claims).slice(0, -1)},"a":{"x":1},"b":{"x":1},"c":["x","x",{"x":"x"}]}`
  t.is(await outcomeOf(forge(header, text)), 'verified')
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
  test(`a header with ${title} is refused before any key is looked up`, (t) =>
    t.is(readJws(forge(changed, claims)), undefined))
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
  test(`a header with ${title} is verified with the registered key alone`, async (t) =>
    t.is(await outcomeOf(forge(changed, claims)), 'verified'))
}

for (const kid of ['../../etc/passwd', "es' or '1'='1", 'unknown', '__proto__', 'constructor']) {
  test(`kid ${kid} is only looked up, and unknown`, async (t) => {
    const expected = /\s/.test(kid) ? 'malformed' : 'unknown_key'
    t.is(await outcomeOf(forge({ ...header, kid }, claims)), expected)
  })
}

test('a public key used as the secret of a MAC verifies nothing', async (t) => {
  const forms = [
    es256Pair.publicKey.export({ format: 'pem', type: 'spki' }),
    JSON.stringify(es256Pair.publicKey.export({ format: 'jwk' })),
    es256Pair.publicKey.export({ format: 'der', type: 'spki' }).subarray(-65),
  ]
  for (const secret of forms) {
    for (const alg of ['HS256', 'ES256', 'EdDSA']) {
      const input = `${b64(JSON.stringify({ ...header, alg }))}.${b64(JSON.stringify(claims))}`
      const mac = createHmac('sha512', secret).update(input).digest()
      t.not(await outcomeOf(`${input}.${b64(mac)}`), 'verified')
    }
  }
})

test('a key verifies its own algorithm only', async (t) => {
  t.is(await outcomeOf(forge({ ...header, kid: 'ed' }, claims)), 'signature')
  t.is(await outcomeOf(forge({ ...header, alg: 'EdDSA' }, claims, eddsa)), 'signature')
  t.is(await outcomeOf(forge({ ...header, alg: 'EdDSA', kid: 'ed' }, claims, es256)), 'signature')
  t.is(
    await outcomeOf(forge({ ...header, alg: 'EdDSA' }, claims, es256)),
    'signature',
    'alg is a lie',
  )
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
  test(`typ ${typ} where ${expected} is expected: ${outcome}`, async (t) => {
    t.is(await outcomeOf(forge({ ...header, typ }, claims), expected), outcome)
  })
}

for (const [title, times, outcome] of [
  ['no times', {}, undefined],
  ['exp as a string', { exp: `${NOW + 100}` }, 'the proof has expired'],
  ['exp 1e400', { exp: Infinity }, 'the proof has expired'],
  ['exp beyond safe integers', { exp: 2 ** 53 }, 'the proof has expired'],
  ['a negative exp', { exp: -1 }, 'the proof has expired'],
  ['exp null', { exp: null }, 'the proof has expired'],
  ['exp now', { exp: NOW }, 'the proof has expired'],
  ['exp as a float', { exp: NOW + 0.5 }, undefined],
  ['nbf as a string', { nbf: '0' }, 'the proof is not valid yet'],
  ['an nbf at the edge', { nbf: NOW + 60 }, undefined],
  ['an nbf in the future', { nbf: NOW + 61 }, 'the proof is not valid yet'],
] as const) {
  test(`a proof with ${title}: ${outcome}`, (t) => t.is(untimely(times, NOW, 60), outcome))
}

test('an embedded key is read, for proofs that carry their key', (t) => {
  const jwk = es256Pair.publicKey.export({ format: 'jwk' })
  t.deepEqual(readJws(forge({ typ: 'dpop+jwt', alg: 'ES256', jwk }, claims))?.header.jwk, jwk)
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
