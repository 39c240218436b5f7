/** Codes by text message: six digits, of which the database has only hashes. */
import type { Random } from '../../../../../runtime/kernel/random.js'
import { filledIn, localeFor } from '../../../../domain/i18n/languages.js'
import type { I18nSettings } from '../../../../domain/i18n/settings.js'
import { typedProfileValue } from '../../../../domain/people/profile-claims.js'
import { withoutLinks } from '../../../../domain/shown-names.js'
import type { PageTenant } from '../../../../domain/tenants/branding.js'
import { MAIL_TEXTS } from '../../../../platform/mail/render.js'
import { codeSha256 } from '../../../../domain/secret-hashes.js'

/** The longest multiple of 1,000,000 in 32 bits: larger values would make some codes more likely. */
const FAIR_MAX = 4_294_000_000
const CODE = /^[0-9]{6}$/
/** Country code and subscriber: fewer digits reach no phone. */
const REACHABLE = /^\+[1-9][0-9]{6,14}$/

export function newCode(random: Random): string {
  for (;;) {
    const value = Buffer.from(random.bytes(4)).readUInt32BE(0)
    if (value < FAIR_MAX) return String(value % 1_000_000).padStart(6, '0')
  }
}

/** The code as typed, with or without spaces and hyphens. Null if it is not a code. */
export function readCode(typed: string): string | null {
  const code = typed.replaceAll(/[\s-]/g, '')
  return CODE.test(code) ? code : null
}

/** @param secret token of the flow or session that the code belongs to. */
export const textCodeSha256 = (secret: string, code: string): Uint8Array =>
  codeSha256('svc-text-code-v1', secret, code)

/** The number as typed, in E.164 format. */
export function readNumber(
  typed: string,
  allowedPrefixes: readonly string[],
): { readonly number: string } | { readonly tag: 'invalid_number' | 'country_refused' } {
  const number = typedProfileValue('phone_number', typed)
  if (number === undefined || !REACHABLE.test(number)) return { tag: 'invalid_number' }
  const isAllowed =
    allowedPrefixes.length === 0 || allowedPrefixes.some((prefix) => number.startsWith(prefix))
  return isAllowed ? { number } : { tag: 'country_refused' }
}

/**
 * The text of a message. Its last line binds the code to the host, so that browsers and phones offer to fill it in
 * there only (Web platform "Origin-bound one-time codes").
 */
export function codeText(
  code: string,
  { name, locale }: Pick<PageTenant, 'name' | 'locale'>,
  host: string,
  wanted: { readonly uiLocales?: string | null; readonly languages: string },
  i18n: I18nSettings,
): string {
  const { uiLocales, languages: acceptLanguage } = wanted
  const chosen = localeFor({ uiLocales, acceptLanguage, own: locale }, i18n)
  const tenant = withoutLinks(name.replaceAll(/[\p{Cc}\p{Zl}\p{Zp}]+/gu, ' ').trim())
  const words = filledIn(MAIL_TEXTS[chosen]['text.code'], { code, tenant })
  return `${words}\n\n@${host} #${code}`
}
