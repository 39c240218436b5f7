/**
 * The most common passwords, from the list of zxcvbn-ts, which is sorted by frequency in breaches. It needs no network,
 * so it also applies when the breach check is disabled.
 */

/** Shorter passwords cannot be chosen (`isStrong`), so shorter entries matter only as the core of a longer password. */
const LENGTH_MIN = 12
const COMMONEST = 10_000
const CORE_LENGTH_MIN = 4
/** Digits and punctuation that users add to a common password to reach the minimum length. */
const PADDING_MAX = 6
const PADDED = /^([^\p{L}]*)(\p{L}.*\p{L}|\p{L})([^\p{L}]*)$/u

export type CommonPasswords = { has(password: string): boolean }

/** Loads the list once, in the actors that set passwords. */
export async function loadCommonPasswords(): Promise<CommonPasswords> {
  const { dictionary } = await import('@zxcvbn-ts/language-common')
  return commonPasswords(dictionary['passwords-common'].map(String))
}

/**
 * Matches every password of the list in any case, and the 10,000 most common ones with up to six digits or punctuation
 * characters before and after them.
 */
export function commonPasswords(byFrequency: readonly string[]): CommonPasswords {
  const long = new Set(byFrequency.filter((password) => password.length >= LENGTH_MIN))
  const cores = new Set(
    byFrequency.slice(0, COMMONEST).filter((password) => password.length >= CORE_LENGTH_MIN),
  )
  return {
    has(password) {
      const folded = password.normalize('NFKC').toLowerCase()
      if (long.has(folded) || cores.has(folded)) return true
      const [, before = '', core = '', behind = ''] = PADDED.exec(folded) ?? []
      return cores.has(core) && before.length + behind.length <= PADDING_MAX
    },
  }
}
