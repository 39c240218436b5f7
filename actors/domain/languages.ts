/** Chooses a language by the preferences of browser and application. */
import Negotiator from 'negotiator'

const ranges = (wanted: string): string[] =>
  wanted
    .split(/[\s,]+/)
    .map((range) => range.split(';')[0]!.trim().toLowerCase())
    .filter((range) => range !== '')

/** Accept-Language in the order of its weights (RFC 9110 section 12.5.4); weight 0 is left out. */
const byWeight = (header: string): string[] =>
  new Negotiator({ headers: { 'accept-language': header } })
    .languages()
    .map((range) => range.toLowerCase())

/**
 * `ui_locales` has precedence (OpenID Connect Core section 3.1.2.1) over Accept-Language. Null if neither contains one
 * of `locales`.
 */
export function wantedLocale(
  locales: readonly string[],
  uiLocales: string | null | undefined,
  acceptLanguage: string | undefined,
): string | null {
  for (const range of [...ranges(uiLocales ?? ''), ...byWeight(acceptLanguage ?? '')]) {
    const locale = locales.find(
      (supported) => range === supported || range.startsWith(`${supported}-`),
    )
    if (locale !== undefined) return locale
  }
  return null
}

/** A text with its `{name}` placeholders replaced. */
export function filledIn(
  words: string,
  values: Readonly<Record<string, string | number>> = {},
): string {
  return words.replaceAll(/\{([a-z]+)\}/g, (whole, name: string) =>
    name in values ? String(values[name]) : whole,
  )
}

/** Formats times in UTC for a locale. */
export function timeWriter(locale: string): (moment: Date) => string {
  const format = new Intl.DateTimeFormat(locale, {
    dateStyle: 'medium',
    timeStyle: 'short',
    timeZone: 'UTC',
  })
  return (moment) => `${format.format(moment)} UTC`
}
