/** Signatures of agents: 64 bytes as base64url, R‖S for ed25519 and r‖s for es256. */
import { verify } from 'node:crypto'
import { FIELD_SEPARATOR, type KeyAlgorithm, ownershipString } from '../../domain/signed-strings.js'
import { fromBase64Url } from '../../domain/agents/base64.js'
import {
  didKey,
  fingerprint,
  keyObject,
  publicJwk,
  readDidKey,
  readPublicKey,
} from '../../domain/agents/agent-keys.js'
import type {
  OwnershipFault,
  OwnershipVerdict,
  VerifyOwnership,
  VerifySignature,
} from './protocol.js'

const SIGNATURE_BYTES = 64
const SIGNATURE_CHARS = 86

/** The 64 bytes of an encoded signature; null for anything else. */
function readSignature(text: string): Uint8Array | null {
  if (text.length !== SIGNATURE_CHARS) return null
  const bytes = fromBase64Url(text)
  return bytes?.length === SIGNATURE_BYTES ? bytes : null
}

/** Verifies `signature` over `payload` with the raw public key. Never throws. */
export function isSignedBy(
  raw: Uint8Array,
  algorithm: KeyAlgorithm,
  payload: string,
  signature: Uint8Array,
): boolean {
  try {
    const key = keyObject(raw, algorithm)
    const bytes = Buffer.from(payload, 'utf8')
    return algorithm === 'ed25519'
      ? verify(null, bytes, key, signature)
      : verify('sha256', bytes, { key, dsaEncoding: 'ieee-p1363' }, signature)
  } catch {
    return false
  }
}

/** Judges a `key_ownership_proof`; see `OwnershipFault` for the order of its checks. */
export function judgeOwnership(claim: VerifyOwnership): OwnershipVerdict {
  const reading = readPublicKey(claim.publicKey, claim.keyAlgorithm)
  if (reading.tag === 'malformed') return refused('malformed_key')
  if (reading.tag === 'weak') return refused('weak_key')
  const { raw } = reading
  const { anchorType, anchorValue } = claim
  // Only a did:key can be compared with the key here.
  const named = anchorType === 'did_key' && anchorValue !== undefined
  if (named && !names(anchorValue, raw, claim.keyAlgorithm)) return refused('anchor_mismatch')
  const proof = readSignature(claim.proof)
  if (proof === null) return refused('malformed_proof')
  // `ownershipString` throws for such a type, because no valid ownership string contains it.
  if (claim.anchorType.includes(FIELD_SEPARATOR)) return refused('wrong_signature')
  if (!isSignedBy(raw, claim.keyAlgorithm, ownershipString(claim), proof)) {
    return refused('wrong_signature')
  }
  const jwk = publicJwk(raw, claim.keyAlgorithm)
  const did = didKey(raw, claim.keyAlgorithm)
  return { tag: 'valid', jwk, fingerprint: fingerprint(jwk), did, rawKey: raw }
}

/** Judges the signature of a challenge payload. */
export function judgeSignature(claim: VerifySignature): 'valid' | 'invalid' {
  const signature = readSignature(claim.signature)
  if (signature === null) return 'invalid'
  const valid = isSignedBy(claim.publicKey, claim.keyAlgorithm, claim.payload, signature)
  return valid ? 'valid' : 'invalid'
}

function names(did: string, raw: Uint8Array, algorithm: KeyAlgorithm): boolean {
  const named = readDidKey(did)
  if (named === null || named.algorithm !== algorithm) return false
  return named.raw.every((byte, at) => byte === raw[at])
}

function refused(reason: OwnershipFault): OwnershipVerdict {
  return { tag: 'invalid', reason }
}
