/**
 * The languages of the hosted pages (BCP 47). The first is the default. Discovery lists them, and each has a catalogue in
 * gateway/pages/catalogue/.
 */
export const LOCALES = ['en', 'de'] as const
export type Locale = (typeof LOCALES)[number]
