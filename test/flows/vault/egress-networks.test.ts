/** Tenants of organizations that were registered from one network hold a part of the places, and others are served. */
import test from 'ava'
import { egressHouse, holdCalls, settingOf, type Setting } from '../../support/vault/egress.js'
import { until } from '../../support/service/watch.js'
import { notThrough } from '../../support/fleet/through.js'

const WITHIN_MS = 240_000
const resources = await egressHouse({
  environment: {
    // One agent stands for the agents that a tenant registers.
    SVC_VAULT__EGRESS_CALLS_PER_AGENT_MAX: '2048',
    // No call ends before the test does.
    SVC_VAULT__EGRESS_HEAD_TIMEOUT_SECS: '600',
    SVC_VAULT__EGRESS_IDLE_GAP_SECS: '600',
    SVC_SERVER__TRUSTED_PROXIES: '127.0.0.1',
  },
})
const { api, upstream } = resources
test.after.always(() => resources.end())

const call = (setting: Setting, path: string) =>
  api.post('/v1/proxy', setting.delegated, {
    credential_id: setting.credentialId,
    url: upstream.origin + path,
  })

const seen = (path: string) => upstream.requests.filter(({ url }) => url === path).length

test('tenants of one registering network hold an eighth of the places', async (t) => {
  notThrough('each process counts for itself')
  t.timeout(300_000)
  const registered = (from: string) => settingOf(resources, {}, {}, from)
  const hostile = await Promise.all([1, 2, 3, 4].map((host) => registered(`2001:db8:1:2::${host}`)))
  const [neighbour, honest] = [
    await registered('2001:db8:1:2::5'),
    await registered('2001:db8:1:3::1'),
  ]
  const path = '/silent/network'
  const attack = holdCalls(resources, hostile, 80, path, true)
  t.teardown(attack.end)
  // A call whose place another tenant took back is refused, though the upstream has seen it.
  const isHeld = () => attack.refused() === 64 && seen(path) >= 256
  await until('the places are held, and no more', WITHIN_MS, isHeld)
  const refused = await call(hostile[0]!, '/echo')
  t.is(refused.status, 503)
  t.is(refused.body['error'], 'share_exhausted')
  t.is(refused.headers['retry-after'], '1')
  t.is((await call(neighbour, '/echo')).status, 200, 'a tenant of the network that holds nothing')
  for (let times = 0; times < 10; times += 1) t.is((await call(honest, '/echo')).status, 200)
})
