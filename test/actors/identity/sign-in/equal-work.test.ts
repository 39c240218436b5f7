/** The response time must not reveal whether an address has an account. */
import test from 'ava'
import { Registry } from 'prom-client'
import { browserSessionsActor } from '../../../../actors/identity/sign-in/sessions/actor.js'
import { signInActor } from '../../../../actors/identity/sign-in/actor.js'
import { ShareCounts } from '../../../../runtime/kernel/fairness/fair-share.js'
import { I18N_DEFAULTS } from '../../../../actors/domain/i18n/settings.js'
import { openMailQueue } from '../../../../actors/platform/mail/mail-queue.js'
import type { FederatedLoginProtocol } from '../../../../actors/identity/sign-in/ways/federated/protocol.js'
import type { PasswordsProtocol } from '../../../../actors/identity/passwords/protocol.js'
import { NO_CAPTCHA } from '../../../../actors/identity/sign-in/limits/captcha-gate.js'
import { type ActorRef, withMethods } from '../../../../runtime/kernel/actor.js'
import { systemClock } from '../../../../runtime/kernel/clock.js'
import { spawnInline } from '../../../../runtime/kernel/inline.js'
import { silentLogger } from '../../../../runtime/kernel/log.js'
import { systemRandom } from '../../../../runtime/kernel/random.js'
import { postgresCoordination } from '../../../../storage/platform/coordination/postgres.js'
import type { Database, Statement, Transaction } from '../../../../storage/platform/sql.js'
import { identityFixture } from '../../../support/identity/identity.js'
import { workspace } from '../../../support/identity/workspace.js'

const resources = await identityFixture()
test.after.always(() => resources.close())

/** Records every statement by name, and every password check by its hash. */
const work: string[] = []

const watched = (tx: Transaction): Transaction => ({
  tenantId: tx.tenantId,
  query: <Row>(statement: Statement) => {
    work.push(statement.name)
    return tx.query<Row>(statement)
  },
  atCommit: (statement, told) => {
    work.push(statement.name)
    tx.atCommit(statement, told)
  },
  afterCommit: (listener) => tx.afterCommit(listener),
  forget: (ids) => tx.forget(ids),
})
const database: Database = {
  tenant: (tenantId, run, options) =>
    resources.database.tenant(tenantId, (tx) => run(watched(tx)), options),
  system: (run, options) => resources.database.system((tx) => run(watched(tx)), options),
  together: (tenantId, statements, options) => {
    for (const { name } of statements) work.push(name)
    return resources.database.together(tenantId, statements, options)
  },
  among: (parts, options) => {
    for (const { statements } of parts) for (const { name } of statements) work.push(name)
    return resources.database.among(parts, options)
  },
  ping: () => Promise.resolve(),
  close: () => Promise.resolve(),
}
const coordination = postgresCoordination(resources.database)
const counted = {
  take: (...args: Parameters<typeof coordination.take>) => {
    work.push('take')
    return coordination.take(...args)
  },
  get: (key: string) => {
    work.push('get')
    return coordination.get(key)
  },
  put: coordination.put,
}
const passwords = withMethods({
  name: 'passwords',
  ask: async (kind: string) => {
    work.push(kind)
    return { tag: 'mismatch' }
  },
  send: () => undefined,
} as unknown as ActorRef<PasswordsProtocol>)

const sealer = {
  seal: async (_tenantId: string, _context: string, plaintext: Uint8Array) => {
    work.push('seal')
    return new Uint8Array(plaintext.length)
  },
  open: () => Promise.reject(new Error('no secret is unsealed here')),
}
const federatedLogin = {
  offered: async () => ({ tag: 'offered', upstreams: [] }),
} as unknown as ActorRef<FederatedLoginProtocol>

/** The actor of sign-in, at a database and coordination that are watched. */
function watchedLogin() {
  const clock = systemClock
  const random = systemRandom(clock)
  const options = { clock, log: silentLogger }
  const sessions = spawnInline(
    browserSessionsActor,
    {
      database,
      clock,
      random,
      alwaysTwo: false,
      registry: new Registry(),
      relyingParty: null,
    },
    options,
  )
  const login = spawnInline(
    signInActor,
    {
      database,
      coordination: counted,
      sealer,
      clock,
      random,
      passwords,
      tenants: resources.tenants,
      browserSessions: sessions.ref,
      federatedLogin,
      registry: new Registry(),
      settings: {
        brute_force_max_attempts: 10,
        brute_force_lockout_secs: 900,
        password_verify_ip_max_attempts: 60,
        password_verify_ip_window_secs: 60,
      },
      alwaysTwo: false,
      passkeys: false,
      cookies: { idle_secs: 60, absolute_secs: 60 },
      mail: openMailQueue({
        database,
        sealer,
        random,
        clock,
        bounds: {
          queuedMax: 10,
          perTenantMax: 10,
          perSandboxMax: 10,
          perAddressMax: 10,
          perAddressGapSecs: 0,
        },
        destination: 'delivered',
        shares: new ShareCounts(),
        i18n: I18N_DEFAULTS,
      }),
      email: {
        requests_per_name_max: 5,
        requests_per_address_max: 20,
        requests_window_secs: 900,
      },
      emailOtp: { enabled: true, ttl_secs: 600, max_attempts: 5 },
      magicLink: { enabled: true, ttl_secs: 600 },
      gate: NO_CAPTCHA,
      adaptiveMfa: {
        enabled: false,
        new_device: true,
        new_network: true,
        failures_max: 3,
        code_ttl_secs: 600,
        code_max_attempts: 5,
      },
      offers: {
        passkey: false,
        code: true,
        link: true,
        reset: true,
        signUp: false,
        phone: false,
        ethereum: false,
        guest: false,
      },
      issuer: 'https://auth.svc.example',
      consolePath: null,
    },
    options,
  )
  return {
    login: login.ref,
    async stop() {
      await login.stop()
      await sessions.stop()
    },
  }
}

test('a wrong password and an unknown address cost the same work', async (t) => {
  const { login, stop } = watchedLogin()
  t.teardown(stop)
  const made = await workspace(resources)
  const visitor = {
    token: null,
    address: '192.0.2.1',
    userAgent: '',
    browserId: 'a browser',
    languages: '',
  }
  const page = await login.showSignIn({
    flow: null,
    tenant: { tenantId: made.tenant.id },
    returnTo: null,
    visitor,
  })
  if (page.tag !== 'page') return t.fail(page.tag)
  const traces = []
  for (const email of [made.fixtureUser.email, 'unknown@nowhere.test']) {
    work.length = 0
    const answer = await login.signIn({
      flow: page.flow,
      email,
      password: 'wrong',
      captcha: '',
      visitor,
    })
    t.is(answer.tag, 'wrong')
    traces.push([...work])
  }
  t.deepEqual(traces[0], traces[1])
  t.true(traces[0]!.includes('verify'))
  t.true(traces[0]!.includes('outbox.append'))

  const mailed = []
  for (const email of [made.fixtureUser.email, 'unknown@nowhere.test']) {
    work.length = 0
    const asker = { browserId: 'b', host: 'auth.svc.example', languages: 'en', visitor }
    const answer = await login.requestSignInMail({ flow: page.flow, email, ...asker })
    t.is(answer.tag, 'sent')
    mailed.push([...work])
  }
  t.deepEqual(mailed[0], mailed[1], 'requesting a mail costs the same too')
  t.true(mailed[0]!.includes('outgoing_mail.insert'))
  t.true(mailed[0]!.includes('seal'))
})
