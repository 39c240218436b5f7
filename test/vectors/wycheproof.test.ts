/**
 * Project Wycheproof's signature vectors, through both verification paths for foreign signatures:
 * tokens and proofs signed by clients, and challenges signed by agents.
 */
import { readFileSync } from 'node:fs'
import test from 'ava'
import { importPublicJwk } from '../../actors/platform/jose/jwk.js'
import { isSignedBy } from '../../actors/agents/proof-of-work/signatures.js'
import { verifyBytes } from '../../actors/platform/jose/jwt.js'

type Case = {
  readonly tcId: number
  readonly comment: string
  readonly msg: string
  readonly sig: string
  readonly result: 'valid' | 'invalid' | 'acceptable'
  readonly flags: readonly string[]
}
type Group = {
  readonly jwk: { readonly kty: string; readonly crv: string; readonly x: string; y?: string }
  readonly tests: readonly Case[]
}

function groups(name: string): readonly Group[] {
  const text = readFileSync(`test/vectors/wycheproof/${name}.json`, 'utf8')
  return (JSON.parse(text) as { testGroups: Group[] }).testGroups
}

/** The cases with a result different from Wycheproof's. */
function misjudged(
  all: readonly Group[],
  accepts: (group: Group, message: Buffer, signature: Buffer) => boolean,
): string[] {
  return all.flatMap((group) =>
    group.tests
      .filter(({ msg, sig, result }) => {
        const accepted = accepts(group, Buffer.from(msg, 'hex'), Buffer.from(sig, 'hex'))
        // 'acceptable' are shorter signatures, which RFC 7518 section 3.4 does not allow.
        return accepted !== (result === 'valid')
      })
      .map(({ tcId, comment, result }) => `${tcId} ${comment}: ${result}`),
  )
}

/** JWKs of Wycheproof omit or add leading zeros. RFC 7518 requires exactly 32 bytes. */
function coordinate(value: string): string {
  const bytes = Buffer.from(value, 'base64url')
  const padded = Buffer.concat([Buffer.alloc(32), bytes]).subarray(-32)
  return padded.toString('base64url')
}

const ecdsa = groups('ecdsa-p256-sha256-p1363')
const ed25519 = groups('ed25519')

test('the vectors exist', (t) => {
  const count = (all: readonly Group[]) => all.reduce((sum, { tests }) => sum + tests.length, 0)
  t.is(count(ecdsa), 219)
  t.true(count(ed25519) >= 100)
})

test('ES256 signatures of clients have the results of Wycheproof', (t) => {
  const wrong = misjudged(ecdsa, ({ jwk }, message, signature) => {
    const key = importPublicJwk({ ...jwk, x: coordinate(jwk.x), y: coordinate(jwk.y ?? '') })
    t.truthy(key, `${jwk.x} is a key`)
    return key !== undefined && verifyBytes(key, message, signature)
  })
  t.deepEqual(wrong, [])
})

test('EdDSA signatures of clients have the results of Wycheproof', (t) => {
  const wrong = misjudged(ed25519, ({ jwk }, message, signature) => {
    const key = importPublicJwk(jwk)
    t.truthy(key, `${jwk.x} is a key`)
    return key !== undefined && verifyBytes(key, message, signature)
  })
  t.deepEqual(wrong, [])
})

test('signatures of agents have the results of Wycheproof', (t) => {
  // Agents sign text, so only messages that are text can be tested.
  const text = (bytes: Buffer) => {
    const read = bytes.toString('utf8')
    return Buffer.from(read, 'utf8').equals(bytes) ? read : null
  }
  const textual = (all: readonly Group[]) =>
    all.map((group) => ({
      ...group,
      tests: group.tests.filter(({ msg }) => text(Buffer.from(msg, 'hex')) !== null),
    }))
  const byEd25519 = misjudged(textual(ed25519), ({ jwk }, message, signature) =>
    isSignedBy(Buffer.from(jwk.x, 'base64url'), 'ed25519', text(message) ?? '', signature),
  )
  t.deepEqual(byEd25519, [])
  const byEs256 = misjudged(textual(ecdsa), ({ jwk }, message, signature) => {
    const x = Buffer.from(coordinate(jwk.x), 'base64url')
    const y = Buffer.from(coordinate(jwk.y ?? ''), 'base64url')
    return isSignedBy(
      Buffer.concat([Buffer.of(2 + ((y.at(-1) ?? 0) & 1)), x]),
      'es256',
      text(message) ?? '',
      signature,
    )
  })
  t.deepEqual(byEs256, [])
})
