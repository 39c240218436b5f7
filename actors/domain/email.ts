/**
 * E-mail addresses: RFC 5321 section 4.1.2 without quotes, so the local part is atoms of ASCII with dots between them. The
 * domain is stored and compared in A-labels (IDNA 2008, RFC 5890) and shown to people in letters (U-labels). Two spellings
 * of a domain are one address; domains that only look alike are two.
 */
import { domainToASCII, domainToUnicode } from 'node:url'

declare const STORED: unique symbol
/** An address as it is stored: the local part as typed, the domain in lower-case A-labels. `lower` of it is its key. */
export type Email = string & { readonly [STORED]: true }

const LENGTH_MAX = 254
/** The longest typed address, whose letters may be of several characters. Bounds the work. */
const TYPED_MAX = 1024
const LOCAL_PART_MAX = 64
const DOMAIN_MAX = 253
/** The placeholder addresses of guests. No mailbox exists there (RFC 6761 section 6.4). */
const GUEST_DOMAIN = 'guest.invalid'

const ATOM = "[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+"
const LOCAL_PART = new RegExp(`^${ATOM}(?:[.]${ATOM})*$`)
/** Local parts and domains of accounts from releases that took letters there, without two that `lower` turns into ASCII. */
const OLD_ATOM = String.raw`[^\s@"().,:;<>[\\\]\p{C}\u0130\u212a]+`
const OLD_LOCAL_PART = new RegExp(`^${OLD_ATOM}(?:[.]${OLD_ATOM})*$`, 'u')
const OLD_LABEL = String.raw`(?!-)(?:(?![\u0130\u212a])[\p{L}\p{M}\p{N}\u00b7-]){1,63}(?<!-)`
const OLD_DOMAIN = new RegExp(`^${OLD_LABEL}(?:[.]${OLD_LABEL})+$`, 'u')

/** An address that an account, a buyer or an invitation may have, in its stored form. */
export function parseEmail(text: string): Email | undefined {
  return read(text, LOCAL_PART, mailDomain)
}

/** The stored form of an address that an account may have had for long: its local part may have letters. */
export function soughtEmail(text: string): Email | undefined {
  return read(text, OLD_LOCAL_PART, (typed) => {
    return mailDomain(typed) ?? (OLD_DOMAIN.test(typed) ? typed : undefined)
  })
}

function read(
  text: string,
  localPart: RegExp,
  domainOf: (typed: string) => string | undefined,
): Email | undefined {
  if (text.length > TYPED_MAX) return undefined
  const at = text.lastIndexOf('@')
  const local = text.slice(0, Math.max(at, 0))
  if (local.length > LOCAL_PART_MAX || !localPart.test(local)) return undefined
  const domain = domainOf(text.slice(at + 1))
  if (domain === undefined || domain === GUEST_DOMAIN) return undefined
  const address = `${local}@${domain}`
  return address.length <= LENGTH_MAX ? (address as Email) : undefined
}

/** A name that may be an address, such as a userName of SCIM: letters of its domain become A-labels. */
export const storedName = (name: string): string =>
  /[^\0-\x7f]/.test(name) ? (soughtEmail(name) ?? name) : name

/** The placeholder address of a guest. */
export const guestAddress = (accountId: string) => `${accountId}@${GUEST_DOMAIN}` as Email

/** The address of an account without one, at a domain that is always invalid. */
export const placeholderAddress = (userId: string) => `${userId}@scim.invalid` as Email

/** The domain of a stored address. */
export const domainOfEmail = (address: string): string =>
  address.slice(address.lastIndexOf('@') + 1).toLowerCase()

/** For people: an address with its domain in letters, where they are of one script. */
export function shownEmail(address: string): string {
  if (!/@.*xn--/.test(address)) return address
  const at = address.lastIndexOf('@') + 1
  const domain = address.slice(at)
  const letters = domainToUnicode(domain)
  const isPlain = mailDomain(letters) === domain && !letters.split('.').some(mixesScripts)
  return isPlain ? address.slice(0, at) + letters : address
}

/** Latin letters next to letters that look like them: browsers show such a label as A-label (UTS 39 section 5.2). */
const mixesScripts = (label: string): boolean =>
  /\p{Script=Latin}/u.test(label) &&
  /\p{Script=Cyrillic}|\p{Script=Greek}|\p{Script=Armenian}|\p{Script=Cherokee}/u.test(label)

const ASCII_DOMAIN = /^[a-z0-9.-]+$/
const ASCII_LABEL = /^(?!-)[a-z0-9-]{1,63}(?<!-)$/
/** All spellings of IPv4 addresses end with a number, and no top-level domain is a number (RFC 3696 section 2). */
const NUMBER = /^(?:[0-9]+|0x[0-9a-f]*)$/

/**
 * Code points of U-labels (RFC 5892): letters, marks and digits that Unicode's compatible form and case folding keep (which
 * the way to A-labels and back tests), the exceptions of its section 2.6, and those that need a context (appendix A).
 */
const EXCLUDED =
  String.raw`[\u0640\u07fa\u302e\u302f\u3031-\u3035\u303b\u1100-\u11ff\ua960-\ua97c\ud7b0-\ud7fb\u20d0-\u20ff` +
  String.raw`\u{1d100}-\u{1d24f}]|(?![\u200c\u200d])\p{Default_Ignorable_Code_Point}`
const IN_CONTEXT =
  String.raw`(?<=l)\u00b7(?=l)|\u0375(?=\p{Script=Greek})|(?<=\p{Script=Hebrew})[\u05f3\u05f4]|` +
  String.raw`\u30fb(?=.*JAPANESE)|(?<=JAPANESE.*)\u30fb|[\u200c\u200d]`.replaceAll(
    'JAPANESE',
    String.raw`[\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Han}]`,
  )
const U_LABEL = new RegExp(
  String.raw`^(?![\p{M}-])(?!..--)(?!.*[\u0660-\u0669].*[\u06f0-\u06f9]|.*[\u06f0-\u06f9].*[\u0660-\u0669])` +
    String.raw`(?:(?!${EXCLUDED})[\p{Ll}\p{Lo}\p{Lm}\p{Mn}\p{Mc}\p{Nd}\u06fd\u06fe\u0f0b\u3007-]|${IN_CONTEXT})+(?<!-)$`,
  'u',
)
/** Their lower case is ASCII, or differs between versions of Unicode: the domain could be another one's. */
const AMBIGUOUS = /[\u0130\u212a\u1e9e]/

/**
 * A mail domain in lower-case A-labels. Undefined for anything but two or more labels. Typed letters may differ from
 * U-labels in case, width, composition and kind of dot only (RFC 5895), so that no domain becomes another one.
 */
export function mailDomain(text: string): string | undefined {
  if (text.length > TYPED_MAX || AMBIGUOUS.test(text)) return undefined
  const typed = text
    .replaceAll(/[\uff01-\uff5e\uff61-\uffdc]/g, (wide) => wide.normalize('NFKC'))
    .replaceAll('\u3002', '.')
    .normalize('NFC')
    .replaceAll(/\p{Lu}/gu, (letter) => letter.toLowerCase())
  const isPlain = ASCII_DOMAIN.test(typed) && !/(?:^|[.])xn--/.test(typed)
  const domain = isPlain ? typed : aLabels(typed)
  if (domain === undefined || domain.length > DOMAIN_MAX) return undefined
  const labels = domain.split('.')
  if (labels.length < 2 || NUMBER.test(labels.at(-1)!)) return undefined
  return labels.every((label) => ASCII_LABEL.test(label)) ? domain : undefined
}

/** Undefined unless each label is a U-label, an A-label of one, or ASCII. */
function aLabels(typed: string): string | undefined {
  const labels = typed.split('.')
  const isLetters = (label: string) => ASCII_LABEL.test(label) || U_LABEL.test(label)
  if (!labels.every(isLetters)) return undefined
  const domain = domainToASCII(typed)
  const letters = domainToUnicode(domain)
  if (domain === '' || domainToASCII(letters) !== domain) return undefined
  const shown = letters.split('.')
  const isKept = (label: string, index: number) => {
    const typedLabel = labels[index]
    if (!label.startsWith('xn--')) return label === typedLabel
    const letter = shown[index]!
    return U_LABEL.test(letter) && (typedLabel === label || typedLabel === letter)
  }
  return domain.split('.').every(isKept) ? domain : undefined
}
