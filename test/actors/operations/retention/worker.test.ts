/** The rounds of maintenance around an outage of the database. */
import test from 'ava'
import { retentionWorker } from '../../../../actors/operations/retention/worker.js'
import { spawnInline } from '../../../../runtime/kernel/inline.js'
import { systemRandom } from '../../../../runtime/kernel/random.js'
import { until } from '../../../support/service/watch.js'
import { buildTokensFixture } from '../../oauth/tokens/tokens-fixture.js'

test('a round that failed is repeated as soon as the database answers', async (t) => {
  const fixture = await buildTokensFixture()
  t.teardown(() => fixture.close())
  const { database, clock, registry, keys } = fixture
  let isAway = true
  let rounds = 0
  const away = () => Promise.reject(new Error('the database is away'))
  const worker = spawnInline(retentionWorker, {
    database: {
      system: (...given) => (isAway ? away() : database.system(...given)),
      single: (...given) => (isAway ? away() : database.single(...given)),
      ping: (signal) => (isAway ? away() : database.ping(signal)),
    },
    clock,
    random: systemRandom(clock),
    registry,
    keys,
    reseal: async () => {
      rounds += 1
      return 0
    },
    closeLostCalls: async () => 0,
    recordUnknownCalls: async () => 0,
    tendConnections: async () => undefined,
    removeRetiredAssets: null,
    retention: {
      delivery_retention_days: 30,
      checkout_retention_days: 90,
      guest_retention_secs: 86_400,
    },
  })
  t.teardown(() => worker.stop())
  await until('a round failed', () => rounds === 1)
  isAway = false
  await until('it was repeated', () => rounds === 2)
  t.is(rounds, 2)
})
