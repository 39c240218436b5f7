/**
 * The commonest passwords, from the list of zxcvbn-ts, which is sorted by how often each occurs in breaches. It
 * needs no network, so it holds where the breach check is off as well.
 */

/** Nothing shorter can be chosen (`isStrong`), so shorter entries matter only as the core of a longer password. */
const LENGTH_MIN = 12
const COMMONEST = 10_000
const CORE_LENGTH_MIN = 4
/** Digits and signs that people put around a common password to make it long enough. */
const PADDING_MAX = 6
const PADDED = /^([^\p{L}]*)(\p{L}.*\p{L}|\p{L})([^\p{L}]*)$/u

export type CommonPasswords = { has(password: string): boolean }

/** Reads the list: once, and where passwords are chosen. */
export async function loadCommonPasswords(): Promise<CommonPasswords> {
  const { dictionary } = await import('@zxcvbn-ts/language-common')
  return commonPasswords(dictionary['passwords-common'].map(String))
}

/**
 * True for every password of the list in any case, and for one of the 10,000 commonest with up to six digits or
 * signs before and behind it.
 */
export function commonPasswords(byFrequency: readonly string[]): CommonPasswords {
  const long = new Set(byFrequency.filter((one) => one.length >= LENGTH_MIN))
  const cores = new Set(
    byFrequency.slice(0, COMMONEST).filter((one) => one.length >= CORE_LENGTH_MIN),
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
