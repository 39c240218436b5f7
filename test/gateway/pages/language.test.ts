import { readdirSync, readFileSync } from 'node:fs'
import test from 'ava'
import { type Text, textWriter } from '../../../actors/domain/i18n/languages.js'
import { type Locale, LOCALES } from '../../../actors/domain/i18n/locales.js'
import { MAIL_TEXTS } from '../../../actors/platform/mail/render.js'
import { PROBLEM_TEXTS } from '../../../gateway/response/problems.js'
import { chooseLanguage, languageIn } from '../../../gateway/pages/platform/language.js'
import { TEXTS } from '../../../gateway/pages/texts/texts.js'

type Texts = Readonly<Record<string, Text>>

/** Texts in objects, under the path of each. */
const flat = (texts: object, path = ''): Texts =>
  Object.fromEntries(
    Object.entries(texts).flatMap(([key, text]: [string, Text | object]) =>
      typeof text === 'string'
        ? [[`${path}${key}`, text]]
        : Object.entries(flat(text, `${path}${key}.`)),
    ),
  )
const PROBLEMS = Object.fromEntries(
  LOCALES.map((locale) => [locale, flat(PROBLEM_TEXTS[locale])]),
) as Readonly<Record<Locale, Texts>>

const ALL: readonly (readonly [name: string, catalogues: Readonly<Record<Locale, Texts>>])[] = [
  ['pages', TEXTS],
  ['mails', MAIL_TEXTS],
  ['problems', PROBLEMS],
]

/** Words that are the same in English: names, and words that a language took over. */
const SAME_AS_ENGLISH: Readonly<Record<Locale, readonly string[]>> = {
  en: [],
  de: [
    'APIs',
    'Agent',
    'Browser',
    'Bytes',
    'Code',
    'Delegation',
    'Domain',
    'Host',
    'Id',
    'Logo',
    'Name',
    'Passkey',
    'Passkeys',
    'Person',
    'Status',
    'Token',
    'URL',
    'Webhooks',
    'svc',
    'Wallets',
  ],
  fr: [
    'Actions',
    'Agent',
    'Agents',
    'Application',
    'Applications',
    'Cause',
    'Code',
    'Commerce',
    'Console',
    'Description',
    'Documentation',
    'Invitations',
    'Logo',
    'Menu',
    'Secret',
    'Sessions',
    'Total',
    'Type',
    'URL',
    'Webhooks',
    'svc',
    'Signatures',
  ],
  es: [
    'Actor',
    'Bytes',
    'Color',
    'Error {status}',
    'Error: {title}',
    'Host',
    'No',
    'Roles',
    'Token',
    'Total',
    'URL',
    'Webhooks',
    'svc',
  ],
  it: [
    'Browser',
    'Console',
    'Email',
    'File',
    'Host',
    'Logo',
    'Menu',
    'No',
    'Passkey',
    'Password',
    'Provider',
    'Token',
    'URL',
    'Vault',
    'svc',
  ],
  pt: [
    'APIs',
    'Bytes',
    'Console',
    'Host',
    'Menu',
    'Status',
    'Token',
    'Total',
    'URL',
    'Webhooks',
    'svc',
  ],
  ja: ['URL', 'svc'],
  ar: ['svc'],
}

const formsOf = (text: Text): readonly string[] =>
  typeof text === 'string' ? [text] : Object.values(text)
const placeholders = (text: string) =>
  [...text.matchAll(/\{[^}]*\}/g)].map(([name]) => name).toSorted()
/** The plural categories of the counts that pages show. */
const pluralsOf = (locale: Locale) => {
  const rules = new Intl.PluralRules(locale)
  return [...new Set(Array.from({ length: 1000 }, (_, count) => rules.select(count)))].toSorted()
}

for (const [name, catalogues] of ALL) {
  const english = catalogues.en
  for (const locale of LOCALES) {
    test(`${locale}, ${name}: the keys match the English ones, and every text is complete`, (t) => {
      const catalogue = catalogues[locale]
      t.deepEqual(Object.keys(catalogue).toSorted(), Object.keys(english).toSorted())
      for (const [key, own] of Object.entries(english)) {
        const text = catalogue[key]!
        t.is(typeof text, typeof own, key)
        if (typeof text !== 'string')
          t.deepEqual(Object.keys(text).toSorted(), pluralsOf(locale), key)
        for (const form of formsOf(text)) t.is(form, form.trim(), key)
        t.true(
          formsOf(text).every((form) => form !== ''),
          key,
        )
      }
    })

    test(`${locale}, ${name}: the placeholders match the English ones`, (t) => {
      for (const [key, own] of Object.entries(english)) {
        const expected = placeholders(typeof own === 'string' ? own : own.other)
        for (const form of formsOf(catalogues[locale][key]!)) {
          // "One code left" can do without its number.
          const found = placeholders(form)
          const isNumberLeftOut = typeof own !== 'string' && !found.includes('{count}')
          t.deepEqual(isNumberLeftOut ? [...found, '{count}'].toSorted() : found, expected, key)
          t.regex(found.join(''), /^(\{[a-z]+\})*$/, key)
        }
      }
    })

    if (locale !== 'en') {
      test(`${locale}, ${name}: no text is left in English`, (t) => {
        const same = Object.entries(english).flatMap(([key, own]) =>
          JSON.stringify(catalogues[locale][key]) === JSON.stringify(own) ? [String(own)] : [],
        )
        const allowed = new Set(SAME_AS_ENGLISH[locale])
        t.deepEqual(
          [...new Set(same)].filter((text) => !allowed.has(text)),
          [],
        )
      })
    }
  }

  test(`fr, ${name}: no-break spaces precede high punctuation`, (t) => {
    const wrong = Object.values(catalogues.fr)
      .flatMap(formsOf)
      .map((text) => text.replaceAll(/`[^`]*`/g, ''))
      .filter((text) => /[^\u202F\u00A0][?!;»]| [:]|[^\u00A0s\d]:(?!\/)/.test(text))
    t.deepEqual(wrong, [])
  })
}

test('no allowance for an English text is left over', (t) => {
  for (const locale of LOCALES) {
    const texts = new Set(
      ALL.flatMap(([, catalogues]) =>
        Object.entries(catalogues.en)
          .filter(([key, own]) => catalogues[locale][key] === own)
          .map(([, own]) => String(own)),
      ),
    )
    t.deepEqual(
      SAME_AS_ENGLISH[locale].filter((text) => !texts.has(text)),
      [],
      locale,
    )
  }
})

test('every key that a template names has a text', (t) => {
  const folder = 'gateway/pages/templates'
  const unknown = readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.eta'))
    .flatMap((file) =>
      [...readFileSync(`${folder}/${file}`, 'utf8').matchAll(/\bsay(?:WithNames)?\('([^']+)'/g)]
        .map(([, key]) => key!)
        .filter((key) => !Object.hasOwn(TEXTS.en, key))
        .map((key) => `${file}: ${key}`),
    )
  t.deepEqual(unknown, [])
})

for (const [uiLocales, accepted, locale] of [
  [null, undefined, 'en'],
  [null, 'de-CH, fr;q=0.9', 'de'],
  [null, 'sv, en;q=0.1, de;q=0.8', 'de'],
  [null, 'de;q=0, *', 'en'],
  [null, ';;;,,=', 'en'],
  [null, 'zh-CN, zh;q=0.9', 'en'],
  [null, 'zh-CN, zh;q=0.9, ja;q=0.8', 'ja'],
  [null, 'pt-BR', 'pt'],
  [null, 'pt-PT, en;q=0.5', 'pt'],
  [null, 'ar-EG, en;q=0.9', 'ar'],
  [null, 'AR', 'ar'],
  [null, 'es-419', 'es'],
  // Asturian is not Arabic, and Slovak is not Spanish: only a whole subtag is a prefix.
  [null, 'ast, sk, arn, ita', 'en'],
  ['de', 'en', 'de'],
  ['sv-SE de en', 'en', 'de'],
  ['fr-CA de en', 'en', 'fr'],
  ['xx', 'de', 'de'],
] as const) {
  test(`ui_locales ${uiLocales} and Accept-Language ${accepted} give ${locale}`, (t) => {
    t.is(chooseLanguage(uiLocales, accepted).locale, locale)
  })
}

for (const [own, uiLocales, accepted, locale] of [
  ['de', null, undefined, 'de'],
  ['de', null, 'sv, nl', 'de'],
  ['de', null, 'en', 'en'],
  ['de', 'en', 'de', 'en'],
  ['ar', null, 'zh', 'ar'],
  [null, null, 'sv', 'en'],
] as const) {
  test(`a tenant of ${own}: ui_locales ${uiLocales}, Accept-Language ${accepted} give ${locale}`, (t) => {
    t.is(chooseLanguage(uiLocales, accepted, own).locale, locale)
  })
}

for (const [enabled, own, header, locale] of [
  [true, null, 'sv', 'ja'],
  [true, null, 'fr', 'fr'],
  [true, 'de', 'sv', 'de'],
  [false, null, 'fr', 'ja'],
  [false, 'de', 'fr', 'de'],
] as const) {
  test(`i18n.enabled ${enabled}, default ja, a tenant of ${own}, Accept-Language ${header} give ${locale}`, (t) => {
    const i18n = { enabled, default_locale: 'ja' } as const
    t.is(chooseLanguage(null, { header, i18n }, own).locale, locale)
    if (!enabled) t.is(chooseLanguage('es', { header, i18n }, own).locale, locale)
  })
}

test('one minute is one, in every language', (t) => {
  const said = (locale: Locale) => [1, 60, 61, 900].map(languageIn(locale).minutes)
  t.deepEqual(said('en'), ['1 minute', '1 minute', '2 minutes', '15 minutes'])
  t.deepEqual(said('de'), ['1 Minute', '1 Minute', '2 Minuten', '15 Minuten'])
  t.deepEqual(said('pt'), ['1 minuto', '1 minuto', '2 minutos', '15 minutos'])
  t.deepEqual(said('ar'), ['دقيقة', 'دقيقة', 'دقيقتان', '15 دقيقة'])
})

test('a count chooses the plural form and is formatted', (t) => {
  const left = (locale: Locale, count: number) =>
    languageIn(locale).say('account.factor.codes', { count })
  t.is(left('en', 1), '1 recovery code left')
  t.is(left('en', 10), '10 recovery codes left')
  t.is(left('fr', 0), '0 code de récupération restant')
  t.is(new Set([0, 1, 2, 3, 11, 100].map((count) => left('ar', count))).size, 6)
  const write = textWriter('de')
  t.is(write({ one: '{count} Tag', other: '{count} Tage' }, { count: 1200 }), '1.200 Tage')
})

test('values are isolated from the text around them in right-to-left languages only', (t) => {
  const name = 'Harbour (Works)'
  t.is(languageIn('ar').say('authorize.back', { name }), `العودة إلى \u2068${name}\u2069`)
  t.is(languageIn('fr').say('authorize.back', { name }), `Retour à ${name}`)
})

test('only Arabic is written from right to left', (t) => {
  t.deepEqual(
    LOCALES.filter((locale) => languageIn(locale).direction === 'rtl'),
    ['ar'],
  )
})

test('amounts and times have the format of the language', (t) => {
  const amount = (locale: Locale) => languageIn(locale).money(123456, 'EUR').replaceAll(/\s/g, ' ')
  t.is(amount('en'), '€1,234.56')
  t.is(amount('fr'), '1 234,56 €')
  t.is(amount('pt'), '€ 1.234,56')
  t.is(languageIn('ja').money(1200, 'JPY'), '￥1,200')
  const moment = new Date('2026-11-05T14:07:00Z')
  t.is(languageIn('ja').time(moment), '2026/11/05 14:07 UTC')
  t.is(languageIn('it').time(moment), '5 nov 2026, 14:07 UTC')
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

/** The calls of a text by its name, with the arguments behind it. */
function* callsIn(source: string): Generator<{ key: string; given: string }> {
  for (const { index, 0: start, 1: key } of source.matchAll(/\bsay\w*\(\s*'([\w.-]+)'/g)) {
    let depth = 1
    let end = index + start.length
    while (depth > 0 && end < source.length) {
      if (source[end] === '(') depth += 1
      if (source[end] === ')') depth -= 1
      end += 1
    }
    yield { key: key!, given: source.slice(index + start.length, end) }
  }
}

test('every shown text has values for its placeholders', (t) => {
  const texts: Texts = TEXTS.en
  let filled = 0
  for (const name of readdirSync('gateway', { recursive: true, encoding: 'utf8' })) {
    if (!/\.(?:eta|ts)$/.test(name)) continue
    for (const { key, given } of callsIn(readFileSync(`gateway/${name}`, 'utf8'))) {
      for (const placeholder of formsOf(texts[key] ?? '').flatMap(placeholders)) {
        filled += 1
        t.regex(given, new RegExp(`\\b${placeholder.slice(1, -1)}\\b`), `${name}: ${key}`)
      }
    }
  }
  t.true(filled > 50, String(filled))
})
