/**
 * The code a person reads from one device and types into another: eight letters, shown as
 * `XXXX-XXXX` (RFC 8628 section 6.1; decisions.md section 3, `user_code`).
 */

/** Consonants without Y: no words come out, and no letter is taken for a digit. */
export const USER_CODE_ALPHABET = 'BCDFGHJKLMNPQRSTVWXZ'
export const USER_CODE_LENGTH = 8

/** Bytes from here on would make the first letters of the alphabet likelier than the others. */
const FAIR_BYTES = 256 - (256 % USER_CODE_ALPHABET.length)
const CODE = new RegExp(`^[${USER_CODE_ALPHABET}]{${USER_CODE_LENGTH}}$`)
/** What people put between the letters; a hyphen by any of its characters. */
const SEPARATORS = /[\s\-\u2010-\u2015\u2212]/g
/** Longer texts are no code however they are grouped. */
const TYPED_LENGTH_MAX = 64

/** A new code, each letter equally likely; `bytes` gives that many unpredictable bytes. */
export function newUserCode(bytes: (count: number) => Uint8Array): string {
  let code = ''
  while (code.length < USER_CODE_LENGTH) {
    for (const byte of bytes(USER_CODE_LENGTH * 2)) {
      if (byte < FAIR_BYTES && code.length < USER_CODE_LENGTH) {
        code += USER_CODE_ALPHABET[byte % USER_CODE_ALPHABET.length]!
      }
    }
  }
  return code
}

/** The code in a text as typed, whatever its case, hyphens and spaces; null when there is none. */
export function readUserCode(typed: string): string | null {
  if (typed.length > TYPED_LENGTH_MAX) return null
  const code = typed.replace(SEPARATORS, '').toUpperCase()
  return CODE.test(code) ? code : null
}

/** Four letters, a hyphen, four letters. */
export function showUserCode(code: string): string {
  return `${code.slice(0, USER_CODE_LENGTH / 2)}-${code.slice(USER_CODE_LENGTH / 2)}`
}
