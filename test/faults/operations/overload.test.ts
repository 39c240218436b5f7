/** Own service: it gives an actor more work than it accepts. */
/** More work than one actor accepts: it refuses, and the rest of the service is not affected. */
import { randomUUID } from 'node:crypto'
import { setMaxListeners } from 'node:events'
import test from 'ava'
import { Client } from 'pg'
import { agents } from '../../../actors/agents/agents/protocol.js'
import { agentsActor } from '../../../actors/agents/agents/actor.js'
import { openBrowser } from '../../support/pages/browser.js'
import { runningPerShare } from '../../../runtime/kernel/mailbox.js'
import { bootstrap, callerOf, clientToken, demand, REGISTER } from '../../support/agents/journey.js'
import { bootstrapped } from '../../support/identity/person.js'
import { authorized, callbackOf, pathOf, relyingParty } from '../../support/oauth/relying-party.js'
import { ownService } from '../../support/service/own-service.js'
import { metric, METRICS_TOKEN, until, watchLive } from '../../support/service/watch.js'

test('a full mailbox returns 503 without waiting, while probes and other work continue', async (t) => {
  const running = await ownService({
    environment: { SVC_SERVER__METRICS_BEARER_TOKEN: METRICS_TOKEN },
  })
  t.teardown(() => running.end())
  const http = callerOf(running.baseUrl)
  const space = await bootstrap(http)
  const superuser = new Client({ connectionString: running.db.superuserUrl })
  await superuser.connect()
  t.teardown(() => superuser.end())

  // No process can read a challenge: every completion hangs.
  await superuser.query('begin')
  await superuser.query('lock table pow_challenges in access exclusive mode')
  const { capacity, inflightMax } = agentsActor.mailbox
  const giveUp = new AbortController()
  const { signal } = giveUp
  setMaxListeners(0, signal)
  const ref = running.service.ref(agents)
  // The share of the requests below. A full mailbox would make room for a share that waits with
  // less.
  const share = '127.0.0.1'
  const stuck = Array.from({ length: capacity + runningPerShare(inflightMax) }, () => {
    const message = { challengeId: randomUUID(), nonce: '1' }
    return ref.completeAgentRegistration(message, { signal, share }).catch(() => undefined)
  })

  const pulse = watchLive(http)
  const refused = await Promise.all(
    Array.from({ length: 20 }, () =>
      http.post(`${REGISTER}/pow/complete`, { challenge_id: randomUUID(), nonce: '1' }),
    ),
  )
  for (const { status, headers, body } of refused) {
    t.is(status, 503)
    t.is(headers.get('content-type'), 'application/problem+json')
    t.is(headers.get('retry-after'), '1')
    t.like(body, { error: 'service_unavailable', detail: 'The service is overloaded.' })
  }
  t.is(
    await metric(http, 'svc_actor_unavailable_total', { actor: 'agents', reason: 'mailbox_full' }),
    20,
  )
  demand(await http.call('/.well-known/jwks.json'), 200)

  // They were answered while the work was blocked.
  const { probes, bad } = await pulse.stop()
  t.true(probes > 0)
  t.is(bad, 0)

  // The callers give up: waiting messages never run, running ones are cancelled in the database.
  giveUp.abort()
  await Promise.all(stuck)
  await superuser.query('rollback')
  await until('the actor takes work again', async () => {
    const { status } = await http.post(`${REGISTER}/pow/complete`, {
      challenge_id: randomUUID(),
      nonce: '1',
    })
    return status === 400
  })
  demand(await clientToken(http, space), 200)
  await bootstrap(http)
})

/** A service with a user who has consented to an application, and access to its database. */
async function allowedBefore(environment: Readonly<Record<string, string>>) {
  const running = await ownService({
    environment: { SVC_SERVER__METRICS_BEARER_TOKEN: METRICS_TOKEN, ...environment },
  })
  const person = await bootstrapped(running)
  const party = await relyingParty(running, person)
  const browser = openBrowser(running)
  callbackOf(await authorized(browser, person, (await party.journey()).url))
  const superuser = new Client({ connectionString: running.db.superuserUrl })
  await superuser.connect()
  return {
    http: callerOf(running.baseUrl),
    superuser,
    authorize: async () =>
      browser.get(pathOf((await party.journey()).url), { accept: 'application/json' }),
    async end() {
      await superuser.end()
      await browser.close()
      await running.end()
    },
  }
}

test('codes of one browser do not wait for one another', async (t) => {
  const { superuser, authorize, end } = await allowedBefore({
    SVC_DATABASE__STATEMENT_TIMEOUT_SECS: '5',
  })
  t.teardown(end)
  // The lock that a slowly committing transaction holds.
  await superuser.query('begin')
  const { rowCount } = await superuser.query(
    "select from sessions where subject_type = 'human' for update",
  )
  t.is(rowCount, 1)
  await superuser.query('select from browser_sessions for share')
  const pages = await Promise.all(Array.from({ length: 8 }, authorize))
  for (const page of pages) t.truthy(callbackOf(page).searchParams.get('code'))
  await superuser.query('rollback')
})

for (const [what, environment, reason] of [
  ['a statement that the database has no time for', { STATEMENT_TIMEOUT_SECS: '1' }, 1],
  [
    'no connection for as long as one may be waited for',
    { MAX_CONNECTIONS: '2', CONNECT_TIMEOUT_SECS: '6' },
    3,
  ],
] as const) {
  test(`${what} is reported as overload`, async (t) => {
    const named = Object.entries(environment).map(([key, value]) => [`SVC_DATABASE__${key}`, value])
    const { http, superuser, authorize, end } = await allowedBefore(Object.fromEntries(named))
    t.teardown(end)
    await superuser.query('begin')
    await superuser.query('lock table consents in access exclusive mode')
    const asked = Array.from({ length: reason }, authorize)
    const refused = await Promise.race(asked)
    t.is(refused.status, 503)
    t.is(JSON.parse(refused.html).detail, 'The service is overloaded.')
    t.is(refused.headers['retry-after'], '1')
    await superuser.query('rollback')
    await Promise.all(asked)
    t.truthy(callbackOf(await authorize()).searchParams.get('code'))
    t.true((await metric(http, 'svc_actor_unavailable_total', { reason: 'overloaded' })) >= 1)
    t.is(await metric(http, 'svc_actor_unavailable_total', { reason: 'dependency' }), 0)
  })
}
