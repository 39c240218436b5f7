/**
 * The languages of the hosted pages and of mails (BCP 47). The first is the default. Discovery lists them, and each has its
 * texts (docs/guides/identity/languages.md).
 */
export const LOCALES = ['en', 'de', 'fr', 'es', 'it', 'pt', 'ja', 'ar'] as const
export type Locale = (typeof LOCALES)[number]

/** The text direction of a language, for `dir` (HTML). */
export const directionOf = (locale: Locale): 'ltr' | 'rtl' => (locale === 'ar' ? 'rtl' : 'ltr')
