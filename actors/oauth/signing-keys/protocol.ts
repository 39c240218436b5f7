/** Signing keys: who signs, what verifies, what is published. decisions.md 8; interface.md, JWKS. */
import { address, type Ask, type Send } from '../../../runtime/kernel/protocol.js'
import type { Caller } from '../../domain/audit.js'

export type KeysProtocol = {
  /** Signs claims as a compact JWT with the current key of an algorithm. */
  sign: Ask<SignClaims, Signed | KeysUnavailable>
  /** Everything that may verify a token of ours, as bytes ready to send (RFC 7517 section 5). */
  keySet: Ask<null, KeySet | KeysUnavailable>
  /** The public key of a `kid`, for longer than it is published: ID tokens come back as hints. */
  verificationKey: Ask<
    { readonly kid: string },
    VerificationKeyFound | KeyUnknown | KeysUnavailable
  >
  /** Replaces current keys before their time. Tokens already signed stay verifiable. */
  rotate: Ask<RotateKeys, Rotated | RotatedTooRecently | KeysUnavailable>
  /** Does what is due: makes keys, replaces those that are too old, removes those that ran out. */
  maintain: Ask<null, Maintained | KeysUnavailable>
  /** For readiness: can tokens be signed, and would a restart find its keys? */
  state: Ask<null, KeysState>
  /** Another process changed the keys (NOTIFY on `SIGNING_KEYS_CHANNEL`): look again. */
  changed: Send<null>
}

/** The channel on which a process tells the others that signing keys changed. */
export const SIGNING_KEYS_CHANNEL = 'svc_signing_keys'

/** Algorithms of our own signatures; discovery lists exactly these. */
export const SIGNING_ALGORITHMS = ['ES256', 'EdDSA'] as const
export type SigningAlgorithm = (typeof SIGNING_ALGORITHMS)[number]

export type SignClaims = {
  /** The `typ` of the header: `at+jwt`, `JWT` for ID tokens, `logout+jwt`. */
  readonly typ: string
  /** Their JSON. */
  readonly claims: string
  /** Absent means `jwt.default_algorithm`. */
  readonly algorithm?: SigningAlgorithm | undefined
}
export type Signed = {
  readonly tag: 'signed'
  readonly token: string
  readonly kid: string
  readonly algorithm: SigningAlgorithm
}

export type KeySet = {
  readonly tag: 'key_set'
  /** UTF-8 JSON. The same keys give the same bytes. */
  readonly bytes: Uint8Array
  /** Strong entity tag with its quotes (RFC 9110 section 8.8.3). */
  readonly etag: string
  readonly maxAgeSecs: number
}

/** A public key as RFC 7517 writes it, with what it is for. */
export type PublicJwk = {
  readonly kty: 'EC' | 'OKP'
  readonly crv: 'P-256' | 'Ed25519'
  readonly x: string
  readonly y?: string | undefined
}

export type VerificationKeyFound = {
  readonly tag: 'found'
  readonly kid: string
  /** The only algorithm this key verifies. */
  readonly algorithm: SigningAlgorithm
  readonly jwk: PublicJwk
}
export type KeyUnknown = { readonly tag: 'unknown' }

export type RotateKeys = {
  /** Absent where nobody asks for it by name. */
  readonly caller?: Caller | undefined
  /** Absent means both. */
  readonly algorithm?: SigningAlgorithm | undefined
  /**
   * The current key is known to others: withdraw it at once. Every token it signed dies, and the
   * next key serves even if verifiers have not had time to fetch it.
   */
  readonly compromised: boolean
}
export type Rotated = {
  readonly tag: 'rotated'
  readonly current: readonly { readonly kid: string; readonly algorithm: SigningAlgorithm }[]
}
/** The next key was published so recently that verifiers may not know it yet. */
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
  /** Both algorithms have a current key whose private half is in memory. */
  readonly signing: boolean
  /** Without the kms what is loaded keeps signing; sealed data that is not in memory stays shut. */
  readonly kms: 'up' | 'down'
  /** A word for the log where something is amiss. */
  readonly reason: string | null
}

/** No keys in memory and none to be had now: the database or the kms does not answer. */
export type KeysUnavailable = { readonly tag: 'keys_unavailable' }

export const keys = address<KeysProtocol>('keys', [
  'sign',
  'keySet',
  'verificationKey',
  'maintain',
  'state',
])
