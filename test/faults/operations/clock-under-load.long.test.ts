/**
 * The clock of a machine is stepped by five minutes in both directions under load: the clock of both processes, of their
 * PostgreSQL, or of all of them (docs/guides/operations/faults.md#the-clock).
 */
import { setTimeout as sleep } from 'node:timers/promises'
import type { ExecutionContext } from 'ava'
import { bootstrap, callerOf, clientToken, demand } from '../../support/agents/journey.js'
import { startFleet } from '../../support/fleet/fleet.js'
import { startLoad } from '../../support/fleet/load.js'
import { proofFor } from '../../support/identity/proof.js'
import { testWithProgram } from '../../support/service/programs.js'
import { type SteppedClock, steppedClock } from '../../support/service/stepped-clock.js'
import { trust } from '../../support/service/trust.js'
import { until } from '../../support/service/watch.js'
import { ownPostgres } from '../../support/storage/outage.js'
import { IS_LONG } from '../../support/runs.js'

const STEP_SECS = 300
/** Forward, back to the real time, back, and forward to the real time. */
const STEPS = [STEP_SECS, 0, -STEP_SECS, 0]
const STEPS_FORWARD = STEPS.filter((secs, index) => secs > (STEPS[index - 1] ?? 0)).length
const HOLD_MS = IS_LONG ? 60_000 : 2_000
const WORKERS = 2
const PACE_MS = 20
/** A slow machine takes some seconds between two readings. */
const APART_SECS = 60

type Stepped = 'processes' | 'PostgreSQL' | 'machine'

async function stepsUnderLoad(t: ExecutionContext, faketime: string, stepped: Stepped) {
  t.timeout(IS_LONG ? 900_000 : 240_000)
  const clock: SteppedClock = steppedClock(faketime)
  t.teardown(() => clock.remove())
  const isDatabase = stepped !== 'processes'
  const postgres = await ownPostgres(isDatabase ? { environment: clock.environment } : {})
  t.teardown(() => postgres.end())
  const fleet = await startFleet({
    through: 'haproxy',
    databaseUrl: postgres.url,
    environment: {
      // The tokens of the load outlive a step forward.
      SVC_JWT__ACCESS_TOKEN_LIFETIME_AGENT_SECS: '3600',
      ...(stepped === 'PostgreSQL' ? {} : clock.environment),
    },
  })
  t.teardown(() => fleet.end())
  trust(fleet.ca)
  const http = callerOf(fleet.baseUrl)
  const space = await bootstrap(http)
  const authorization = `Basic ${btoa(`${space.clientId}:${space.clientSecret}`)}`
  const revoked = String(demand(await clientToken(http, space), 200).body['access_token'])
  demand(await http.form('/oauth/revoke', { token: revoked }, { authorization }), 200)
  const dpop = await proofFor('POST', `${fleet.issuer}/oauth/token`)
  const prove = () =>
    http.form('/oauth/token', { grant_type: 'client_credentials' }, { authorization, dpop })
  t.is((await prove()).status, 200)

  /** By how much the process that answers is ahead: the clock of a token, compared with the real time. */
  const aheadSecs = async () => {
    const { body } = demand(await clientToken(http, space), 200)
    const [, claims = ''] = String(body['access_token']).split('.')
    const { iat } = JSON.parse(Buffer.from(claims, 'base64url').toString()) as { iat: number }
    return iat - Date.now() / 1000
  }
  const isNear = (secs: number, expected: number) => Math.abs(secs - expected) < APART_SECS
  const load = startLoad({ ...fleet, space, workers: WORKERS, paceMs: PACE_MS })
  t.teardown(async () => void (await load.stop()))
  for (const secs of STEPS) {
    await clock.stepTo(secs)
    await until(`PostgreSQL is ${secs} s ahead`, async () => {
      const rows = await postgres.ask<{ ahead: number }>(
        `select extract(epoch from clock_timestamp())::float8 - ${Date.now() / 1000} as ahead`,
      )
      return isNear(rows[0]!.ahead, isDatabase ? secs : 0)
    })
    const served = stepped === 'PostgreSQL' ? 0 : secs
    await until(`the service is ${served} s ahead`, async () => isNear(await aheadSecs(), served))
    const before = load.answered()
    await until('answers', () => load.answered() > before + 10 * WORKERS)
    await sleep(HOLD_MS)
    const { body } = await http.form('/oauth/introspect', { token: revoked }, { authorization })
    t.deepEqual(body, { active: false }, `a revoked token, stepped to ${secs} s`)
    t.not((await prove()).status, 200, `a used proof, stepped to ${secs} s`)
  }
  const { answered, failures, refusals, created } = await load.stop()
  if (failures.length > 0) for (const line of warningsOf(fleet.processes)) t.log(line)
  // PostgreSQL judges its time limits by its wall clock, and can cancel what is under way at a step forward.
  t.is(failures.length, refusals, failures.join('\n'))
  t.true(refusals <= (isDatabase ? STEPS_FORWARD * WORKERS : 0), failures.join('\n'))
  t.log(`${answered} answered, ${created.length} created`)
  const rows = await postgres.ask<{ id: string }>(
    `select id from applications where tenant_id = '${space.tenantId}'`,
  )
  const stored = new Set(rows.map(({ id }) => id))
  t.deepEqual(
    created.filter((id) => !stored.has(id)),
    [],
    'acknowledged applications',
  )
  await until('all events are numbered', async () => {
    const waiting = await postgres.ask('select 1 from unnumbered_events limit 1')
    return waiting.length === 0
  })
  const gaps = await postgres.ask(
    `select 1 from all_events where tenant_id = '${space.tenantId}'
     having count(*) <> max(sequence) - min(sequence) + 1`,
  )
  t.deepEqual(gaps, [], 'numbers of events without a gap')
}

const WARN = 40
const WARNINGS_MAX = 40

/** What the processes logged as a warning or an error: the reason of a refusal. */
function warningsOf(processes: readonly { output(): string }[]): readonly string[] {
  return processes
    .flatMap((each) => each.output().split('\n'))
    .filter((line) => Number(/^\{"level":(\d+)/.exec(line)?.[1]) >= WARN)
    .slice(-WARNINGS_MAX)
}

for (const stepped of IS_LONG
  ? (['processes', 'PostgreSQL', 'machine'] as const)
  : (['machine'] as const)) {
  testWithProgram('faketime', `the clock of the ${stepped} is stepped under load`, (t, faketime) =>
    stepsUnderLoad(t, faketime, stepped),
  )
}
