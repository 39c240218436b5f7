import { createHash, sign } from 'node:crypto'
import test from 'ava'
import * as fc from 'fast-check'
import { calculateJwkThumbprint } from 'jose'
import { freshKeyPair } from '../../../../runtime/kernel/key-pair.js'
import { type KeyAlgorithm, ownershipString } from '../../../../actors/domain/signed-strings.js'
import {
  fromAnyBase64,
  fromBase64Url,
  toBase64Url,
} from '../../../../actors/domain/agents/base64.js'
import {
  didKey,
  fingerprint,
  type PublicJwk,
  publicJwk,
  rawFromJwk,
  readDidKey,
  readPublicKey,
} from '../../../../actors/domain/agents/agent-keys.js'
import {
  judgeOwnership,
  judgeSignature,
} from '../../../../actors/agents/proof-of-work/signatures.js'
import {
  isNonce,
  judgeWork,
  leadingZeroBits,
} from '../../../../actors/agents/proof-of-work/work.js'

function newKey(algorithm: KeyAlgorithm) {
  const { publicKey, privateKey } =
    algorithm === 'ed25519' ? freshKeyPair('ed25519') : freshKeyPair('P-256')
  const jwk = publicKey.export({ format: 'jwk' }) as PublicJwk
  const signText = (text: string): string => {
    const bytes = Buffer.from(text)
    const made =
      algorithm === 'ed25519'
        ? sign(null, bytes, privateKey)
        : sign('sha256', bytes, { key: privateKey, dsaEncoding: 'ieee-p1363' })
    return made.toString('base64url')
  }
  return { raw: rawFromJwk(jwk)!, jwk, signText }
}

for (const algorithm of ['ed25519', 'es256'] as const) {
  test(`an ${algorithm} key has the same value in every accepted encoding`, async (t) => {
    const { raw, jwk } = newKey(algorithm)
    const did = didKey(raw, algorithm)
    const bytes = Buffer.from(raw)
    const spellings = [
      toBase64Url(raw),
      bytes.toString('base64'),
      bytes.toString('base64').replaceAll('=', ''),
      did.slice('did:key:'.length),
    ]
    for (const spelling of spellings) {
      t.deepEqual(readPublicKey(spelling, algorithm), { tag: 'key', raw })
    }
    t.true(did.startsWith(algorithm === 'ed25519' ? 'did:key:z6Mk' : 'did:key:zDn'))
    t.deepEqual(readDidKey(did), { algorithm, raw })
    t.is(fingerprint(publicJwk(raw, algorithm)), await calculateJwkThumbprint({ ...jwk }))
  })

  test(`an ${algorithm} ownership proof is valid only for its own claim`, (t) => {
    const { raw, signText } = newKey(algorithm)
    const claim = {
      publicKey: toBase64Url(raw),
      keyAlgorithm: algorithm,
      issuer: 'https://auth.example',
      tenantId: '11111111-2222-4333-8444-555555555555',
      anchorType: 'did_key',
    }
    const proof = signText(ownershipString(claim))
    t.is(judgeOwnership({ ...claim, proof }).tag, 'valid')
    t.is(judgeOwnership({ ...claim, proof, anchorValue: didKey(raw, algorithm) }).tag, 'valid')
    const reason = (changed: object) => {
      const verdict = judgeOwnership({ ...claim, proof, ...changed })
      return verdict.tag === 'invalid' ? verdict.reason : verdict.tag
    }
    const other = newKey(algorithm).raw
    t.is(reason({ issuer: 'https://auth.example/' }), 'wrong_signature')
    t.is(reason({ tenantId: '11111111-2222-4333-8444-555555555556' }), 'wrong_signature')
    t.is(reason({ anchorType: 'did_web' }), 'wrong_signature')
    t.is(reason({ anchorType: 'did_key\ned25519' }), 'wrong_signature')
    t.is(reason({ publicKey: 'A'.repeat(1_000_000) }), 'malformed_key')
    t.is(reason({ publicKey: toBase64Url(other) }), 'wrong_signature')
    t.is(reason({ publicKey: didKey(raw, algorithm).slice(8) }), 'wrong_signature')
    t.is(reason({ anchorValue: didKey(other, algorithm) }), 'anchor_mismatch')
    t.is(reason({ anchorValue: 'did:web:example.com' }), 'anchor_mismatch')
    t.is(reason({ proof: `${proof}A` }), 'malformed_proof')
    t.is(reason({ proof: `${proof}==` }), 'malformed_proof')
    t.is(reason({ proof: '' }), 'malformed_proof')
    t.is(reason({ publicKey: '' }), 'malformed_key')
  })

  test(`an ${algorithm} signature of another payload, key or length is invalid`, (t) => {
    const { raw, signText } = newKey(algorithm)
    const claim = {
      publicKey: raw,
      keyAlgorithm: algorithm,
      payload: 'svc-agent-challenge-v1\nx',
      signature: signText('svc-agent-challenge-v1\nx'),
    }
    t.is(judgeSignature(claim), 'valid')
    t.is(judgeSignature({ ...claim, payload: 'svc-agent-challenge-v1\ny' }), 'invalid')
    t.is(judgeSignature({ ...claim, publicKey: newKey(algorithm).raw }), 'invalid')
    t.is(judgeSignature({ ...claim, publicKey: raw.subarray(1) }), 'invalid')
    t.is(judgeSignature({ ...claim, signature: claim.signature.slice(0, -1) }), 'invalid')
  })
}

test('a key of one algorithm is malformed as the other', (t) => {
  const ed25519 = newKey('ed25519').raw
  const es256 = newKey('es256').raw
  t.is(readPublicKey(toBase64Url(ed25519), 'es256').tag, 'malformed')
  t.is(readPublicKey(toBase64Url(es256), 'ed25519').tag, 'malformed')
  t.is(readPublicKey(didKey(ed25519, 'ed25519').slice(8), 'es256').tag, 'malformed')
})

test('a compressed P-256 point that is not on the curve is malformed', (t) => {
  const raw = new Uint8Array(33).fill(0xff)
  raw[0] = 2
  t.is(readPublicKey(toBase64Url(raw), 'es256').tag, 'malformed')
  t.is(readPublicKey(toBase64Url(newKey('es256').raw.with(0, 4)), 'es256').tag, 'malformed')
})

const WEAK = [
  ['the identity', '01'.padEnd(64, '0')],
  ['the point of order two', `ec${'ff'.repeat(30)}7f`],
  ['a point of order four', '00'.repeat(32)],
  ['the other point of order four', `${'00'.repeat(31)}80`],
  ['a point of order eight', '26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05'],
  ['its negative', '26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc85'],
  ['another of order eight', 'c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a'],
  ['y = p, a second spelling of zero', `ed${'ff'.repeat(30)}7f`],
  ['y = p + 1, a second spelling of one', `ee${'ff'.repeat(30)}7f`],
  ['y = 2^255 - 1', `${'ff'.repeat(31)}7f`],
] as const

for (const [title, hex] of WEAK) {
  test(`an ed25519 key that is ${title} is refused as weak`, (t) => {
    const publicKey = Buffer.from(hex, 'hex').toString('base64url')
    t.is(readPublicKey(publicKey, 'ed25519').tag, 'weak')
    const raw = new Uint8Array(Buffer.from(hex, 'hex'))
    t.is(readDidKey(didKey(raw, 'ed25519')), null)
  })
}

for (const [text, verdict] of [
  ['0', true],
  ['9', true],
  ['18446744073709551615', true],
  ['18446744073709551616', false],
  ['99999999999999999999', false],
  ['100000000000000000000', false],
  ['', false],
  ['00', false],
  ['01', false],
  ['+1', false],
  ['-1', false],
  ['1.0', false],
  ['1e3', false],
  [' 1', false],
  ['1\n', false],
  ['١', false],
  ['0x1', false],
] as const) {
  test(`the nonce ${JSON.stringify(text)} is ${verdict ? 'well-formed' : 'malformed'}`, (t) => {
    t.is(isNonce(text), verdict)
    if (!verdict) t.is(judgeWork('token', text, 1), 'malformed')
  })
}

test('leading zero bits are counted from the most significant bit of the first byte', (t) => {
  const cases = [
    ['80', 0],
    ['7f', 1],
    ['01', 7],
    ['0080', 8],
    ['0001', 15],
    ['000000', 24],
  ] as const
  for (const [hex, bits] of cases) t.is(leadingZeroBits(Buffer.from(hex, 'hex')), bits)
})

test('strict base64url has one encoding per byte string', (t) => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 80 }), (bytes) => {
      const text = toBase64Url(bytes)
      t.deepEqual(fromBase64Url(text), bytes)
      t.deepEqual(fromAnyBase64(Buffer.from(bytes).toString('base64')), bytes)
    }),
  )
  for (const text of ['A', 'AB', 'AAB', 'AA==', 'A A', 'AA\n', 'A+', 'A/']) {
    t.is(fromBase64Url(text), null, text)
  }
  for (const text of ['AA=', 'AAAA=', 'A=A=', '+_AA', 'AA==='])
    t.is(fromAnyBase64(text), null, text)
})

test('parsing arbitrary text as a key or DID never throws', (t) => {
  t.notThrows(() =>
    fc.assert(
      fc.property(fc.string({ unit: 'binary', maxLength: 80 }), (text) => {
        for (const algorithm of ['ed25519', 'es256'] as const) {
          readPublicKey(text, algorithm)
          readPublicKey(`z${text}`, algorithm)
        }
        readDidKey(`did:key:z${text}`)
      }),
    ),
  )
})

test('a field with a line feed cannot be signed', (t) => {
  const claim = {
    issuer: 'https://a',
    tenantId: 't\nx',
    anchorType: 'did_key',
    keyAlgorithm: 'ed25519',
    publicKey: createHash('sha256').digest('base64url'),
  } as const
  t.throws(() => ownershipString(claim), { instanceOf: RangeError })
})
