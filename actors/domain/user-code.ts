/** User codes of the device flow: eight letters, displayed as `XXXX-XXXX` (RFC 8628 section 6.1). */

/** Consonants without Y, so that codes form no words and letters are not confused with digits. */
export const USER_CODE_ALPHABET = 'BCDFGHJKLMNPQRSTVWXZ'
const USER_CODE_LENGTH = 8

/** Bytes from this value on are rejected, otherwise the first letters would be more likely. */
const FAIR_BYTES = 256 - (256 % USER_CODE_ALPHABET.length)
const CODE = new RegExp(`^[${USER_CODE_ALPHABET}]{${USER_CODE_LENGTH}}$`)
/** Separators that users type, including all hyphen characters. */
const SEPARATORS = /[\s\-\u2010-\u2015\u2212]/g
/** Longer input is never a code. */
const TYPED_LENGTH_MAX = 64

/** Generates a uniformly distributed code. @param bytes returns random bytes. */
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

/** Parses typed input, independent of case, hyphens and spaces. Null if it is not a code. */
export function readUserCode(typed: string): string | null {
  if (typed.length > TYPED_LENGTH_MAX) return null
  const code = typed.replace(SEPARATORS, '').toUpperCase()
  return CODE.test(code) ? code : null
}

/** Four letters, a hyphen, four letters. */
export function showUserCode(code: string): string {
  return `${code.slice(0, USER_CODE_LENGTH / 2)}-${code.slice(USER_CODE_LENGTH / 2)}`
}
