import test from 'ava'
import { SignJWT } from 'jose'
import { Signer } from '../../../../actors/oauth/signing-keys/ring.js'
import type { SigningKey } from '../../../../actors/platform/jose/own-jwt.js'
import { freshKeyPair } from '../../../../runtime/kernel/key-pair.js'

/** EdDSA signatures are deterministic (RFC 8032 section 5.1.6), so equal tokens have equal bytes. */
const key: SigningKey = {
  kid: 'ed',
  algorithm: 'EdDSA',
  privateKey: freshKeyPair('ed25519').privateKey,
}

const signedByJose = (typ: string, claims: Record<string, string>) =>
  new SignJWT(claims).setProtectedHeader({ alg: 'EdDSA', typ, kid: 'ed' }).sign(key.privateKey)

test('a signer writes the same token as jose, whatever the length and the letters of its claims', async (t) => {
  const signer = new Signer(key)
  const names = ['a', 'é', '名', '\u{1f511}', '\\"']
  const lengths = [0, 1, 100, 1_800, 5_000, 5_461, 5_462, 12_200, 12_300, 16_384, 40_000]
  for (const name of names) {
    for (const length of lengths) {
      const claims = { sub: 'agent', name: name.repeat(length) }
      t.is(signer.sign('at+jwt', JSON.stringify(claims)), await signedByJose('at+jwt', claims))
    }
  }
  // A short token after long ones contains nothing of them.
  t.is(signer.sign('JWT', '{"sub":"a"}'), await signedByJose('JWT', { sub: 'a' }))
})
