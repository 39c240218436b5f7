/**
 * Limits on mail to people who never asked for it, over HTTP and a mail server that delivers.
 * docs/guides/operations/mail.md
 */
import test, { type ExecutionContext } from 'ava'
import { MESSAGE_RULES } from '../../../actors/platform/mail/message-rules.js'
import { type Answer, type Api, apiOf, type Json, type Workspace } from '../../support/api.js'
import { bodyCall, CREDENTIALS } from '../../support/vault/egress.js'
import { until } from '../../support/service/watch.js'
import { openBrowser } from '../../support/pages/browser.js'
import { fixtureOf, type Human, ownToken, present } from '../../support/agents/delegation.js'
import { sql } from '../../support/storage/sql.js'
import { mailDomain } from '../../support/identity/addresses.js'
import { openMailServer } from '../../support/operations/mail.js'
import { signIn } from '../../support/identity/person.js'
import { SERVING_PROCESSES } from '../../support/fleet/through.js'
import { testService } from '../../support/service.js'
import { svc } from '../vault/command.js'

const USERS = '/api/v1/tenant-users'
const BOOTSTRAP = '/api/v1/agents/workspace/bootstrap'
const ORGANIZATIONS = '/api/v1/control-plane/organizations'
const SANDBOX_MAX = 5
/** More than a process sends at the same time. */
const TENANT_MAX = 18
const METRICS_TOKEN = 'metrics-token-of-some-length'

/** Messages to the crowd are held until the message to another tenant has arrived. */
let release!: () => void
const arrived = new Promise<void>((resolve) => (release = resolve))
/** A mail server that is not a catcher, and a service with the limits of a deployment. */
const mail = await openMailServer({
  onMessage: (_, raw) => (/^To: .*crowd/m.test(raw) ? arrived : undefined),
})
const environment = {
  ...mail.environment,
  SVC_SERVER__METRICS_BEARER_TOKEN: METRICS_TOKEN,
  SVC_EMAIL__SMTP_CATCHER: 'false',
  SVC_EMAIL__PER_ADDRESS_PER_DAY_MAX: '3',
  SVC_EMAIL__PER_ADDRESS_GAP_SECS: '600',
  SVC_EMAIL__PER_SANDBOX_PER_DAY_MAX: String(SANDBOX_MAX),
  SVC_EMAIL__PER_TENANT_PER_DAY_MAX: String(TENANT_MAX),
  SVC_EMAIL__SMTP_TIMEOUT_SECS: '110',
  SVC_EMAIL__REQUESTS_PER_ADDRESS_MAX: '1000',
  SVC_INVITATIONS__ENABLED: 'true',
  SVC_USER_SELF_SERVICE__ENABLED: 'true',
  SVC_EMAIL_OTP__ENABLED: 'true',
  SVC_ANONYMOUS__ENABLED: 'true',
}
const running = await testService({ environment })
test.after.always(async () => {
  release()
})

/** Addresses of a test. */
function harbour() {
  const api = apiOf(running)
  const { database } = running.db
  const domain = mailDomain()
  return {
    running,
    mail,
    api,
    database,
    domain,
    /** What has arrived for this test. */
    received: () => mail.received.filter(({ to }) => to.some((one) => one.endsWith(domain))),
    /** Simulates the activation by its owner. */
    async production(): Promise<Workspace> {
      const made = await api.workspace()
      await sql(database)`update tenants set environment = 'production' where id = ${made.tenantId}`
      return made
    },
    invite: (token: string, email: string) => api.post(USERS, token, { email }),
    resend: (token: string, { body }: Answer) =>
      api.post(`${USERS}/${String(body['id'])}/invitation`, token),
    endsOf: (tenantId: string) =>
      sql<{ kind: string; status: string; error: string | null }>(database)`
        select kind, status, error from outgoing_mail where tenant_id = ${tenantId}
        order by created_at, id`,
    /** Simulates that every message to an address was sent this long ago. */
    ago: (minutes: number) =>
      sql(database)`
        update mail_address_shares set last_at = last_at - make_interval(mins => ${minutes})`,
  }
}

/** Asserts a refusal. @returns the seconds to wait. */
function throttled(t: ExecutionContext, { status, headers, body }: Answer): number {
  t.is(status, 429, JSON.stringify(body))
  t.is(body['error'], 'rate_limited')
  return Number(headers['retry-after'])
}

/** Undefined through a proxy, where only one of the processes answers with its metrics. */
const refusedCount = async (baseUrl: string, resource: string) => {
  if (SERVING_PROCESSES > 1) return undefined
  const headers = { authorization: `Bearer ${METRICS_TOKEN}` }
  const text = await (await fetch(`${baseUrl}/metrics`, { headers })).text()
  const line = new RegExp(`svc_share_refused_total\\{[^}]*resource="${resource}"[^}]*\\} (\\d+)`)
  return Number(line.exec(text)?.[1] ?? 0)
}

test.serial(
  'one address gets one invitation in ten minutes and three in a day, over all tenants',
  async (t) => {
    const at = harbour()
    const [first, second] = [await at.production(), await at.production()]
    const before = (await refusedCount(at.running.baseUrl, 'mail_per_address')) ?? 0
    const victim = `victim@${at.domain}`
    const made = await at.invite(first.token, victim)
    t.is(made.status, 201)
    const again = await Promise.all(Array.from({ length: 8 }, () => at.resend(first.token, made)))
    for (const answer of again) {
      const secs = throttled(t, answer)
      t.true(secs > 0 && secs <= 600, String(secs))
    }
    const refused = (await refusedCount(at.running.baseUrl, 'mail_per_address')) ?? 8
    t.true(refused - before >= 8)
    // The limit is not per tenant, and the refused request stored nothing.
    throttled(t, await at.invite(second.token, victim))
    t.deepEqual((await at.api.list(`${USERS}?email=${victim}`, second.token)).rows, [])
    throttled(t, await at.invite(second.token, victim.toUpperCase()))

    for (let more = 2; more <= 3; more += 1) {
      await at.ago(10)
      t.is((await at.resend(first.token, made)).status, 200, String(more))
    }
    await at.ago(10)
    const secs = throttled(t, await at.resend(first.token, made))
    t.true(secs > 0 && secs <= 86_400)
    await at.mail.letterTo(victim, /(?:)/, 2)
    const other = await at.invite(second.token, `other@${at.domain}`)
    t.is(other.status, 201, 'other addresses are as they were')
    await at.mail.letterTo(`other@${at.domain}`)
    t.is(at.received().length, 4)
  },
)

test.serial('of concurrent invitations of many tenants to one address, one is sent', async (t) => {
  const at = harbour()
  const tenants = await Promise.all(Array.from({ length: 6 }, () => at.production()))
  const answers = await Promise.all(
    tenants.map(({ token }) => at.invite(token, `many@${at.domain}`)),
  )
  const statuses = answers.map(({ status }) => status).toSorted((a, b) => a - b)
  t.deepEqual(statuses, [201, 429, 429, 429, 429, 429])
})

test.serial('a tenant invites so many in a day, a sandbox fewer', async (t) => {
  const at = harbour()
  const before = (await refusedCount(at.running.baseUrl, 'mail_per_tenant')) ?? 0
  const { token } = await at.production()
  const invited = (by: string, nth: number) => at.invite(by, `u${nth}@${at.domain}`)
  const numbers = (from: number, to: number) =>
    Array.from({ length: to - from }, (_, nth) => from + nth)
  const all = await Promise.all(numbers(0, TENANT_MAX).map((nth) => invited(token, nth)))
  t.deepEqual([...new Set(all.map(({ status }) => status))], [201])
  const more = numbers(TENANT_MAX, TENANT_MAX + 3)
  const many = await Promise.all(more.map((nth) => invited(token, nth)))
  for (const answer of many) t.true(throttled(t, answer) <= 86_400)
  const refused = (await refusedCount(at.running.baseUrl, 'mail_per_tenant')) ?? 3
  t.is(refused - before, 3)

  const sandbox = await at.api.workspace()
  await sql(at.database)`
    insert into domain_owners (domain, organization_id, verified_at)
    values (${`verified.${at.domain}`}, ${sandbox.organizationId}, now())`
  const addresses = Array.from({ length: SANDBOX_MAX + 2 }, (_, n) => `p${n}@verified.${at.domain}`)
  const answers = await Promise.all(addresses.map((email) => at.invite(sandbox.token, email)))
  const sent = answers.filter(({ status }) => status === 201)
  t.is(sent.length, SANDBOX_MAX)
  t.is(answers.filter(({ status }) => status === 429).length, 2)
})

test.serial('a sandbox writes to no stranger, and says so where it is asked to', async (t) => {
  const at = harbour()
  const before = (await refusedCount(at.running.baseUrl, 'mail_sandbox_address')) ?? 0
  const sandbox = await at.api.workspace()
  const strangers = Array.from({ length: 3 }, (_, nth) => `s${nth}@${at.domain}`)
  for (const email of strangers) {
    const made = await at.invite(sandbox.token, email)
    t.is(made.status, 201)
    const resent = await at.resend(sandbox.token, made)
    t.like(resent, { status: 403, body: { error: 'policy_denied' } })
  }
  // A delivering server gets no mail to reserved names.
  t.is((await at.invite(sandbox.token, 'someone@example.com')).status, 201)
  const ends = await at.endsOf(sandbox.tenantId)
  t.is(ends.length, strangers.length + 1)
  t.true(ends.every(({ status }) => status === 'dropped'))
  t.is(ends.filter(({ error }) => error === 'sandbox_address').length, strangers.length)
  const refused = await refusedCount(at.running.baseUrl, 'mail_sandbox_address')
  t.true((refused ?? strangers.length) - before >= strangers.length)

  // Domains of the organization, and its owners.
  await sql(at.database)`
    insert into domain_owners (domain, organization_id, verified_at)
    values (${`own.${at.domain}`}, ${sandbox.organizationId}, now())`
  const owner = await strangerOf(at, fixtureOf(sandbox), `owner@${at.domain}`)
  await sql(at.database)`
    update organization_members set role = 'owner'
    where member_type = 'account' and member_id = (select id from accounts
    where email = ${owner.email})`
  t.is((await at.invite(sandbox.token, `colleague@own.${at.domain}`)).status, 201)
  await at.mail.letterTo(`colleague@own.${at.domain}`)
  await forgotten(t, at, owner)
  await at.mail.letterTo(owner.email)
  t.is(at.received().length, 2, 'no other address got anything')
})

type Harbour = ReturnType<typeof harbour>

/** A user of the tenant whose email address is not verified. */
async function strangerOf(at: Harbour, human: Human, email: string): Promise<Human> {
  await sql(
    at.database,
    `update accounts set email = $2, email_key = lower($2), email_verified = false
     where email = $1`,
    [human.email, email],
  )
  return { ...human, email }
}

async function forgotten(t: ExecutionContext, at: Harbour, human: Human): Promise<void> {
  const browser = openBrowser(at.running)
  const login = await browser.get(`/auth/login?tenant_slug=${human.tenantSlug}`)
  const { fields } = login.forms[0]!
  const page = await browser.get(`/auth/password/forgot?flow=${fields['flow']}`)
  const asked = await browser.submit(page, { email: human.email })
  t.true(asked.status < 400, asked.html)
}

async function signUp(t: ExecutionContext, at: Harbour, human: Human, email: string) {
  const browser = openBrowser(at.running)
  const page = await browser.get(`/auth/register?tenant_slug=${human.tenantSlug}`)
  const asked = await browser.submit(page, { email })
  t.is(asked.status, 200, asked.html)
}

/** The user is an administrator who resets themselves. @returns the response. */
async function reset({ at, sandbox, human }: Scene, what: string) {
  await sql(at.database)`
    update tenant_users set roles = '{admin}'
    where tenant_id = ${sandbox.tenantId} and account_id = (select id from accounts
    where email = ${human.email})`
  const person = await present(at.api, human)
  const token = await ownToken(at.api, sandbox, person, 'openid users:manage')
  const { rows } = await at.api.list(`${USERS}?email=${human.email}`, token)
  return at.api.post(`${USERS}/${String(rows[0]!['id'])}/${what}`, token)
}

type Scene = { readonly at: Harbour; readonly sandbox: Workspace; readonly human: Human }
type Kind = keyof typeof MESSAGE_RULES

/** How a stranger causes each kind of message to `human.email` from a sandbox. */
const CAUSES: Readonly<Record<Kind, (t: ExecutionContext, scene: Scene) => Promise<void>>> = {
  async invitation(t, { at, sandbox, human }) {
    t.is((await at.invite(sandbox.token, `new-${human.email}`)).status, 201)
  },
  async sign_in(t, { at, human }) {
    const browser = openBrowser(at.running)
    const page = await browser.get(`/auth/login?tenant_slug=${human.tenantSlug}`)
    const { fields } = page.forms[0]!
    const asked = await browser.post('/auth/login/mail', { ...fields, email: human.email })
    t.is(asked.status, 303, asked.html)
  },
  password_reset: (t, { at, human }) => forgotten(t, at, human),
  async email_verification(t, { at, human }) {
    const browser = openBrowser(at.running)
    const account = await browser.follow(await signIn(browser, human))
    const sent = await browser.submit(account, {}, '/auth/account/email/verification')
    t.is(sent.status, 200, sent.html)
  },
  sign_up: (t, { at, human }) => signUp(t, at, human, `new-${human.email}`),
  sign_up_known: (t, { at, human }) => signUp(t, at, human, human.email),
  async confirmation_code(t, { at, human }) {
    await sql(at.database)`
      update tenants set settings = settings || '{"anonymous":{"enabled":true}}'
      where slug = ${human.tenantSlug}`
    const browser = openBrowser(at.running)
    const page = await browser.get(`/auth/login?tenant_slug=${human.tenantSlug}`)
    await browser.submit(page, {}, '/auth/login/guest')
    const form = await browser.get('/auth/account/email/new')
    const sent = await browser.submit(form, { email: human.email })
    t.is(sent.status, 200, sent.html)
  },
  async password_changed(t, { at, human }) {
    const browser = openBrowser(at.running)
    await signIn(browser, human)
    const page = await browser.get('/auth/account/password')
    const password = 'another password of a stranger'
    const done = await browser.submit(page, { current: human.password, password })
    t.is(done.location, '/auth/account', done.html)
  },
  async admin_password_reset(t, scene) {
    // A reset without its message would lock the person out.
    const { status } = await reset(scene, 'reset-password')
    t.true([202, 403].includes(status), String(status))
  },
  async admin_factors_reset(t, scene) {
    t.is((await reset(scene, 'reset-factors')).status, 202)
  },
  async admin_reset_refused(t, scene) {
    const { tenantId } = await scene.at.api.workspace()
    await sql(scene.at.database)`
      insert into tenant_users (tenant_id, id, account_id, sub, status, created_at, updated_at)
      select ${tenantId}, gen_random_uuid(), id, 'elsewhere', 'active', now(), now() from accounts
      where email = ${scene.human.email}`
    t.is((await reset(scene, 'reset-password')).body['error'], 'account_shared')
  },
  async call_approval(t, { at, sandbox, human }) {
    const { tenantId, token } = sandbox
    await sql(at.database)`
      update tenant_users set roles = '{owner}' where tenant_id = ${tenantId}
      and account_id = (select id from accounts where email = ${human.email})`
    const { key, agentId } = await at.api.register(tenantId)
    const selector = { agent_id: agentId, tenant_id: tenantId }
    const { body: login } = await at.api.login(key, selector, 'vault:read')
    const made = await at.api.post(CREDENTIALS, token, {
      provider: 'upstream',
      credential_type: 'api_key',
      label: 'Key',
      auth_scheme: 'bearer',
      allowed_hosts: ['api.example.com'],
      secret: 'a secret',
    })
    const credentialId = String(made.body['id'])
    const grant = { grantee_type: 'agent', grantee_id: agentId, approval: 'each' }
    await at.api.post(`${CREDENTIALS}/${credentialId}/grants`, token, grant).gives(201)
    const headers = bodyCall({ credentialId }, 'https://api.example.com/pay')
    const asked = { token: String(login['access_token']), headers, json: {} }
    t.is((await at.api.call('POST', '/v1/proxy/body', asked)).status, 202)
    await until('the mail is queued', async () => (await at.endsOf(tenantId)).length > 0)
  },
  // Only the command line causes it. An operator of the deployment is no owner of the sandbox.
  async account_recovery(t, { at, human }) {
    await sql(at.database)`
      insert into deployment_operators (account_id, scopes, appointed_at)
      select id, '{deployment:manage}', now() from accounts where email = ${human.email}`
    const command = svc(t, {
      args: ['admin', 'recover', human.email],
      environment: {
        ...at.mail.environment,
        ...at.running.kms.environment,
        DATABASE_URL: at.running.db.url,
        SVC_OIDC__ISSUER_URL: at.running.issuer,
        SVC_EMAIL__SMTP_CATCHER: 'false',
      },
    })
    t.is(await command.ended(), 0, command.output())
  },
}

for (const kind of Object.keys(MESSAGE_RULES) as Kind[]) {
  test.serial(
    `a letter of the kind ${kind} leaves no sandbox for an address of anybody`,
    async (t) => {
      const at = harbour()
      const sandbox = await at.api.workspace()
      const human = await strangerOf(at, fixtureOf(sandbox), `stranger@${at.domain}`)
      t.truthy(CAUSES[kind], 'a new kind of letter needs a decision, and a way to cause it here')
      await CAUSES[kind](t, { at, sandbox, human })
      const dropped = { kind, status: 'dropped', error: 'sandbox_address' }
      const ends = await at.endsOf(sandbox.tenantId)
      t.deepEqual(ends, kind === 'admin_password_reset' ? [] : [dropped])

      // The same action in an activated tenant reaches the address.
      const real = await at.production()
      const person = await strangerOf(at, fixtureOf(real), `person@${at.domain}`)
      await CAUSES[kind](t, { at, sandbox: real, human: person })
      const isNew = kind === 'invitation' || kind === 'sign_up'
      const address = isNew ? `new-${person.email}` : person.email
      await at.mail.letterTo(address)
      t.is(at.received().length, 1)
    },
  )
}

const LINKS = [
  'URGENT: your wallet is locked, visit evil.example/now',
  'Acme https://evil.example/login',
  'www.evil.example',
  'bit.ly/abc',
  'pay@evil.example',
]

async function bootstrapStatus(api: Api, name: string): Promise<number | string> {
  try {
    await api.workspace(name)
    return 201
  } catch (error) {
    return Number(/^(\d+):/.exec((error as Error).message)?.[1])
  }
}

test.serial('names that look like links are refused, and never stand in a subject', async (t) => {
  const at = harbour()
  const { api } = at
  const made = await at.production()
  const settings = '/api/v1/tenant/settings'
  const rename = (name: string) => api.patch(settings, made.token, { branding: { name } })
  for (const name of LINKS) {
    t.is(await bootstrapStatus(api, name), 400, `${BOOTSTRAP}: ${name}`)
    const organization = await api.post(ORGANIZATIONS, made.operator, { name })
    t.is(organization.status, 400, name)
    const tenants = `${ORGANIZATIONS}/${made.organizationId}/tenants`
    t.is((await api.post(tenants, made.operator, { name })).status, 400, name)
    const branded = await rename(name)
    t.is(branded.status, 400, name)
    t.is((branded.body['errors'] as Json[])[0]!['pointer'], '#/branding/name')
  }
  for (const name of ['Acme Inc.', 'St. Gallen 3.0', 'A. B. & C. Ltd', 'booking.example']) {
    t.is((await rename(name)).status, 200, name)
  }

  // The name was set before the rule.
  await sql(at.database)`
    update tenants set settings = jsonb_set(settings, '{branding,name}',
    to_jsonb(${LINKS[0]}::text))
    where id = ${made.tenantId}`
  t.is((await at.invite(made.token, `reader@${at.domain}`)).status, 201)
  const letter = await at.mail.letterTo(`reader@${at.domain}`)
  for (const words of [letter.headers['subject']!, letter.text, letter.html]) {
    t.notRegex(words, /evil/, words)
  }
  t.regex(letter.text, /your wallet is locked, visit …/)
})

test.serial('a queue of one tenant delays no message of another', async (t) => {
  t.timeout(120_000)
  const at = harbour()
  const [crowd, other] = [await at.production(), await at.production()]
  const addresses = Array.from({ length: TENANT_MAX }, (_, nth) => `crowd${nth}@${at.domain}`)
  for (const email of addresses) t.is((await at.invite(crowd.token, email)).status, 201)
  t.is((await at.invite(other.token, `other@${at.domain}`)).status, 201)
  await at.mail.letterTo(`other@${at.domain}`)
  t.is(at.received().length, 1, 'the crowd was waiting all the time')
  release()
  for (const email of addresses) await at.mail.letterTo(email)
})
