/** An agent's key and its signatures. Used by the tour and the command line. */
import {
  createPrivateKey,
  createPublicKey,
  type JsonWebKey,
  type KeyObject,
  sign,
} from 'node:crypto'
import { type KeyAlgorithm, ownershipString } from '../../../actors/domain/signed-strings.js'
import { toBase64Url } from '../../../actors/domain/agents/base64.js'
import { freshPrivateKey } from '../../kernel/key-pair.js'
import {
  didKey,
  fingerprint,
  type PublicJwk,
  publicJwk,
  rawFromJwk,
} from '../../../actors/domain/agents/agent-keys.js'

export type OwnershipProofFor = {
  /** Exactly as the bootstrap metadata or discovery returned it. */
  readonly issuer: string
  /** The UUID of the tenant to register in, never its slug. */
  readonly tenantId: string
  /** A did:web whose document lists the key. Without it the agent is identified by its did:key. */
  readonly didWeb?: string | undefined
}

/** The members of a registration request that concern the key (docs/reference/agents.md). */
export type RegistrationKey = {
  readonly anchor_type: 'did_key' | 'did_web'
  readonly anchor_value: string
  readonly public_key: string
  readonly key_algorithm: KeyAlgorithm
  readonly key_ownership_proof: string
}

export interface AgentKey {
  readonly algorithm: KeyAlgorithm
  /** base64url of the raw key, as sent. */
  readonly publicKey: string
  readonly did: string
  /** RFC 7638 thumbprint: the key id of challenges and tokens. */
  readonly fingerprint: string
  readonly publicJwk: PublicJwk
  readonly privateKey: KeyObject
  /** The key members of a registration request, including the proof of ownership. */
  registration(target: OwnershipProofFor): RegistrationKey
  /** base64url signature over a challenge's `payload`, for verify. */
  signChallenge(payload: string): string
  /** PKCS#8 PEM, for storage in a private file. */
  exportPem(): string
}

/** A fresh key pair. */
export function createAgentKey(algorithm: KeyAlgorithm = 'ed25519'): AgentKey {
  return agentKey(freshPrivateKey(algorithm === 'ed25519' ? 'ed25519' : 'P-256'))
}

/** A key from `exportPem`. @throws when it is neither Ed25519 nor P-256. */
export function openAgentKey(pem: string): AgentKey {
  return agentKey(createPrivateKey(pem))
}

/** A key from a private JWK. @throws when it is neither Ed25519 nor P-256. */
export function agentKeyFromJwk(jwk: JsonWebKey): AgentKey {
  return agentKey(createPrivateKey({ key: jwk, format: 'jwk' }))
}

function agentKey(privateKey: KeyObject): AgentKey {
  const algorithm = algorithmOf(privateKey)
  const exported = createPublicKey(privateKey).export({ format: 'jwk' }) as PublicJwk
  const raw = rawFromJwk(exported)
  if (raw === null) throw new TypeError('the key is neither ed25519 nor P-256')
  const jwk = publicJwk(raw, algorithm)
  const publicKey = toBase64Url(raw)
  const did = didKey(raw, algorithm)

  function signText(text: string): string {
    const bytes = Buffer.from(text, 'utf8')
    const signature =
      algorithm === 'ed25519'
        ? sign(null, bytes, privateKey)
        : sign('sha256', bytes, { key: privateKey, dsaEncoding: 'ieee-p1363' })
    return signature.toString('base64url')
  }

  return {
    algorithm,
    publicKey,
    did,
    fingerprint: fingerprint(jwk),
    publicJwk: jwk,
    privateKey,
    registration({ issuer, tenantId, didWeb }) {
      const anchorType = didWeb === undefined ? 'did_key' : 'did_web'
      const claim = { issuer, tenantId, anchorType, keyAlgorithm: algorithm, publicKey }
      return {
        anchor_type: anchorType,
        anchor_value: didWeb ?? did,
        public_key: publicKey,
        key_algorithm: algorithm,
        key_ownership_proof: signText(ownershipString(claim)),
      }
    },
    signChallenge: signText,
    exportPem: () => privateKey.export({ format: 'pem', type: 'pkcs8' }) as string,
  }
}

function algorithmOf(key: KeyObject): KeyAlgorithm {
  if (key.asymmetricKeyType === 'ed25519') return 'ed25519'
  if (key.asymmetricKeyDetails?.namedCurve === 'prime256v1') return 'es256'
  throw new TypeError('the key is neither ed25519 nor P-256')
}
