/**
 * The languages of the hosted pages, BCP 47; the first is for those who ask for none that we have.
 * Discovery lists exactly these, and each has a catalogue in gateway/pages/catalogue/.
 */
export const LOCALES = ['en', 'de'] as const
export type Locale = (typeof LOCALES)[number]
