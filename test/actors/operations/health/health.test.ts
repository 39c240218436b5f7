import test from 'ava'
import { healthActor } from '../../../../actors/operations/health/actor.js'
import { KEY_LIFETIME_MS } from '../../../../storage/platform/sealing/seal.js'
import { until } from '../../../support/service/watch.js'
import { spawnInline } from '../../../../runtime/kernel/inline.js'
import { buildTokensFixture } from '../../oauth/tokens/tokens-fixture.js'

/** Asks until the status is this. The limit ends a test that would wait forever. */
async function becomes(ask: () => Promise<{ tag: string }>, tag: string) {
  await until(tag, async () => (await ask()).tag === tag)
  return true
}

const NO_TICKETS = { get: async () => undefined }
const report = { planes: () => [], actors: () => [] }

test.serial('readiness follows the database both ways, and liveness does not', async (t) => {
  const fixture = await buildTokensFixture()
  // A switch in the connection. Behind it is the real database.
  let cut = false
  const ping = (signal?: AbortSignal) =>
    cut ? new Promise<never>(() => undefined) : fixture.database.ping(signal)
  const process = { started: () => true, stopping: () => false, unfit: () => [] }
  const health = spawnInline(healthActor, {
    database: { ping },
    keys: fixture.keys,
    coordination: NO_TICKETS,
    clock: fixture.clock,
    process,
    report,
  })
  const ready = () => health.ref.healthReady(null)
  t.true(await becomes(ready, 'ok'))
  t.is((await health.ref.healthStartup(null)).tag, 'ok')
  cut = true
  t.true(await becomes(ready, 'unavailable'))
  t.is((await health.ref.healthLive(null)).tag, 'ok')
  t.is((await health.ref.healthStartup(null)).tag, 'ok', 'a start is not undone')
  cut = false
  t.true(await becomes(ready, 'ok'))
  await health.stop()
  await fixture.close()
})

test.serial('a process that starts, stops or has an unfit actor is not ready', async (t) => {
  const fixture = await buildTokensFixture()
  const state = { started: false, stopping: false, unfit: [] as string[] }
  const health = spawnInline(healthActor, {
    database: fixture.database,
    keys: fixture.keys,
    coordination: NO_TICKETS,
    clock: fixture.clock,
    process: {
      started: () => state.started,
      stopping: () => state.stopping,
      unfit: () => state.unfit,
    },
    report,
  })
  const ready = async () => (await health.ref.healthReady(null)).tag
  t.is((await health.ref.healthStartup(null)).tag, 'starting')
  t.is(await ready(), 'unavailable')
  state.started = true
  t.true(await becomes(() => health.ref.healthReady(null), 'ok'))
  state.unfit = ['egress']
  t.is(await ready(), 'unavailable')
  state.unfit = []
  state.stopping = true
  t.is(await ready(), 'unavailable')
  await health.stop()
  await fixture.close()
})

test.serial('without the kms a process is ready as long as keys in memory last', async (t) => {
  const fixture = await buildTokensFixture()
  let kms: 'up' | 'down' = 'up'
  let asks = 0
  const state = async () => {
    asks += 1
    return { tag: 'keys_state', signing: true, kms, reason: null } as const
  }
  const health = spawnInline(healthActor, {
    database: fixture.database,
    keys: { ...fixture.keys, state },
    coordination: NO_TICKETS,
    clock: fixture.clock,
    process: { started: () => true, stopping: () => false, unfit: () => [] },
    report,
  })
  const ready = () => health.ref.healthReady(null)
  t.true(await becomes(ready, 'ok'))
  kms = 'down'
  fixture.clock.advance(KEY_LIFETIME_MS - 60_000)
  const asked = asks
  await until('two more rounds', () => asks > asked + 1)
  t.is((await ready()).tag, 'ok')
  fixture.clock.advance(120_000)
  t.true(await becomes(ready, 'unavailable'))
  kms = 'up'
  t.true(await becomes(ready, 'ok'))
  await health.stop()
  await fixture.close()
})
