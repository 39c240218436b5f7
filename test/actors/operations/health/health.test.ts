import { setTimeout as sleep } from 'node:timers/promises'
import test from 'ava'
import { healthActor } from '../../../../actors/operations/health/actor.js'
import { KEY_LIFETIME_MS } from '../../../../storage/platform/sealing/seal.js'
import { spawnInline } from '../../../../runtime/kernel/inline.js'
import { buildTokensFixture } from '../../oauth/tokens/tokens-fixture.js'

const READY_WITHIN_MS = 5_000
const LOST_WITHIN_MS = 2_000

/** Polls for a status for at most `withinMs`. @returns the last status. */
async function becomes(ask: () => Promise<{ tag: string }>, tag: string, withinMs: number) {
  const end = performance.now() + withinMs
  while (performance.now() < end) {
    if ((await ask()).tag === tag) return true
    await sleep(20)
  }
  return false
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
  const ready = () => health.ref.ready(null)
  t.true(await becomes(ready, 'ok', READY_WITHIN_MS))
  t.is((await health.ref.startup(null)).tag, 'ok')
  cut = true
  t.true(await becomes(ready, 'unavailable', LOST_WITHIN_MS))
  t.is((await health.ref.live(null)).tag, 'ok')
  t.is((await health.ref.startup(null)).tag, 'ok', 'a start is not undone')
  cut = false
  t.true(await becomes(ready, 'ok', READY_WITHIN_MS))
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
  const ready = async () => (await health.ref.ready(null)).tag
  t.is((await health.ref.startup(null)).tag, 'starting')
  t.is(await ready(), 'unavailable')
  state.started = true
  t.true(await becomes(() => health.ref.ready(null), 'ok', READY_WITHIN_MS))
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
  const state = async () => ({ tag: 'keys_state', signing: true, kms, reason: null }) as const
  const health = spawnInline(healthActor, {
    database: fixture.database,
    keys: { ...fixture.keys, state },
    coordination: NO_TICKETS,
    clock: fixture.clock,
    process: { started: () => true, stopping: () => false, unfit: () => [] },
    report,
  })
  const ready = () => health.ref.ready(null)
  t.true(await becomes(ready, 'ok', READY_WITHIN_MS))
  kms = 'down'
  fixture.clock.advance(KEY_LIFETIME_MS - 60_000)
  t.false(await becomes(ready, 'unavailable', LOST_WITHIN_MS))
  fixture.clock.advance(120_000)
  t.true(await becomes(ready, 'unavailable', READY_WITHIN_MS))
  kms = 'up'
  t.true(await becomes(ready, 'ok', READY_WITHIN_MS))
  await health.stop()
  await fixture.close()
})
