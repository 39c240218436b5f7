/** Chooses the language of a page, and formats its texts. */
import { filledIn, timeWriter, wantedLocale } from '../../../actors/domain/languages.js'
import { currencyExponent, decimalAmount } from '../../../actors/domain/commerce/currencies.js'
import { de } from '../catalogue/de.js'
import { type Locale, LOCALES } from '../../../actors/domain/locales.js'
import { type Catalogue, en, type MessageKey } from '../catalogue/en.js'

/** The texts of all languages. The type requires a catalogue for each locale. */
export const CATALOGUES: Readonly<Record<Locale, Catalogue>> = { en, de }

type CalendarUnit = 'day' | 'week' | 'month' | 'year'

export type Language = {
  /** BCP 47, for `lang`. */
  readonly locale: string
  /** What a scope permits. The name itself for a scope of an API resource. */
  readonly scopeText: (scope: string) => string
  /** The text of a key, with `{name}` replaced. */
  readonly say: (key: MessageKey, values?: Readonly<Record<string, string | number>>) => string
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

/**
 * `ui_locales` first (OpenID Connect Core section 3.1.2.1), then Accept-Language, then the tenant's own,
 * then English.
 */
export function chooseLanguage(
  uiLocales: string | null | undefined,
  acceptLanguage: string | undefined,
  own?: Locale | null,
): Language {
  return LANGUAGES.get(wantedLocale(LOCALES, uiLocales, acceptLanguage) ?? own ?? 'en')!
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

const LANGUAGES: ReadonlyMap<string, Language> = new Map(
  LOCALES.map((locale) => [locale, languageOf(locale)]),
)

const isMessage = (key: string): key is MessageKey => Object.hasOwn(en, key)

function languageOf(locale: Locale): Language {
  const catalogue = CATALOGUES[locale]!
  const counted = (unit: CalendarUnit | 'hour' | 'minute') =>
    new Intl.NumberFormat(locale, { style: 'unit', unit, unitDisplay: 'long' })
  const minutes = counted('minute')
  return {
    locale,
    say: (key, values) => filledIn(catalogue[key], values),
    scopeText: (scope) => {
      const key = `scope.${scope}`
      return isMessage(key) ? catalogue[key] : scope
    },
    time: timeWriter(locale),
    relativeTime: relativeTimes(locale, catalogue['time.now']),
    minutes: (secs) => minutes.format(Math.ceil(secs / 60)),
    lasting: (secs) => {
      const unit = secs % 86_400 === 0 ? 'day' : secs % 3_600 === 0 ? 'hour' : 'minute'
      return counted(unit).format(Math.ceil(secs / SECS_OF[unit]))
    },
    stretch: (count, unit) => counted(unit).format(count),
    money: (amountMinor, currency) => moneyIn(locale, amountMinor, currency),
  }
}

/** Formats the decimal digits, so that no amount is rounded. */
function moneyIn(locale: string, amountMinor: number, currency: string): string {
  const digits = currencyExponent(currency) ?? 2
  const format = new Intl.NumberFormat(locale, {
    style: 'currency',
    currency,
    minimumFractionDigits: digits,
    maximumFractionDigits: digits,
  })
  return format.format(decimalAmount(amountMinor, currency) as Intl.StringNumericLiteral)
}
