/** Letters of a running service, over a mail server that refuses, stalls and fails on request. docs/guides/operations/mail.md */
import test, { type ExecutionContext } from 'ava'
import { type Locale, LOCALES } from '../../../actors/domain/i18n/locales.js'
import { apiOf } from '../../support/api.js'
import { mailDomain } from '../../support/identity/addresses.js'
import { openMailServer } from '../../support/operations/mail.js'
import { testService } from '../../support/service.js'
import { sql } from '../../support/storage/sql.js'

const USERS = '/api/v1/tenant-users'
const account = { user: 'svc', pass: 'a secret of the mail server' }

type Row = { status: string; error: string | null; attempts: number; sealed: boolean }

/** What the mail server does with a message to an address. Others are accepted. */
const behaviours = new Map<string, () => Promise<void> | void>()
const mail = await openMailServer({
  starttls: true,
  account,
  onMessage: (_count, raw) => behaviours.get(/^To: .*?([\w-]+@[\w.-]+)/m.exec(raw)![1]!)?.(),
})
const running = await testService({
  isPair: true,
  environment: {
    ...mail.environment,
    SVC_EMAIL__SMTP_CATCHER: 'false',
    SVC_EMAIL__RETRY_SCHEDULE_SECS: '[1, 1, 1]',
    SVC_EMAIL__SMTP_TIMEOUT_SECS: '60',
    SVC_EMAIL__QUEUE_MAX_PER_TENANT: '2',
    SVC_I18N__DEFAULT_LOCALE: 'ja',
    SVC_INVITATIONS__ENABLED: 'true',
  },
})
const api = apiOf(running)

async function until<T>(look: () => Promise<T | undefined>, what: string): Promise<T> {
  const endMs = Date.now() + 60_000
  for (;;) {
    const seen = await look()
    if (seen !== undefined) return seen
    if (Date.now() > endMs) throw new Error(`never came: ${what}`)
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
}

/** A tenant that writes to strangers. */
async function harbour() {
  const { token, tenantId } = await api.workspace('Harbour Works')
  // Simulates the activation by its owner, because a sandbox writes to no stranger.
  await sql(running)`update tenants set environment = 'production' where id = ${tenantId}`
  const rows = () =>
    sql<Row>(running)`
      select status, error, attempts, letter_sealed is not null as sealed from outgoing_mail
      where tenant_id = ${tenantId} order by created_at, id`
  return {
    tenantId,
    token,
    ada: `ada@${mailDomain()}`,
    rows,
    async invite(email: string, claims: object = {}) {
      await api.call('POST', USERS, { token, json: { email, ...claims } }).gives(201)
    },
    ended: () =>
      until(async () => {
        const found = await rows()
        const isOver = found.length > 0 && found.every(({ status }) => status !== 'queued')
        return isOver ? found : undefined
      }, 'the end of every letter'),
  }
}

/** The mail server keeps messages to these addresses until the returned function is called. */
function holds(t: ExecutionContext, ...addresses: readonly string[]): (end?: Error) => void {
  let release!: (end?: Error) => void
  const held = new Promise<void>((resolve, reject) => {
    release = (end) => (end === undefined ? resolve() : reject(end))
  })
  held.catch(() => undefined)
  for (const address of addresses) behaviours.set(address, () => held)
  t.teardown(() => release())
  return release
}

const refusal = (responseCode: number) =>
  Object.assign(new Error('refused with a long story'), { responseCode })

test('a letter goes out over STARTTLS, with an account, as text and as HTML', async (t) => {
  const at = await harbour()
  await at.invite(at.ada, { locale: 'en' })
  const letter = await mail.letterTo(at.ada)
  t.true(letter.secure)
  t.is(letter.user, account.user)
  t.is(letter.from, 'no-reply@mail.svc-tests.net')
  t.is(letter.headers['auto-submitted'], 'auto-generated')
  t.is(letter.headers['content-language'], 'en')
  t.regex(letter.headers['content-type']!, /^multipart\/alternative/)
  const link = /https?:\S+/.exec(letter.text)![0]
  t.true(letter.html.includes(`href="${link}"`))
  t.notRegex(letter.html, /<(?:img|script|link)\b/, 'nothing is loaded')
  t.deepEqual(await at.ended(), [{ status: 'sent', error: null, attempts: 1, sealed: false }])
})

test('where mail is delivered there is no page of caught mails', async (t) => {
  t.is((await fetch(`${running.baseUrl}/dev/mail`)).status, 404)
})

test('a message that the server refuses for now is sent later', async (t) => {
  const at = await harbour()
  let refusals = 0
  behaviours.set(at.ada, () => {
    refusals += 1
    if (refusals < 3) throw refusal(451)
  })
  await at.invite(at.ada)
  await mail.letterTo(at.ada)
  t.deepEqual(await at.ended(), [{ status: 'sent', error: null, attempts: 3, sealed: false }])
})

test('a refused recipient is a permanent failure of that message only', async (t) => {
  const at = await harbour()
  behaviours.set(at.ada, () => {
    throw refusal(550)
  })
  await at.invite(at.ada)
  await at.invite(`bob-${at.ada}`)
  await mail.letterTo(`bob-${at.ada}`)
  t.deepEqual(await at.ended(), [
    { status: 'failed', error: 'smtp_550', attempts: 1, sealed: false },
    { status: 'sent', error: null, attempts: 1, sealed: false },
  ])
})

test('after its last attempt a message has failed', async (t) => {
  const at = await harbour()
  behaviours.set(at.ada, () => {
    throw refusal(451)
  })
  await at.invite(at.ada)
  t.deepEqual(await at.ended(), [
    { status: 'failed', error: 'smtp_451', attempts: 4, sealed: false },
  ])
})

test('a letter whose sender stopped in the middle is sent by another one', async (t) => {
  const at = await harbour()
  const release = holds(t, at.ada)
  await at.invite(at.ada)
  await until(async () => {
    const [row] = await at.rows()
    return row?.attempts === 1 ? row : undefined
  }, 'the first attempt')
  behaviours.delete(at.ada)
  // As a killed process leaves it: leased to a worker that no longer exists.
  await sql(running)`
    update outgoing_mail set lease = '00000000-0000-4000-8000-000000000000',
    leased_until = now() + interval '2 seconds' where tenant_id = ${at.tenantId}`
  const [row] = await at.ended()
  t.like(row, { status: 'sent', attempts: 2 })
  release()
  // The worker that lost the message cannot end it. Both copies have one Message-ID.
  const [first, second] = await until(async () => {
    const letters = mail.received.filter(({ to }) => to.includes(at.ada))
    return letters.length === 2 ? letters : undefined
  }, 'both copies')
  t.is(first!.headers['message-id'], second!.headers['message-id'])
  t.is((await at.rows()).length, 1)
})

test('mail to reserved domains is never sent, and a full queue drops further messages', async (t) => {
  const at = await harbour()
  const [b, c, d] = ['b', 'c', 'd'].map((name) => `${name}-${at.ada}`) as [string, string, string]
  holds(t, b, c)
  for (const email of ['a@someone.test', b, c, d, 'e@example.com']) await at.invite(email)
  const found = await at.rows()
  t.deepEqual(
    found.map(({ status, sealed }) => [status, sealed]),
    [
      ['dropped', false],
      ['queued', true],
      ['queued', true],
      ['dropped', false],
      ['dropped', false],
    ],
  )
  t.is(found[3]!.error, 'queue_full')
  const [{ letter }] = (await sql<{ letter: Buffer }>(running)`
    select letter_sealed as letter from outgoing_mail where letter_sealed is not null
    and tenant_id = ${at.tenantId}`) as [{ letter: Buffer }]
  t.false(letter.includes(at.ada.slice(4)), 'a letter that waits cannot be read in the table')
})

test('a letter that has run out is not sent', async (t) => {
  const at = await harbour()
  const release = holds(t, at.ada)
  await at.invite(at.ada)
  await sql(running)`update outgoing_mail set expires_at = now() where tenant_id = ${at.tenantId}`
  release(refusal(451))
  const [row] = await at.ended()
  t.like(row, { status: 'expired' })
  t.deepEqual(await mail.lettersTo(at.ada), [])
})

test('an invitation is in the language of the user, the tenant or the deployment', async (t) => {
  const at = await harbour()
  const invited = async (name: string, claims: object, expected: Locale) => {
    const email = `${name}-${at.ada}`
    await at.invite(email, claims)
    const letter = await mail.letterTo(email)
    t.is(letter.headers['content-language'], expected, email)
    await at.ended()
  }
  await invited('one', {}, 'ja')
  await invited('two', { locale: 'fr-CA' }, 'fr')
  const json = { branding: { locale: 'ar' } }
  await api.patch('/api/v1/tenant/settings', at.token, json).gives(200)
  await invited('three', {}, 'ar')
  await invited('four', { locale: 'sv' }, 'ar')
  await invited('five', { locale: 'pt-BR' }, 'pt')
  const page = await fetch(`${running.baseUrl}/auth/nowhere`, {
    headers: { accept: 'text/html', 'accept-language': 'sv' },
  })
  t.true((await page.text()).includes('<html lang="ja" dir="ltr">'))
  const discovery = await fetch(`${running.baseUrl}/.well-known/openid-configuration`)
  const { ui_locales_supported: offered } = (await discovery.json()) as Record<string, unknown>
  t.deepEqual(offered, [...LOCALES])
})
