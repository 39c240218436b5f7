/** Own service: it steps the clock. */
/** The clock is stepped by five minutes (docs/guides/operations/faults.md#the-clock). */
import test from 'ava'
import { systemClock } from '../../../runtime/kernel/clock.js'
import { systemRandom } from '../../../runtime/kernel/random.js'
import { Registry } from 'prom-client'
import { sweepExpired } from '../../../actors/operations/retention/sweeps.js'
import {
  postgresCoordination,
  sweepCoordination,
} from '../../../storage/platform/coordination/postgres.js'
import { bootstrap, callerOf, clientToken, demand, login } from '../../support/agents/journey.js'
import { sql } from '../../support/storage/sql.js'
import { proofFor } from '../../support/identity/proof.js'
import { ownService } from '../../support/service/own-service.js'
import type { TestService } from '../../support/service.js'

const STEP_SECS = 300
let running: TestService
let stepMs = 0
const clock = {
  ...systemClock,
  now: () => new Date(Date.now() + stepMs),
  nowSecs: () => Math.floor((Date.now() + stepMs) / 1000),
}
const stepTo = (secs: number) => (stepMs = secs * 1000)

test.before(async () => {
  running = await ownService({ clock })
})
test.after.always(() => running?.end())
test.beforeEach(() => stepTo(0))

test.serial('tokens stay valid, and what is used or revoked stays so', async (t) => {
  const http = callerOf(running.baseUrl)
  const space = await bootstrap(http)
  const authorization = `Basic ${btoa(`${space.clientId}:${space.clientSecret}`)}`
  const asClient = (path: string, token: string) => http.form(path, { token }, { authorization })
  const isActive = async (token: string) =>
    demand(await asClient('/oauth/introspect', token), 200).body['active']
  const first = demand(await clientToken(http, space), 200).body
  const token = String(first['access_token'])
  const dpop = await proofFor('POST', `${running.issuer}/oauth/token`)
  const prove = () =>
    http.form('/oauth/token', { grant_type: 'client_credentials' }, { authorization, dpop })
  t.is((await prove()).status, 200)

  for (const secs of [STEP_SECS, 0, -STEP_SECS]) {
    stepTo(secs)
    const isOver = secs >= Number(first['expires_in'])
    t.is(await isActive(token), !isOver, `stepped to ${secs} s`)
    const bearer = { authorization: `Bearer ${space.accessToken}` }
    const { status } = await http.call('/api/v1/agents/me', { headers: bearer })
    t.is(status, isOver ? 401 : 200, `stepped to ${secs} s`)
    demand(await clientToken(http, space), 200)
    demand(await login(http, space), 200)
    t.not((await prove()).status, 200, 'a used proof')
  }

  // The proof is two minutes old. Seven minutes have passed in the database, or its clock was stepped.
  stepTo(120)
  await sql(running)`
    update coordination_values set expires_at = expires_at - interval '420 seconds'`
  await sweepCoordination(running.db.database, 1_000)
  const again = await prove()
  t.like(again.body, { error: 'invalid_dpop_proof' }, again.text)
  t.regex(String(again.body['error_description']), /used/)

  // The sweep runs while the clock is ahead, and the token of the revocation seems to have expired.
  stepTo(0)
  demand(await asClient('/oauth/revoke', token), 200)
  const almostSecs = Number(first['expires_in']) - 60
  const removed = await sweepExpired(
    {
      database: running.db.database,
      clock: {
        ...systemClock,
        now: () => new Date(Date.now() + (almostSecs + STEP_SECS) * 1000),
      },
      random: systemRandom(systemClock),
      registry: new Registry(),
      retention: {
        delivery_retention_days: 30,
        checkout_retention_days: 30,
        guest_retention_secs: 86_400,
      },
    },
    new AbortController().signal,
  )
  t.is(removed['revoked_tokens'], 0)
  stepTo(almostSecs)
  t.is(await isActive(token), false)
})

test.serial('a rate limit does not outlast its window when the database steps back', async (t) => {
  const { take } = postgresCoordination(running.db.database)
  const window = { limit: 2, windowSecs: 60 }
  const allowed = async () => (await take('stepped', window)).allowed
  t.deepEqual([await allowed(), await allowed(), await allowed()], [true, true, false])
  await sql(
    running.db.database,
    `update coordination_counters set ends_at = ends_at + interval '${STEP_SECS} seconds'`,
  )
  t.deepEqual([await allowed(), await allowed(), await allowed()], [true, true, false])
})
