/** Hashes and verifies passwords with argon2id, with bounded concurrency. */
import { address, type Ask } from '../../../runtime/kernel/protocol.js'

export type PasswordsProtocol = {
  /**
   * For a password chosen by a user: compared with the most common ones, and checked against breaches if configured.
   */
  choose: Ask<HashPassword, ChooseOutcome>
  /** For a generated password, or one that was accepted before. */
  hash: Ask<HashPassword, HashOutcome>
  verify: Ask<VerifyPassword, VerifyOutcome>
}

export type HashPassword = { password: string }
export type HashOutcome =
  /** `$argon2id$v=19$m=...,t=...,p=...$salt$hash` */
  | { tag: 'hashed'; phc: string }
  /** Empty, longer than 1,024 UTF-8 bytes, or not well-formed Unicode. */
  | { tag: 'unacceptable' }
  /** Every worker is hashing and the queue is full. Returned immediately. */
  | { tag: 'busy' }

export type ChooseOutcome =
  | HashOutcome
  /** One of the most common passwords. */
  | { tag: 'common' }
  /** Found in breaches. */
  | { tag: 'breached' }
  /** The breached-password check is unavailable. The password is not set. */
  | { tag: 'unchecked' }

export type VerifyPassword = {
  /** The stored hash; null for an unknown user, which takes the same time and never matches. */
  phc: string | null
  password: string
}
export type VerifyOutcome =
  /** `needsRehash`: the stored parameters differ from the configured ones. */
  { tag: 'match'; needsRehash: boolean } | { tag: 'mismatch' } | { tag: 'busy' }

export const passwords = address<PasswordsProtocol>('passwords', {
  idempotent: ['choose', 'hash', 'verify'],
})
