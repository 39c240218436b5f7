/** How a message leaves over SMTP: STARTTLS, accounts, refusals and silence of the server. And its languages. */
import test, { type ExecutionContext } from 'ava'
import { type AddressInfo, type Socket, createServer } from 'node:net'
import { smtpMailer } from '../../../../actors/operations/mail/client.js'
import { type MailServerOptions, openMailServer } from '../../../support/operations/mail.js'
import { freePort } from '../../../support/service/settings.js'
import { LOCALES, directionOf } from '../../../../actors/domain/i18n/locales.js'
import { MAIL_TEXTS, renderMessage } from '../../../../actors/platform/mail/render.js'

const ADA = 'ada@harbour.works'
const account = { user: 'svc', pass: 'a secret of the mail server' }
const MESSAGE = {
  to: ADA,
  subject: 'A subject',
  text: 'A text',
  html: '<p>A text</p>',
  locale: 'en',
} as const

async function server(t: ExecutionContext, options: MailServerOptions) {
  const opened = await openMailServer(options)
  t.teardown(() => opened.close())
  return opened
}

const mailerAt = (smtp_port: number, more: object = {}) =>
  smtpMailer({
    smtp_host: 'localhost',
    smtp_port,
    smtp_username: undefined,
    smtp_password: undefined,
    smtp_starttls: false,
    smtp_ca_pem_path: undefined,
    smtp_timeout_secs: 60,
    from: 'no-reply@mail.svc-tests.net',
    ...more,
  })

const refusal = (responseCode: number) =>
  Object.assign(new Error(`<${ADA}> refused with a long story`), { responseCode })

test('a server that offers no STARTTLS gets nothing where it is insisted on', async (t) => {
  const mail = await server(t, {})
  const mailer = mailerAt(mail.port, { smtp_starttls: true })
  t.deepEqual(await mailer.post('1', MESSAGE), { tag: 'later', error: 'tls' })
  t.is(mail.received.length, 0)
})

test('neither letter nor password goes to a server with an untrusted certificate', async (t) => {
  const mail = await server(t, { starttls: true, account })
  const login = { smtp_starttls: true, smtp_username: account.user, smtp_password: account.pass }
  t.is((await mailerAt(mail.port, login).post('1', MESSAGE)).tag, 'later')
  t.is(mail.received.length, 0)
  const trusted = { ...login, smtp_ca_pem_path: mail.certificate.certPath }
  t.deepEqual(await mailerAt(mail.port, trusted).post('1', MESSAGE), { tag: 'sent' })
  t.like(mail.received[0], { user: account.user, secure: true })
  // An operator may mend a wrong password.
  const wrong = mailerAt(mail.port, { ...trusted, smtp_password: 'not it' })
  t.deepEqual(await wrong.post('2', MESSAGE), { tag: 'later', error: 'auth' })
  t.is(mail.received.length, 1)
})

test('4xx is tried again, 5xx is not; what the server says is not kept', async (t) => {
  const codes = [451, 554]
  const mail = await server(t, {
    onMessage: (count) => {
      throw refusal(codes[count - 1]!)
    },
  })
  const mailer = mailerAt(mail.port)
  t.deepEqual(await mailer.post('1', MESSAGE), { tag: 'later', error: 'smtp_451' })
  t.deepEqual(await mailer.post('1', MESSAGE), { tag: 'never', error: 'smtp_554' })
})

test('an unknown recipient is a permanent failure', async (t) => {
  const mail = await server(t, {
    options: { onRcptTo: (_address, _session, done) => done(refusal(550)) },
  })
  t.deepEqual(await mailerAt(mail.port).post('1', MESSAGE), { tag: 'never', error: 'smtp_550' })
})

test('a server that drips or is down ends the attempt', async (t) => {
  const sockets = new Set<Socket>()
  const drips = createServer((socket) => {
    sockets.add(socket)
    socket.on('error', () => undefined)
    const timer = setInterval(() => socket.write('220-still here\r\n'), 200)
    socket.on('close', () => clearInterval(timer))
  })
  await new Promise<void>((resolve) => drips.listen(0, '127.0.0.1', resolve))
  t.teardown(() => {
    for (const socket of sockets) socket.destroy()
    drips.close()
  })
  const { port } = drips.address() as AddressInfo
  t.deepEqual(await mailerAt(port, { smtp_timeout_secs: 1 }).post('1', MESSAGE), {
    tag: 'later',
    error: 'timeout',
  })
  const absent = mailerAt(await freePort())
  t.deepEqual(await absent.post('1', MESSAGE), { tag: 'later', error: 'connection' })
})

// Mails in all languages.

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
      t.true(message.text.includes(MAIL_TEXTS[locale]['mail.greeting']), name)
      t.notRegex(message.subject, /[\u2066-\u2069]/, 'not every mail program hides isolates there')
      if (content.kind === 'sign_in') t.true(message.text.includes('BCDF-GHJK'), name)
      if ('link' in content) t.true(message.text.includes(`\n${LINK}\n`), name)
    }
  }
})
