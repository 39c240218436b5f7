/** Mails in all languages, as the mail server receives them. */
import test from 'ava'
import { directionOf, type Locale, LOCALES } from '../../../actors/domain/i18n/locales.js'
import { MAIL_CATALOGUES, renderMessage } from '../../../actors/platform/mail/render.js'
import { apiOf } from '../../support/api.js'
import { sql } from '../../support/storage/sql.js'
import { openMailServer } from '../../support/operations/mail.js'
import { testService } from '../../support/service.js'

const USERS = '/api/v1/tenant-users'
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

test('an invitation is in the language of the user, the tenant or the deployment', async (t) => {
  const mail = await openMailServer()
  const running = await testService({
    environment: {
      ...mail.environment,
      SVC_INVITATIONS__ENABLED: 'true',
      SVC_I18N__DEFAULT_LOCALE: 'ja',
    },
  })
  const api = apiOf(running)
  t.teardown(async () => {
    await api.close()
    await running.end()
    await mail.close()
  })
  const { token, tenantId } = await api.workspace('Harbour Works')
  // Simulates the activation by its owner, because a sandbox writes to no stranger.
  const activated = `update tenants set environment = 'production' where id = $1`
  await sql(running.db.database, activated, [tenantId])
  const invited = async (email: string, claims: object, expected: Locale) => {
    const json = { email, ...claims }
    t.is((await api.call('POST', USERS, { token, json })).status, 201)
    const letter = await mail.letterTo(email)
    t.is(letter.headers['content-language'], expected, email)
  }
  await invited('one@harbour.works', {}, 'ja')
  await invited('two@harbour.works', { locale: 'fr-CA' }, 'fr')
  const json = { branding: { locale: 'ar' } }
  const changed = await api.call('PATCH', '/api/v1/tenant/settings', { token, json })
  t.is(changed.status, 200)
  await invited('three@harbour.works', {}, 'ar')
  await invited('four@harbour.works', { locale: 'sv' }, 'ar')
  await invited('five@harbour.works', { locale: 'pt-BR' }, 'pt')
  const page = await fetch(`${running.baseUrl}/auth/nowhere`, {
    headers: { accept: 'text/html', 'accept-language': 'sv' },
  })
  t.true((await page.text()).includes('<html lang="ja" dir="ltr">'))
  const discovery = await fetch(`${running.baseUrl}/.well-known/openid-configuration`)
  const { ui_locales_supported: offered } = (await discovery.json()) as Record<string, unknown>
  t.deepEqual(offered, [...LOCALES])
})
