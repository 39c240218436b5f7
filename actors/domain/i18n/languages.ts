/** Chooses a language by the preferences of browser and application, and fills in its texts. */
import { readFileSync } from 'node:fs'
import Negotiator from 'negotiator'
import type { I18nSettings } from './settings.js'
import { directionOf, type Locale, LOCALES } from './locales.js'

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
 * `ui_locales` has precedence (OpenID Connect Core section 3.1.2.1) over Accept-Language. A range matches a language
 * that is its prefix: `pt-BR` matches `pt` (RFC 4647 section 3.4). Null if neither contains one of `locales`.
 */
function wantedLocale(
  uiLocales: string | null | undefined,
  acceptLanguage: string | undefined,
): Locale | null {
  for (const range of [...ranges(uiLocales ?? ''), ...byWeight(acceptLanguage ?? '')]) {
    const locale = LOCALES.find(
      (supported) => range === supported || range.startsWith(`${supported}-`),
    )
    if (locale !== undefined) return locale
  }
  return null
}

/** What a request says about its language. */
type LanguageRequest = {
  /** `ui_locales` as sent. */
  readonly uiLocales?: string | null | undefined
  /** Accept-Language as sent. */
  readonly acceptLanguage?: string | undefined
  /** `branding.locale` of the tenant. */
  readonly own?: Locale | null | undefined
}

/** The requested language, otherwise the tenant's, otherwise the default of `[i18n]`. */
export function localeFor(
  { uiLocales, acceptLanguage, own }: LanguageRequest,
  { enabled, default_locale: standard }: I18nSettings,
): Locale {
  const wanted = enabled ? wantedLocale(uiLocales, acceptLanguage) : null
  return wanted ?? own ?? standard
}

/** The languages that `[i18n]` offers, for `ui_locales_supported`. */
export const offeredLocales = ({ enabled, default_locale: standard }: I18nSettings) =>
  enabled ? LOCALES : [standard]

/** One form per plural category of the language (Unicode CLDR, as in `Intl.PluralRules`). */
type PluralText = Readonly<
  { other: string } & Partial<Record<Exclude<Intl.LDMLPluralRule, 'other'>, string>>
>
/** A text of a catalogue. With plural forms, `{count}` chooses the form. */
export type Text = string | PluralText

/** The texts of each language: the files next to a module. A test compares them with the English ones. */
export const textsIn = <Texts>(folder: URL | string) =>
  Object.fromEntries(
    LOCALES.map((locale) => [
      locale,
      JSON.parse(readFileSync(new URL(`${locale}.json`, folder), 'utf8')) as Texts,
    ]),
  ) as Readonly<Record<Locale, Texts>>

export type TextValues = Readonly<Record<string, string | number>>

/** First Strong Isolate and Pop Directional Isolate: the value cannot reorder the text around it (Unicode UAX 9). */
const ISOLATED = ['\u2068', '\u2069'] as const

/**
 * Returns the texts of a language with their values. `{count}` is formatted as a number. In right-to-left languages the
 * values are isolated, because most of them are names and addresses in Latin letters.
 */
export function textWriter(locale: Locale): (text: Text, values?: TextValues) => string {
  const plurals = new Intl.PluralRules(locale)
  const numbers = new Intl.NumberFormat(locale)
  const [before, after] = directionOf(locale) === 'rtl' ? ISOLATED : ['', '']
  return (text, values = {}) => {
    const { count } = values
    const isCounted = typeof count === 'number'
    const words =
      typeof text === 'string'
        ? text
        : ((isCounted ? text[plurals.select(count)] : undefined) ?? text.other)
    const written = isCounted ? { ...values, count: numbers.format(count) } : values
    const shown = Object.entries(written).map(([name, value]) => [
      name,
      value === '' ? '' : `${before}${value}${after}`,
    ])
    return filledIn(words, Object.fromEntries(shown) as TextValues)
  }
}

/** A text with its `{name}` placeholders replaced. */
export function filledIn(words: string, values: TextValues): string {
  return words.replaceAll(/\{([a-z]+)\}/g, (whole, name: string) =>
    name in values ? String(values[name]) : whole,
  )
}

/** Formats times in UTC for a locale. */
export function timeWriter(locale: Locale): (moment: Date) => string {
  const format = new Intl.DateTimeFormat(locale, {
    dateStyle: 'medium',
    timeStyle: 'short',
    timeZone: 'UTC',
  })
  return (moment) => `${format.format(moment)} UTC`
}
