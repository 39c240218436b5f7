/** Hashes and checks passwords with argon2id, never more at once than memory allows. */
import { address, type Ask } from '../../../runtime/kernel/protocol.js'

export type PasswordsProtocol = {
  /**
   * For a password that a person chose: compared with the commonest ones, and checked against breaches where
   * that is configured.
   */
  choose: Ask<HashPassword, ChooseOutcome>
  /** For a password that we made, or that was accepted before. */
  hash: Ask<HashPassword, HashOutcome>
  verify: Ask<VerifyPassword, VerifyOutcome>
}

export type HashPassword = { password: string }
export type HashOutcome =
  /** `$argon2id$v=19$m=...,t=...,p=...$salt$hash` */
  | { tag: 'hashed'; phc: string }
  /** Empty, longer than 1,024 UTF-8 bytes, or not well-formed Unicode. */
  | { tag: 'unacceptable' }
  /** Every worker is hashing and the queue is full; answered at once. */
  | { tag: 'busy' }

export type ChooseOutcome =
  | HashOutcome
  /** Among the commonest passwords. */
  | { tag: 'common' }
  /** Known from breaches. */
  | { tag: 'breached' }
  /** Breaches could not be asked; the password is not set. */
  | { tag: 'unchecked' }

export type VerifyPassword = {
  /** The stored hash; null for an unknown user, which costs the same time and never matches. */
  phc: string | null
  password: string
}
export type VerifyOutcome =
  /** `needsRehash` when the stored parameters are not the configured ones. */
  { tag: 'match'; needsRehash: boolean } | { tag: 'mismatch' } | { tag: 'busy' }

export const passwords = address<PasswordsProtocol>('passwords', ['choose', 'hash', 'verify'])
