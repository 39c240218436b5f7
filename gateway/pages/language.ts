/** Which language a page is in, and its words. decisions.md 20, look. */
import { de } from './catalogue/de.js'
import { type Catalogue, en, type MessageKey } from './catalogue/en.js'

/** Every language of the pages; the first is for those who ask for none that we have. */
export const CATALOGUES: Readonly<Record<string, Catalogue>> = { en, de }
export const LOCALES: readonly string[] = Object.keys(CATALOGUES)

export type Language = {
  /** BCP 47, for `lang`. */
  readonly locale: string
  /** The words of a key, with `{name}` filled in. */
  readonly say: (key: MessageKey, values?: Readonly<Record<string, string | number>>) => string
  /** A moment in UTC, as people of the language write it. */
  readonly time: (moment: Date) => string
}

const ranges = (wanted: string): string[] =>
  wanted
    .split(/[\s,]+/)
    .map((range) => range.split(';')[0]!.trim().toLowerCase())
    .filter((range) => range !== '')

/** Accept-Language in the order of its weights (RFC 9110 section 12.5.4); weight 0 is left out. */
function byWeight(header: string): string[] {
  return header
    .split(',')
    .map((element) => {
      const [range = '', ...parameters] = element.split(';').map((part) => part.trim())
      const q = parameters.find((parameter) => parameter.startsWith('q='))
      const weight = q === undefined ? 1 : Number(q.slice(2))
      return { range, weight: Number.isFinite(weight) ? weight : 0 }
    })
    .filter(({ range, weight }) => range !== '' && weight > 0)
    .toSorted((a, b) => b.weight - a.weight)
    .map(({ range }) => range.toLowerCase())
}

/** `ui_locales` first (OpenID Connect Core section 3.1.2.1), then Accept-Language, then English. */
export function chooseLanguage(
  uiLocales: string | null | undefined,
  acceptLanguage: string | undefined,
): Language {
  for (const range of [...ranges(uiLocales ?? ''), ...byWeight(acceptLanguage ?? '')]) {
    const locale = LOCALES.find((one) => range === one || range.startsWith(`${one}-`))
    if (locale !== undefined) return LANGUAGES.get(locale)!
  }
  return LANGUAGES.get('en')!
}

const LANGUAGES = new Map(LOCALES.map((locale) => [locale, languageOf(locale)]))

function languageOf(locale: string): Language {
  const catalogue = CATALOGUES[locale]!
  const format = new Intl.DateTimeFormat(locale, {
    dateStyle: 'medium',
    timeStyle: 'short',
    timeZone: 'UTC',
  })
  return {
    locale,
    say: (key, values = {}) =>
      catalogue[key].replaceAll(/\{([a-z]+)\}/g, (whole, name: string) =>
        name in values ? String(values[name]) : whole,
      ),
    time: (moment) => `${format.format(moment)} UTC`,
  }
}
