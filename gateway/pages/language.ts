/** Which language a page is in, and its words. decisions.md 20, look. */
import { filledIn, timeWriter, wantedLocale } from '../../actors/domain/languages.js'
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

/** `ui_locales` first (OpenID Connect Core section 3.1.2.1), then Accept-Language, then English. */
export function chooseLanguage(
  uiLocales: string | null | undefined,
  acceptLanguage: string | undefined,
): Language {
  return LANGUAGES.get(wantedLocale(LOCALES, uiLocales, acceptLanguage) ?? 'en')!
}

const LANGUAGES = new Map(LOCALES.map((locale) => [locale, languageOf(locale)]))

function languageOf(locale: string): Language {
  const catalogue = CATALOGUES[locale]!
  return {
    locale,
    say: (key, values) => filledIn(catalogue[key], values),
    time: timeWriter(locale),
  }
}
