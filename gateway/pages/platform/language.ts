/** Chooses the language of a page, and formats its texts. */
import { type I18nSettings, I18N_DEFAULTS } from '../../../actors/domain/i18n/settings.js'
import {
  localeFor,
  type TextValues,
  textWriter,
  timeWriter,
} from '../../../actors/domain/i18n/languages.js'
import { currencyExponent, decimalAmount } from '../../../actors/domain/commerce/currencies.js'
import { directionOf, type Locale } from '../../../actors/domain/i18n/locales.js'
import { isMessage, type MessageKey, TEXTS } from '../texts/texts.js'

type CalendarUnit = 'day' | 'week' | 'month' | 'year'

export type Language = {
  /** BCP 47, for `lang`. */
  readonly locale: Locale
  /** For `dir`. */
  readonly direction: 'ltr' | 'rtl'
  /** What a scope permits. The name itself for a scope of an API resource. */
  readonly scopeText: (scope: string) => string
  /** The text of a key, with `{name}` replaced. `count` chooses the plural form. */
  readonly say: (key: MessageKey, values?: TextValues) => string
  /** A time in UTC, in the format of the locale. */
  readonly time: (moment: Date) => string
  /** How long ago or ahead a time is, such as `3 minutes ago`. */
  readonly relativeTime: (moment: Date, now: Date) => string
  /** A duration in whole minutes, rounded up, with its unit. */
  readonly minutes: (secs: number) => string
  /** A duration in the largest unit (day, hour or minute) that divides it. */
  readonly lasting: (secs: number) => string
  /** A number of days, weeks, months or years. */
  readonly stretch: (count: number, unit: CalendarUnit) => string
  /** An amount in minor units, in the format of the locale. */
  readonly money: (amountMinor: number, currency: string) => string
}

/** The preferences of a browser, and `[i18n]`. */
export type BrowserLanguages = {
  /** Accept-Language as sent. */
  readonly header: string
  readonly i18n: I18nSettings
}

/**
 * `ui_locales` first (OpenID Connect Core section 3.1.2.1), then Accept-Language, then the tenant's own,
 * then the default of `[i18n]`. A string is Accept-Language with the defaults of `[i18n]`.
 */
export function chooseLanguage(
  uiLocales: string | null | undefined,
  accepted: BrowserLanguages | string | undefined,
  own?: Locale | null,
): Language {
  const isHeader = typeof accepted !== 'object'
  const acceptLanguage = isHeader ? accepted : accepted.header
  const i18n = isHeader ? I18N_DEFAULTS : accepted.i18n
  return languageIn(localeFor({ uiLocales, acceptLanguage, own }, i18n))
}

/** Made when a page first needs it: formatters of a language take milliseconds to make. */
const LANGUAGES = new Map<Locale, Language>()

/** The texts and formats of a language. */
export function languageIn(locale: Locale): Language {
  let language = LANGUAGES.get(locale)
  if (language === undefined) {
    language = languageOf(locale)
    LANGUAGES.set(locale, language)
  }
  return language
}

/** The units of relative times, and the number of seconds from which each is used. */
const RELATIVE_UNITS = [
  ['year', 31_557_600],
  ['month', 2_629_800],
  ['day', 86_400],
  ['hour', 3_600],
  ['minute', 60],
] as const

function relativeTimes(locale: Locale, justNow: string): Language['relativeTime'] {
  const format = new Intl.RelativeTimeFormat(locale, { numeric: 'auto' })
  return (moment, now) => {
    const secs = Math.round((moment.getTime() - now.getTime()) / 1000)
    const [unit, length] = RELATIVE_UNITS.find(([, from]) => Math.abs(secs) >= from) ?? [null, 1]
    if (unit !== null) return format.format(Math.round(secs / length), unit)
    return secs > 0 ? format.format(1, 'minute') : justNow
  }
}

const SECS_OF = { day: 86_400, hour: 3_600, minute: 60 } as const

function languageOf(locale: Locale): Language {
  const texts = TEXTS[locale]
  const write = textWriter(locale)
  const formats = new Map<string, Intl.NumberFormat>()
  const counted = (count: number, unit: CalendarUnit | 'hour' | 'minute') => {
    let format = formats.get(unit)
    if (format === undefined) {
      format = new Intl.NumberFormat(locale, { style: 'unit', unit, unitDisplay: 'long' })
      formats.set(unit, format)
    }
    return format.format(count)
  }
  const say: Language['say'] = (key, values) => write(texts[key], values)
  return {
    locale,
    direction: directionOf(locale),
    say,
    scopeText: (scope) => {
      const key = `scope.${scope}`
      return isMessage(key) ? say(key) : scope
    },
    time: timeWriter(locale),
    relativeTime: relativeTimes(locale, say('time.now')),
    minutes: (secs) => counted(Math.ceil(secs / 60), 'minute'),
    lasting: (secs) => {
      const unit = secs % 86_400 === 0 ? 'day' : secs % 3_600 === 0 ? 'hour' : 'minute'
      return counted(Math.ceil(secs / SECS_OF[unit]), unit)
    },
    stretch: counted,
    money: (amountMinor, currency) => moneyIn(locale, amountMinor, currency),
  }
}

/** Formats the decimal digits, so that no amount is rounded. */
function moneyIn(locale: Locale, amountMinor: number, currency: string): string {
  const digits = currencyExponent(currency) ?? 2
  const format = new Intl.NumberFormat(locale, {
    style: 'currency',
    currency,
    minimumFractionDigits: digits,
    maximumFractionDigits: digits,
  })
  return format.format(decimalAmount(amountMinor, currency) as Intl.StringNumericLiteral)
}
