/** A tenant is served while groups of free tenants hold all they get. `bench/noisy/groups.ts` measures it. */
import test from 'ava'
import { notThrough } from '../../../support/fleet/through.js'
import { until } from '../../../support/service/watch.js'
import { egressHouse, holdCalls, type Setting, settingOf } from '../../../support/vault/egress.js'
import { besideGroup } from '../../../support/vault/hostile-group.js'

for (const tenants of [8, 16, 64]) {
  test.serial(`a tenant is served despite a group of ${tenants} hostile tenants`, async (t) => {
    notThrough('each process counts for itself')
    t.timeout(600_000)
    await besideGroup(t, tenants)
  })
}

test.serial('a tenant gets a place while others hold every place of their group', async (t) => {
  notThrough('each process counts for itself')
  t.timeout(300_000)
  const resources = await egressHouse({
    environment: {
      // One agent stands for the agents that a tenant registers.
      SVC_VAULT__EGRESS_CALLS_PER_AGENT_MAX: '2048',
      // No call ends before the test does.
      SVC_VAULT__EGRESS_HEAD_TIMEOUT_SECS: '600',
      SVC_VAULT__EGRESS_IDLE_GAP_SECS: '600',
    },
  })
  t.teardown(() => resources.end())
  const { api, upstream } = resources
  const call = ({ delegated, credentialId }: Setting, more: object = {}) =>
    api.post('/v1/proxy', delegated, {
      credential_id: credentialId,
      url: `${upstream.origin}/echo`,
      ...more,
    })
  const honest = await settingOf(resources)
  const hostile = await Promise.all(Array.from({ length: 8 }, () => settingOf(resources)))
  const path = '/silent/places'
  const seen = () => upstream.requests.filter(({ url }) => url === path).length
  // All places that sandboxes hold together.
  const attack = holdCalls(resources, hostile, 128, path, true)
  await until('the places are held', () => seen() === 1024)
  // A tenant that holds places takes none from others.
  const refused = await call(hostile[0]!).gives(503, 'share_exhausted')
  t.is(refused.headers['retry-after'], '1')
  for (let times = 0; times < 10; times += 1) {
    await call(honest, { stream: times % 2 === 0 }).gives(200)
  }
  await attack.end()
})
