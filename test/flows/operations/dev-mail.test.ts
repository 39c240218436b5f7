/** /dev/mail: the mails of a development service, docs/guides/operations/mail.md. */
import { randomUUID } from 'node:crypto'
import { request } from 'node:http'
import test, { type ExecutionContext } from 'ava'
import { CaughtMail, catchingMailer } from '../../../actors/operations/mail/caught-mail.js'
import { systemClock } from '../../../runtime/kernel/clock.js'
import { loadSettings } from '../../../runtime/process/configuration/load-settings.js'
import { apiOf, type Json } from '../../support/api.js'
import { openMailServer } from '../../support/operations/mail.js'
import { testService } from '../../support/service.js'
import { until } from '../../support/service/watch.js'

const PATH = '/dev/mail'
const TO = 'ada@harbour.test'
const BROWSER = { accept: 'text/html,*/*;q=0.8' }

async function running(t: ExecutionContext, environment: Record<string, string> = {}) {
  const service = await testService({
    transport: 'plain_http',
    environment: {
      SVC_OPENAPI__EXPOSURE: 'public',
      SVC_INVITATIONS__ENABLED: 'true',
      ...environment,
    },
  })
  const api = apiOf(service)
  t.teardown(() => api.end())
  const read = (path: string, headers: Record<string, string> = {}) =>
    fetch(service.baseUrl + path, { headers })
  return {
    service,
    read,
    async invite() {
      const { token } = await api.workspace('Harbour <Works>')
      await api.post('/api/v1/tenant-users', token, { email: TO }).gives(201)
      let mails: Json[] = []
      await until('the mail', async () => {
        mails = (await (await read(PATH)).json()) as Json[]
        return mails.length > 0
      })
      return mails
    },
  }
}

test('the mails of a development service are pages and JSON, and a foreign name that resolves to this machine reads nothing', async (t) => {
  const { service, read, invite } = await running(t)
  t.regex(await (await read(PATH, BROWSER)).text(), /data-dev-mail-empty/)
  const [mail] = await invite()
  t.is(mail!['to'], TO)
  t.regex(String(mail!['text']), /\/auth\/invitations\//)

  const list = await read(PATH, BROWSER)
  t.is(list.headers.get('cache-control'), 'no-store')
  const at = `${PATH}/${String(mail!['id'])}`
  t.true((await list.text()).includes(`href="${at}"`))
  const page = await read(at, BROWSER)
  t.regex(page.headers.get('content-security-policy') ?? '', /frame-src 'self'/)
  const html = await page.text()
  t.regex(html, /<iframe [^>]*sandbox="allow-top-navigation-by-user-activation"/)
  t.true(html.includes('Harbour &lt;Works&gt;'), 'names in the text are escaped')
  t.regex(html, /<a class="button" href="http[^"]+\/auth\/invitations\/[^"]+" data-mail-link/)

  const framed = await read(`${at}/html`, BROWSER)
  const policy = framed.headers.get('content-security-policy') ?? ''
  t.regex(policy, /default-src 'none'/)
  t.regex(policy, /frame-ancestors 'self'; sandbox /)
  t.notRegex(policy, /allow-scripts|allow-same-origin/)
  t.regex(await framed.text(), /<base target="_top">/)
  t.regex(await (await read(at, { ...BROWSER, 'accept-language': 'de' })).text(), /lang="de"/)
  t.deepEqual(await (await read(at)).json(), mail)
  t.is((await read(`${PATH}/${randomUUID()}`)).status, 404)
  const capabilities = await (await read('/openapi.json')).text()
  t.false(capabilities.includes(PATH), 'it is not part of the public API')

  const { port } = new URL(service.baseUrl)
  const statusAt = (host: string, path: string) =>
    new Promise<number | undefined>((resolve, reject) => {
      const asked = request({ host: '127.0.0.1', port, path, headers: { host } }, (answer) => {
        answer.resume()
        resolve(answer.statusCode)
      })
      asked.on('error', reject)
      asked.end()
    })
  for (const path of [PATH, at, `${at}/html`]) {
    t.is(await statusAt(`rebound.example:${port}`, path), 404, path)
    t.is(await statusAt(`127.0.0.1:${port}`, path), 200, path)
    t.is(await statusAt(`acme.localhost:${port}`, path), 200, path)
  }
})

test('the mails of a catcher are shown too', async (t) => {
  const mail = await openMailServer()
  t.teardown(() => mail.close())
  const { invite } = await running(t, mail.environment)
  t.is((await invite())[0]!['to'], TO)
})

test('the page does not exist where it is off, or where mail is delivered', async (t) => {
  const off = await running(t, { SVC_EMAIL__DEV_MAILBOX: 'false' })
  t.is((await off.read(PATH)).status, 404)
  const mail = await openMailServer()
  t.teardown(() => mail.close())
  const delivered = await running(t, { ...mail.environment, SVC_EMAIL__SMTP_CATCHER: 'false' })
  t.is((await delivered.read(PATH)).status, 404)
})

const settingsOf = (environment: Record<string, string>) =>
  loadSettings({ environment, cwd: '/', servesPlane: false })

test('production refuses the page, and a deployment with its own address has to ask for it', (t) => {
  const production = settingsOf({
    SVC_SECURITY__PRODUCTION: 'true',
    SVC_EMAIL__DEV_MAILBOX: 'true',
  })
  t.is(production.tag, 'refused')
  const keys = production.tag === 'refused' ? production.failures.map(({ key }) => key) : []
  t.true(keys.includes('email.dev_mailbox'))
  const silent = settingsOf({ SVC_SECURITY__PRODUCTION: 'true' })
  t.false(
    silent.tag === 'refused' && silent.failures.some(({ key }) => key === 'email.dev_mailbox'),
    'production has it off unless it is set',
  )
  const isOn = (environment: Record<string, string>) => {
    const loaded = settingsOf(environment)
    return loaded.tag === 'loaded' ? loaded.settings.email.dev_mailbox : loaded.failures
  }
  t.is(isOn({}), true)
  t.is(isOn({ SVC_OIDC__ISSUER_URL: 'http://127.0.0.1:9000' }), true)
  const own = { SVC_OIDC__ISSUER_URL: 'https://staging.acme.dev' }
  t.is(isOn(own), false)
  t.is(isOn({ ...own, SVC_EMAIL__DEV_MAILBOX: 'true' }), true)
})

test('memory holds the latest hundred mails, and only those that were sent', async (t) => {
  const caught = new CaughtMail(systemClock)
  const message = { to: TO, locale: 'en', subject: 's', text: 't', html: 'h' } as const
  const sent = catchingMailer({ post: async () => ({ tag: 'sent' }) }, caught)
  for (let count = 1; count <= 130; count += 1) await sent.post(`m${count}`, message)
  await sent.post('m130', message)
  const failing = catchingMailer({ post: async () => ({ tag: 'later', error: 'x' }) }, caught)
  await failing.post('lost', message)
  const ids = caught.list().map(({ id }) => id)
  t.is(ids.length, 100)
  t.is(ids[0], 'm130')
  t.is(ids.at(-1), 'm31')
  t.is(caught.find('lost'), undefined)
})
