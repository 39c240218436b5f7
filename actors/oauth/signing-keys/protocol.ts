/** Messages of the signing keys. See docs/guides/oauth/signing-keys.md. */
import { address, type Ask, type Send } from '../../../runtime/kernel/protocol.js'
import type { Caller } from '../../domain/audit.js'

export type SigningKeysProtocol = {
  /** Signs claims as a compact JWT with the current key of an algorithm. */
  sign: Ask<SignClaims, Signed | KeysUnavailable>
  /** The JWK Set with every key that verifies tokens of the service (RFC 7517 section 5). */
  keySet: Ask<null, KeySet | KeysUnavailable>
  /** Signs claims of a tenant's credential issuer as a compact JWT with that tenant's current ES256 key. */
  signForTenant: Ask<OfTenant & Omit<SignClaims, 'algorithm'>, Signed | KeysUnavailable>
  /** The JWK Set with every key that verifies credentials of a tenant. */
  tenantKeySet: Ask<OfTenant, KeySet | KeysUnavailable>
  /** Signs claims of a security event as a compact JWT with the current RS256 key of these events. */
  signSecurityEvent: Ask<Omit<SignClaims, 'algorithm'>, Signed | KeysUnavailable>
  /** The JWK Set with every key that verifies security events. */
  securityEventKeySet: Ask<null, KeySet | KeysUnavailable>
  /** The public key of a `kid`. Kept longer than it is published, because of id_token_hint. */
  verificationKey: Ask<
    { readonly kid: string },
    VerificationKeyFound | KeyUnknown | KeysUnavailable
  >
  /** Replaces current keys before their time. Existing tokens stay verifiable. */
  rotateSigningKeys: Ask<RotateKeys, Rotated | RotatedTooRecently | KeysUnavailable>
  /** Creates missing keys, rotates old ones and deletes expired ones. */
  maintain: Ask<null, Maintained | KeysUnavailable>
  /** For readiness: whether tokens can be signed, and whether a restart could load its keys. */
  state: Ask<null, KeysState>
  /** Another process changed the keys (NOTIFY on `SIGNING_KEYS_CHANNEL`). */
  changed: Send<null>
}

/** The NOTIFY channel for changed signing keys. */
export const SIGNING_KEYS_CHANNEL = 'svc_signing_keys'

/** Algorithms of ID tokens. Discovery lists exactly these. RS256 has a key from its first use on. */
export const SIGNING_ALGORITHMS = ['ES256', 'EdDSA', 'RS256'] as const
/** Algorithms of all other tokens. They always have a key. */
export const DEFAULT_ALGORITHMS = ['ES256', 'EdDSA'] as const
export type DefaultAlgorithm = (typeof DEFAULT_ALGORITHMS)[number]
export type SigningAlgorithm = (typeof SIGNING_ALGORITHMS)[number]

export type SignClaims = {
  /** The `typ` of the header: `at+jwt`, `JWT` for ID tokens, `logout+jwt`. */
  readonly typ: string
  /** The claims as JSON. */
  readonly claims: string
  /** Default: `jwt.default_algorithm`. */
  readonly algorithm?: SigningAlgorithm | undefined
}
export type OfTenant = { readonly tenantId: string }
export type Signed = {
  readonly tag: 'signed'
  readonly token: string
  readonly kid: string
  readonly algorithm: SigningAlgorithm
}

export type KeySet = {
  readonly tag: 'key_set'
  /** UTF-8 JSON. Equal keys have equal bytes. */
  readonly bytes: Uint8Array
  /** Strong entity tag with its quotes (RFC 9110 section 8.8.3). */
  readonly etag: string
  readonly maxAgeSecs: number
}

/** A public key in the format of RFC 7517. */
export type PublicJwk = CurveJwk | { readonly kty: 'RSA'; readonly n: string; readonly e: string }
export type CurveJwk = {
  readonly kty: 'EC' | 'OKP'
  readonly crv: 'P-256' | 'Ed25519'
  readonly x: string
  readonly y?: string
}

export type VerificationKeyFound = {
  readonly tag: 'found'
  readonly kid: string
  /** The only algorithm that this key verifies. */
  readonly algorithm: SigningAlgorithm
  readonly jwk: PublicJwk
}
export type KeyUnknown = { readonly tag: 'unknown' }

export type RotateKeys = {
  /** Absent for requests of the service itself. */
  readonly caller?: Caller | undefined
  /** Default: all that have a key. */
  readonly algorithm?: SigningAlgorithm | undefined
  /**
   * The current key is compromised and withdrawn immediately. All of its tokens become invalid, and the
   * next key is used even if verifiers could not fetch it yet.
   */
  readonly compromised: boolean
}
export type Rotated = {
  readonly tag: 'rotated'
  readonly current: readonly { readonly kid: string; readonly algorithm: SigningAlgorithm }[]
}
/** The next key was published so recently that verifiers may not have it yet. */
export type RotatedTooRecently = {
  readonly tag: 'rotated_too_recently'
  readonly retryAfterSecs: number
}

export type Maintained = {
  readonly tag: 'maintained'
  readonly created: number
  readonly promoted: number
  readonly removed: number
}

export type KeysState = {
  readonly tag: 'keys_state'
  /** True if ES256 and EdDSA have a current key whose private key is in memory. */
  readonly signing: boolean
  /** Without the kms the loaded keys still sign, but other sealed data cannot be read. */
  readonly kms: 'up' | 'down'
  /** The cause of a fault, for the log. */
  readonly reason: string | null
}

/** No keys are in memory, and the database or the kms is unavailable. */
export type KeysUnavailable = { readonly tag: 'keys_unavailable' }

export const signingKeys = address<SigningKeysProtocol>('signing-keys', {
  idempotent: [
    'sign',
    'keySet',
    'signForTenant',
    'tenantKeySet',
    'signSecurityEvent',
    'securityEventKeySet',
    'verificationKey',
    'state',
  ],
})
