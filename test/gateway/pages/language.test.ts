import test from 'ava'
import { LOCALES } from '../../../actors/domain/locales.js'
import { CATALOGUES, chooseLanguage } from '../../../gateway/pages/platform/language.js'
import { en } from '../../../gateway/pages/catalogue/en.js'

const placeholders = (text: string) =>
  [...text.matchAll(/\{[a-z]+\}/g)].map(([name]) => name).sort()

for (const locale of LOCALES) {
  test(`${locale}: every key has words, with the same blanks to fill in as English`, (t) => {
    const catalogue: Record<string, string> = { ...CATALOGUES[locale] }
    t.deepEqual(Object.keys(catalogue).sort(), Object.keys(en).sort())
    for (const [key, words] of Object.entries(en)) {
      t.not(catalogue[key]!.trim(), '', key)
      t.deepEqual(placeholders(catalogue[key]!), placeholders(words), key)
    }
  })
}

for (const [uiLocales, accepted, locale] of [
  [null, undefined, 'en'],
  [null, 'de-CH, fr;q=0.9', 'de'],
  [null, 'fr, en;q=0.1, de;q=0.8', 'de'],
  [null, 'de;q=0, *', 'en'],
  [null, ';;;,,=', 'en'],
  ['de', 'en', 'de'],
  ['fr-CA de en', 'en', 'de'],
  ['xx', 'de', 'de'],
] as const) {
  test(`ui_locales ${uiLocales} and Accept-Language ${accepted} give ${locale}`, (t) => {
    t.is(chooseLanguage(uiLocales, accepted).locale, locale)
  })
}

for (const [own, uiLocales, accepted, locale] of [
  ['de', null, undefined, 'de'],
  ['de', null, 'fr, it', 'de'],
  ['de', null, 'en', 'en'],
  ['de', 'en', 'de', 'en'],
  [null, null, 'fr', 'en'],
] as const) {
  test(`a tenant of ${own}: ui_locales ${uiLocales}, Accept-Language ${accepted} give ${locale}`, (t) => {
    t.is(chooseLanguage(uiLocales, accepted, own).locale, locale)
  })
}

test('one minute is one, in every language', (t) => {
  const said = (locale: string) => [1, 60, 61, 900].map(chooseLanguage(locale, undefined).minutes)
  t.deepEqual(said('en'), ['1 minute', '1 minute', '2 minutes', '15 minutes'])
  t.deepEqual(said('de'), ['1 Minute', '1 Minute', '2 Minuten', '15 Minuten'])
})

test('relative times use the largest unit, in every language', (t) => {
  const now = new Date('2026-11-23T12:00:00Z')
  const said = (locale: string) =>
    [-10, 30, -180, 7_200, -86_400, 6 * 86_400, -70 * 86_400, -800 * 86_400].map((secs) =>
      chooseLanguage(locale, undefined).relativeTime(new Date(now.getTime() + secs * 1000), now),
    )
  t.deepEqual(said('en'), [
    'just now',
    'in 1 minute',
    '3 minutes ago',
    'in 2 hours',
    'yesterday',
    'in 6 days',
    '2 months ago',
    '2 years ago',
  ])
  t.deepEqual(said('de'), [
    'gerade eben',
    'in 1 Minute',
    'vor 3 Minuten',
    'in 2 Stunden',
    'gestern',
    'in 6 Tagen',
    'vor 2 Monaten',
    'vor 2 Jahren',
  ])
})
