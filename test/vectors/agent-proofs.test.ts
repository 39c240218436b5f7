import { createHash, createPrivateKey, sign, type KeyObject } from 'node:crypto'
import test from 'ava'
import { challengePayload, ownershipString } from '../../actors/domain/signed-strings.js'
import {
  didKey,
  fingerprint,
  publicJwk,
  readDidKey,
  readPublicKey,
} from '../../actors/domain/agents/agent-keys.js'
import { judgeOwnership, judgeSignature } from '../../actors/agents/proof-of-work/signatures.js'
import { judgeWork, leadingZeroBits, workDigest } from '../../actors/agents/proof-of-work/work.js'
import { contract } from './contract.js'

const { key, issuer, tenant_id: tenantId, ownership, challenge, work } = contract
const claim = {
  issuer,
  tenantId,
  anchorType: ownership.anchor_type,
  keyAlgorithm: 'ed25519',
  publicKey: key.public_key,
} as const
const payload = challengePayload({
  issuer,
  tenantId,
  agentId: challenge.agent_id,
  keyId: key.fingerprint,
  challengeId: challenge.challenge_id,
  nonce: challenge.nonce,
  expiresAtSecs: challenge.expires_at,
})

test('the published public key reads as the key of RFC 8032 TEST 1', (t) => {
  const reading = readPublicKey(key.public_key, 'ed25519')
  t.is(reading.tag, 'key')
  if (reading.tag !== 'key') return
  t.is(didKey(reading.raw, 'ed25519'), key.did)
  t.is(fingerprint(publicJwk(reading.raw, 'ed25519')), key.fingerprint)
  t.deepEqual(readDidKey(key.did), { algorithm: 'ed25519', raw: reading.raw })
})

test('the ownership string has the published length and digest', (t) => {
  const text = ownershipString(claim)
  t.is(Buffer.byteLength(text), ownership.bytes)
  t.is(sha256(text), ownership.sha256)
  t.is(signed(text), ownership.key_ownership_proof)
})

test('the published ownership proof is valid and names the published identities', (t) => {
  const verdict = judgeOwnership({ ...claim, proof: ownership.key_ownership_proof })
  t.is(verdict.tag, 'valid')
  if (verdict.tag !== 'valid') return
  t.is(verdict.did, key.did)
  t.is(verdict.fingerprint, key.fingerprint)
})

test('the challenge payload has the published length, digest and signature', (t) => {
  t.is(Buffer.byteLength(payload), challenge.bytes)
  t.is(sha256(payload), challenge.sha256)
  t.is(signed(payload), challenge.signature)
})

test('the published challenge signature verifies', (t) => {
  const publicKey = new Uint8Array(Buffer.from(key.public_key, 'base64url'))
  const { signature } = challenge
  const claimed = { publicKey, keyAlgorithm: 'ed25519', payload, signature } as const
  t.is(judgeSignature(claimed), 'valid')
  t.is(judgeSignature({ ...claimed, payload: `${payload}\n` }), 'invalid')
})

for (const { difficulty_bits: bits, nonce, digest_prefix: prefix } of work.smallest) {
  test(`the published nonce ${nonce} proves ${bits} bits`, (t) => {
    const digest = workDigest(work.challenge_token, nonce)
    t.true(Buffer.from(digest).toString('hex').startsWith(prefix))
    t.true(leadingZeroBits(digest) >= bits)
    t.is(judgeWork(work.challenge_token, nonce, bits), 'valid')
    t.is(judgeWork(work.challenge_token, String(BigInt(nonce) + 1n), bits), 'invalid')
  })
}

function signed(text: string): string {
  return sign(null, Buffer.from(text), privateKey()).toString('base64url')
}

function privateKey(): KeyObject {
  const d = Buffer.from(key.secret_hex, 'hex').toString('base64url')
  const jwk = { kty: 'OKP', crv: 'Ed25519', d, x: key.public_key }
  return createPrivateKey({ key: jwk, format: 'jwk' })
}

function sha256(text: string): string {
  return createHash('sha256').update(text).digest('hex')
}
