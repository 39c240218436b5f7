/** Published vectors of Web Bot Auth, and the bases of signatures. */
import { createPublicKey, generateKeyPairSync, verify } from 'node:crypto'
import test from 'ava'
import { signatureJwk } from '../../../../actors/platform/agent-signature-keys.js'
import {
  type Component,
  contentDigest,
  httpSignature,
  signatureBase,
  signatureInput,
} from '../../../../actors/platform/http-signatures.js'

const POINT = 'JrQLj5P_89iXES9-vFgrIy29clF9CC_oPPsw3c5D0bs'
const KID = 'poqkLGiymh_W0uP6PZFw-dvez3QJT5SolqXBCW38r0U'
const key = createPublicKey({ key: { kty: 'OKP', crv: 'Ed25519', x: POINT }, format: 'jwk' })
const COMPONENTS: readonly Component[] = [
  ['"@authority"', 'example.com'],
  ['"signature-agent";key="agent2"', '"https://signature-agent.test"'],
]

test('the base of the published signature', (t) => {
  const input = signatureInput(COMPONENTS, {
    created: 1735689600,
    keyid: KID,
    alg: 'ed25519',
    expires: 4889289600,
    nonce:
      'n9p433xm+NJ3ph3upfBIGmsuwHw387YV7Q/F+6BSpGCVjYCqQw6rznNA8PVVLySrAWsv0hQtFioQb6E1YsauiA==',
    tag: 'web-bot-auth',
  })
  t.is(
    input,
    '("@authority" "signature-agent";key="agent2");created=1735689600;keyid="poqkLGiymh_W0uP6PZFw-dvez3QJT5SolqXBCW38r0U";alg="ed25519";expires=4889289600;nonce="n9p433xm+NJ3ph3upfBIGmsuwHw387YV7Q/F+6BSpGCVjYCqQw6rznNA8PVVLySrAWsv0hQtFioQb6E1YsauiA==";tag="web-bot-auth"',
  )
  const signature = Buffer.from(
    'RdNFx5Bj6au3YgAMQL/RzmUlZE8QZLIaXGRpw985hWnwPfMxT228NMk6ehRS1PSl4e8PhbNZACSanGdhEwYCCg==',
    'base64',
  )
  t.true(verify(null, Buffer.from(signatureBase(COMPONENTS, input)), key, signature))
})

test('the digest of the published directory', (t) => {
  const directory = { keys: [signatureJwk({ point: POINT, kid: KID })] }
  t.is(
    contentDigest(Buffer.from(JSON.stringify(directory))),
    'sha-256=:CADMT2aBdV/rqQr/NIru64ERQkCobVvllA4V0fLFDu0=:',
  )
})

test('a signature is over its base', (t) => {
  const { privateKey, publicKey } = generateKeyPairSync('ed25519')
  const { input, signature } = httpSignature(privateKey, COMPONENTS, { created: 1 })
  const bytes = Buffer.from(signature.slice(1, -1), 'base64')
  t.true(verify(null, Buffer.from(signatureBase(COMPONENTS, input)), publicKey, bytes))
})
