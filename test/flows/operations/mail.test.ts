/**
 * Mail over a real server: STARTTLS, authentication, refusals, silence, and a process killed
 * mid-send.
 */
import { createServer, type AddressInfo, type Socket } from 'node:net'
import test, { type ExecutionContext } from 'ava'
import { apiOf } from '../../support/api.js'
import { sql } from '../../support/storage/sql.js'
import { type MailServerOptions, openMailServer } from '../../support/operations/mail.js'
import { freePort, testService, type TestService } from '../../support/service.js'

const USERS = '/api/v1/tenant-users'
const ADA = 'ada@harbour.works'
const INVITATIONS = { SVC_INVITATIONS__ENABLED: 'true' }
const QUICK = { SVC_EMAIL__RETRY_SCHEDULE_SECS: '[1, 1, 1]', SVC_EMAIL__SMTP_TIMEOUT_SECS: '5' }

type Row = { status: string; error: string | null; attempts: number; sealed: boolean }

async function until<T>(look: () => Promise<T | undefined>, what: string): Promise<T> {
  const endMs = Date.now() + 60_000
  for (;;) {
    const seen = await look()
    if (seen !== undefined) return seen
    if (Date.now() > endMs) throw new Error(`never came: ${what}`)
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
}

async function rows({ db }: TestService): Promise<Row[]> {
  return sql<Row>(
    db.database,
    `select status, error, attempts, letter_sealed is not null as sealed from outgoing_mail
     order by created_at, id`,
  )
}

const ended = (running: TestService) =>
  until(async () => {
    const found = await rows(running)
    return found.length > 0 && found.every(({ status }) => status !== 'queued') ? found : undefined
  }, 'the end of every letter')

/** A service that has just queued one message. */
async function inviting(
  t: ExecutionContext,
  environment: Readonly<Record<string, string>>,
  emails: readonly string[] = [ADA],
) {
  const running = await testService({ environment: { ...INVITATIONS, ...QUICK, ...environment } })
  const api = apiOf(running)
  t.teardown(async () => {
    await api.close()
    await running.end()
  })
  const { token, tenantId } = await api.workspace()
  // Simulates the activation by its owner, because a sandbox writes to no stranger.
  const activated = `update tenants set environment = 'production' where id = $1`
  await sql(running.db.database, activated, [tenantId])
  for (const email of emails) {
    t.is((await api.call('POST', USERS, { token, json: { email } })).status, 201)
  }
  return { running, api, token }
}

async function server(t: ExecutionContext, options: MailServerOptions) {
  const opened = await openMailServer(options)
  t.teardown(() => opened.close())
  return opened
}

const account = { user: 'svc', pass: 'a secret of the mail server' }

test.serial('a letter goes out over STARTTLS, with an account, as text and as HTML', async (t) => {
  const mail = await server(t, { starttls: true, account })
  const { running } = await inviting(t, mail.environment)
  const letter = await mail.letterTo(ADA)
  t.true(letter.secure)
  t.is(letter.user, account.user)
  t.is(letter.from, 'no-reply@mail.svc-tests.net')
  t.is(letter.headers['auto-submitted'], 'auto-generated')
  t.is(letter.headers['content-language'], 'en')
  t.regex(letter.headers['content-type']!, /^multipart\/alternative/)
  const link = /https?:\S+/.exec(letter.text)![0]
  t.true(letter.html.includes(`href="${link}"`))
  t.notRegex(letter.html, /<(?:img|script|link)\b/, 'nothing is loaded')
  t.deepEqual(await ended(running), [{ status: 'sent', error: null, attempts: 1, sealed: false }])
})

test.serial('a server that offers no STARTTLS gets nothing where it is insisted on', async (t) => {
  const mail = await server(t, {})
  const { running } = await inviting(t, {
    ...mail.environment,
    SVC_EMAIL__SMTP_STARTTLS: 'true',
    SVC_EMAIL__RETRY_SCHEDULE_SECS: '[1]',
  })
  t.deepEqual(await ended(running), [
    { status: 'failed', error: 'tls', attempts: 2, sealed: false },
  ])
  t.is(mail.received.length, 0)
})

test.serial('an untrusted certificate is refused', async (t) => {
  const mail = await server(t, { starttls: true, account })
  const { SVC_EMAIL__SMTP_CA_PEM_PATH: _untrusted, ...environment } = mail.environment
  const { running } = await inviting(t, { ...environment, SVC_EMAIL__RETRY_SCHEDULE_SECS: '[1]' })
  const [row] = await ended(running)
  t.like(row, { status: 'failed', attempts: 2 })
  t.is(mail.received.length, 0, 'neither letter nor password went out')
})

test.serial('a wrong password is tried again: an operator may mend it', async (t) => {
  const mail = await server(t, { starttls: true, account })
  const { running } = await inviting(t, {
    ...mail.environment,
    SVC_EMAIL__SMTP_PASSWORD: 'not it',
    SVC_EMAIL__RETRY_SCHEDULE_SECS: '[1]',
  })
  t.deepEqual(await ended(running), [
    { status: 'failed', error: 'auth', attempts: 2, sealed: false },
  ])
})

const refusal = (responseCode: number) =>
  Object.assign(new Error(`<${ADA}> refused with a long story`), { responseCode })

test.serial('4xx is tried again, 5xx is not; what the server says is not kept', async (t) => {
  const busy = await server(t, {
    onMessage: (count) => {
      if (count < 3) throw refusal(451)
    },
  })
  const { running } = await inviting(t, busy.environment)
  await busy.letterTo(ADA)
  t.deepEqual(await ended(running), [{ status: 'sent', error: null, attempts: 3, sealed: false }])

  const strict = await server(t, {
    onMessage: () => {
      throw refusal(554)
    },
  })
  const second = await inviting(t, strict.environment)
  t.deepEqual(await ended(second.running), [
    { status: 'failed', error: 'smtp_554', attempts: 1, sealed: false },
  ])
})

test.serial('an unknown recipient is a permanent failure of that message only', async (t) => {
  const mail = await server(t, {
    options: {
      onRcptTo: ({ address }, _session, done) => done(address === ADA ? refusal(550) : null),
    },
  })
  const { running } = await inviting(t, mail.environment, [ADA, 'bob@harbour.works'])
  await mail.letterTo('bob@harbour.works')
  const all = await ended(running)
  t.deepEqual(
    all.map(({ status, error }) => [status, error]),
    [
      ['failed', 'smtp_550'],
      ['sent', null],
    ],
  )
})

test.serial(
  'a server that stalls, drips or is down ends the attempt, and a retry succeeds',
  async (t) => {
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
    const environment = {
      SVC_EMAIL__PROVIDER: 'smtp',
      SVC_EMAIL__SMTP_HOST: 'localhost',
      SVC_EMAIL__SMTP_STARTTLS: 'false',
      SVC_EMAIL__FROM: 'no-reply@mail.svc-tests.net',
      SVC_EMAIL__RETRY_SCHEDULE_SECS: '[1]',
    }
    const slow = await inviting(t, { ...environment, SVC_EMAIL__SMTP_PORT: String(port) })
    t.deepEqual(await ended(slow.running), [
      { status: 'failed', error: 'timeout', attempts: 2, sealed: false },
    ])
    const nobody = await inviting(t, {
      ...environment,
      SVC_EMAIL__SMTP_PORT: String(await freePort()),
    })
    t.deepEqual(await ended(nobody.running), [
      { status: 'failed', error: 'connection', attempts: 2, sealed: false },
    ])
  },
)

test.serial('a letter whose sender stopped in the middle is sent by another process', async (t) => {
  let stuck = true
  let release = () => {}
  const held = new Promise<void>((resolve) => (release = resolve))
  const mail = await server(t, {
    onMessage: async () => {
      if (stuck) await held
    },
  })
  const { running } = await inviting(t, { ...mail.environment, SVC_EMAIL__SMTP_TIMEOUT_SECS: '60' })
  await until(async () => {
    const [row] = await rows(running)
    return row?.attempts === 1 ? row : undefined
  }, 'the first attempt')
  // As a killed process leaves it: leased to a worker that no longer exists.
  await sql(
    running.db.database,
    `update outgoing_mail set lease = '00000000-0000-4000-8000-000000000000',
       leased_until = now() + interval '2 seconds'`,
  )
  stuck = false
  const beside = await testService({
    beside: running,
    environment: { ...INVITATIONS, ...QUICK, ...mail.environment },
  })
  t.teardown(() => beside.end())
  const [row] = await ended(running)
  t.like(row, { status: 'sent', attempts: 2 })
  release()
  // The worker that lost the message cannot end it. Both copies have one Message-ID.
  await until(async () => (mail.received.length === 2 ? true : undefined), 'both copies')
  const [first, second] = mail.received
  t.is(first!.headers['message-id'], second!.headers['message-id'])
  t.is((await rows(running)).length, 1)
})

test.serial(
  'mail to reserved domains is never sent, and a full queue drops further messages',
  async (t) => {
    const port = await freePort()
    const { running } = await inviting(
      t,
      {
        SVC_EMAIL__PROVIDER: 'smtp',
        SVC_EMAIL__SMTP_HOST: 'localhost',
        SVC_EMAIL__SMTP_PORT: String(port),
        SVC_EMAIL__SMTP_STARTTLS: 'false',
        SVC_EMAIL__FROM: 'no-reply@mail.svc-tests.net',
        SVC_EMAIL__RETRY_SCHEDULE_SECS: '[3600]',
        SVC_EMAIL__QUEUE_MAX_PER_TENANT: '2',
      },
      ['a@someone.test', 'b@harbour.works', 'c@harbour.works', 'd@harbour.works', 'e@example.com'],
    )
    const found = await rows(running)
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
    const [{ letter }] = (await sql<{ letter: Buffer }>(
      running.db.database,
      'select letter_sealed as letter from outgoing_mail where letter_sealed is not null limit 1',
    )) as [{ letter: Buffer }]
    t.false(letter.includes('harbour.works'), 'a letter that waits cannot be read in the table')
  },
)

test.serial('a letter that has run out is not sent', async (t) => {
  const port = await freePort()
  const mail = await server(t, {})
  const { running } = await inviting(t, {
    ...mail.environment,
    SVC_EMAIL__SMTP_PORT: String(port),
    SVC_EMAIL__RETRY_SCHEDULE_SECS: '[2, 2]',
  })
  await sql(running.db.database, `update outgoing_mail set expires_at = now()`)
  const [row] = await ended(running)
  t.like(row, { status: 'expired' })
  t.is(mail.received.length, 0)
})
