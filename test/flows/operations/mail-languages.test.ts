/** Mails in all languages. */
import test from 'ava'
import { directionOf, LOCALES } from '../../../actors/domain/i18n/locales.js'
import { MAIL_CATALOGUES, renderMessage } from '../../../actors/platform/mail/render.js'

const UNTIL = new Date('2026-11-23T15:00:00Z')
const LINK = 'https://id.example.com/auth/x'

test('a message of every kind is complete in every language', (t) => {
  const i18n = { enabled: true, default_locale: 'en' } as const
  for (const locale of LOCALES) {
    const header = { tenant: 'Harbour (Works)', color: null, languages: locale }
    for (const content of [
      { kind: 'sign_in', code: 'BCDF-GHJK', link: LINK, until: UNTIL },
      { kind: 'password_reset', link: LINK, until: UNTIL },
      { kind: 'invitation', link: LINK, until: UNTIL },
      { kind: 'email_verification', link: LINK, until: UNTIL },
      { kind: 'password_changed', at: UNTIL },
      { kind: 'account_recovery', account: 'grace@example.com', at: UNTIL },
      { kind: 'admin_password_reset', link: LINK, until: UNTIL },
      { kind: 'admin_factors_reset', at: UNTIL, link: LINK, until: UNTIL },
      { kind: 'admin_reset_refused', at: UNTIL },
    ] as const) {
      const name = `${locale}, ${content.kind}`
      const message = renderMessage('ada@example.com', content, header, i18n)
      t.is(message.locale, locale, name)
      t.true(message.html.includes(`<html lang="${locale}" dir="${directionOf(locale)}">`), name)
      const all = [message.subject, message.text, message.html].join('\n')
      t.notRegex(all, /\{[a-z]+\}|undefined/, name)
      t.true(message.text.includes(MAIL_CATALOGUES[locale]['mail.greeting']), name)
      t.notRegex(message.subject, /[\u2066-\u2069]/, 'not every mail program hides isolates there')
      if (content.kind === 'sign_in') t.true(message.text.includes('BCDF-GHJK'), name)
      if ('link' in content) t.true(message.text.includes(`\n${LINK}\n`), name)
    }
  }
})
