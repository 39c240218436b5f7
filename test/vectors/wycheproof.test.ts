/**
 * Project Wycheproof's signature vectors, through both verification paths for foreign signatures:
 * tokens and proofs signed by clients, and challenges signed by agents.
 */
import { readFileSync } from 'node:fs'
import test, { type ExecutionContext } from 'ava'
import type { CurveJwk } from '../../actors/oauth/signing-keys/protocol.js'
import { importPublicJwk, type ImportedKey } from '../../actors/platform/jose/external-jwk.js'
import { isSignedBy } from '../../actors/agents/proof-of-work/signatures.js'
import { ownPublicKey, verifyBytes } from '../../actors/platform/jose/own-jwt.js'

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
async function misjudged(
  all: readonly Group[],
  accepts: (group: Group, message: Buffer, signature: Buffer) => boolean | Promise<boolean>,
): Promise<string[]> {
  const wrong: string[] = []
  for (const group of all)
    for (const { tcId, comment, msg, sig, result } of group.tests) {
      const accepted = await accepts(group, Buffer.from(msg, 'hex'), Buffer.from(sig, 'hex'))
      // 'acceptable' are shorter signatures, which RFC 7518 section 3.4 does not allow.
      if (accepted !== (result === 'valid')) wrong.push(`${tcId} ${comment}: ${result}`)
    }
  return wrong
}

/** The key of a client, whose signatures jose verifies with WebCrypto. The same signature by a key of ours agrees. */
async function accepts(t: ExecutionContext, jwk: CurveJwk, message: Buffer, signature: Buffer) {
  const key = (await importPublicJwk(jwk)) as ImportedKey
  t.truthy(key, `${jwk.x} is a key`)
  const { algorithm, publicKey } = key
  const scheme = algorithm === 'ES256' ? { name: 'ECDSA', hash: 'SHA-256' } : 'Ed25519'
  const accepted = await crypto.subtle.verify(scheme, publicKey, signature, message)
  const own = { algorithm, publicKey: ownPublicKey(jwk) }
  t.is(verifyBytes(own, message, signature), accepted)
  return accepted
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

test('ES256 signatures of clients have the results of Wycheproof', async (t) => {
  const wrong = await misjudged(ecdsa, ({ jwk }, message, signature) => {
    const whole = { x: coordinate(jwk.x), y: coordinate(jwk.y ?? '') }
    return accepts(t, { kty: 'EC', crv: 'P-256', ...whole }, message, signature)
  })
  t.deepEqual(wrong, [])
})

test('EdDSA signatures of clients have the results of Wycheproof', async (t) => {
  const wrong = await misjudged(ed25519, ({ jwk: { x } }, message, signature) =>
    accepts(t, { kty: 'OKP', crv: 'Ed25519', x }, message, signature),
  )
  t.deepEqual(wrong, [])
})

test('signatures of agents have the results of Wycheproof', async (t) => {
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
  const byEd25519 = await misjudged(textual(ed25519), ({ jwk }, message, signature) =>
    isSignedBy(Buffer.from(jwk.x, 'base64url'), 'ed25519', text(message) ?? '', signature),
  )
  t.deepEqual(byEd25519, [])
  const byEs256 = await misjudged(textual(ecdsa), ({ jwk }, message, signature) => {
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
