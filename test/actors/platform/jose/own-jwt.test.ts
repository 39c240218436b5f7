import { createPublicKey } from 'node:crypto'
import test from 'ava'
import * as fc from 'fast-check'
import { jwtVerify } from 'jose'
import { Signer } from '../../../../actors/oauth/signing-keys/ring.js'
import { type VerificationKey, verifyOwnJwt } from '../../../../actors/platform/jose/own-jwt.js'
import { freshKeyPair, freshRsaKey } from '../../../../runtime/kernel/key-pair.js'
import { runs } from '../../../support/runs.js'

const claims = { iss: 'https://id.example', sub: 'é', exp: 4_000_000_000 }
const PAIRS = [
  ['ES256', freshKeyPair('P-256')],
  ['EdDSA', freshKeyPair('ed25519')],
  ['RS256', await freshRsaPair()],
] as const

for (const [algorithm, { privateKey, publicKey }] of PAIRS) {
  const kid = `kid of ${algorithm}`
  const token = new Signer({ kid, algorithm, privateKey }).sign('at+jwt', JSON.stringify(claims))
  const key: VerificationKey = { algorithm, publicKey }
  const verified = (text: string, typ = 'at+jwt', found: VerificationKey | null = key) =>
    verifyOwnJwt(text, typ, async (asked) => (asked === kid ? found : null))

  test(`a token signed with ${algorithm} verifies, here and with jose`, async (t) => {
    t.deepEqual(await verified(token), { kid, claims })
    t.deepEqual((await jwtVerify(token, publicKey)).payload, claims)
  })

  test(`a token signed with ${algorithm} has one type, one key and one spelling`, async (t) => {
    const [head, payload, signature] = token.split('.') as [string, string, string]
    const last = { A: 'B', Q: 'R', g: 'h', w: 'x' }[signature.at(-1) as 'A' | 'Q' | 'g' | 'w']
    const other = PAIRS.find(([name]) => name !== algorithm)!
    t.is(await verified(token, 'JWT'), null)
    t.is(await verified(token, 'AT+JWT'), null)
    t.is(await verified(token, 'at+jwt', null), null)
    t.is(await verified(token, 'at+jwt', { algorithm: other[0], publicKey }), null)
    t.is(
      await verified(token, 'at+jwt', { algorithm, publicKey: await freshOther(algorithm) }),
      null,
    )
    for (const text of [
      '',
      `${token}=`,
      ` ${token}`,
      `${token}.x`,
      `${head}.${payload}.`,
      `${head}.${payload}.${signature.slice(0, -1)}${last}`,
      `${head}.${'A'.repeat(20_000)}.${signature}`,
    ])
      t.is(await verified(text), null, text.slice(0, 40))
  })

  test(`a flipped bit anywhere in a token signed with ${algorithm} is refused`, (t) =>
    t.notThrowsAsync(() =>
      fc.assert(
        fc.asyncProperty(
          fc.nat(token.length - 1),
          fc.integer({ min: 0, max: 6 }),
          async (at, bit) => {
            const code = token.charCodeAt(at) ^ (1 << bit)
            const changed = token.slice(0, at) + String.fromCharCode(code) + token.slice(at + 1)
            return (await verified(changed)) === null
          },
        ),
        { numRuns: runs(300) },
      ),
    ))
}

test('arbitrary text is refused and never throws', (t) => {
  const part = fc.oneof(
    fc.string(),
    fc.base64String(),
    fc.uint8Array().map(b64),
    fc.json().map(b64),
  )
  const signature = 'A'.repeat(86)
  return t.notThrowsAsync(() =>
    fc.assert(
      fc.asyncProperty(part, part, async (head, payload) => {
        const keyOf = async () =>
          ({ algorithm: 'ES256', publicKey: PAIRS[0][1].publicKey }) as const
        return (await verifyOwnJwt(`${head}.${payload}.${signature}`, 'at+jwt', keyOf)) === null
      }),
      { numRuns: runs(1_000) },
    ),
  )
})

function b64(text: string | Uint8Array): string {
  return Buffer.from(text).toString('base64url')
}

async function freshRsaPair() {
  const privateKey = await freshRsaKey()
  return { privateKey, publicKey: createPublicKey(privateKey) }
}

async function freshOther(algorithm: (typeof PAIRS)[number][0]) {
  const pair =
    algorithm === 'RS256'
      ? await freshRsaPair()
      : freshKeyPair(algorithm === 'ES256' ? 'P-256' : 'ed25519')
  return pair.publicKey
}
