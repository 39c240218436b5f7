/** Tenants that cost nothing take the resources of egress calls, with the default limits of tenants, and others are served. */
import test from 'ava'
import { egressHouse, holdCalls, settingOf, type Setting } from '../../support/vault/egress.js'
import { until } from '../../support/service/watch.js'
import { notThrough } from '../../support/fleet/through.js'

const WITHIN_MS = 180_000
const resources = await egressHouse({
  environment: {
    // One agent stands for the agents that a tenant registers.
    SVC_VAULT__EGRESS_CALLS_PER_AGENT_MAX: '2048',
    // No call ends before its test does.
    SVC_VAULT__EGRESS_HEAD_TIMEOUT_SECS: '600',
    SVC_VAULT__EGRESS_IDLE_GAP_SECS: '600',
    SVC_SERVER__TRUSTED_PROXIES: '127.0.0.1',
  },
})
const { api, upstream } = resources
test.after.always(() => resources.end())

const call = (setting: Setting, path: string, more: object = {}) =>
  api.post('/v1/proxy', setting.delegated, {
    credential_id: setting.credentialId,
    url: upstream.origin + path,
    ...more,
  })

const seen = (path: string) => upstream.requests.filter(({ url }) => url === path).length

const begin = (settings: readonly Setting[], each: number, path: string, stream: boolean) =>
  holdCalls(resources, settings, each, path, stream)

test.serial('tenants of one registering network hold an eighth of the places', async (t) => {
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
  // A call whose place another tenant took back is refused, though the upstream has seen it.
  const isHeld = () => attack.refused() === 64 && seen(path) >= 256
  await until('the places are held, and no more', WITHIN_MS, isHeld)
  const refused = await call(hostile[0]!, '/echo')
  t.is(refused.status, 503)
  t.is(refused.body['error'], 'share_exhausted')
  t.is(refused.headers['retry-after'], '1')
  t.is((await call(neighbour, '/echo')).status, 200, 'a tenant of the network that holds nothing')
  for (let times = 0; times < 10; times += 1) t.is((await call(honest, '/echo')).status, 200)
  await attack.end()
})

test.serial('replies that are announced and do not come take no memory of others', async (t) => {
  notThrough('each process counts for itself')
  const honest = await settingOf(resources)
  const hostile = await Promise.all(Array.from({ length: 4 }, () => settingOf(resources)))
  // Each takes `egress_buffered_bytes_per_tenant_max`, and together they take `egress_buffered_bytes_max`.
  const path = '/announced/10324440'
  const attack = begin(hostile, 13, path, false)
  await until('the replies are announced', WITHIN_MS, () => seen(path) === 52)
  for (let times = 0; times < 10; times += 1) {
    t.is((await call(honest, '/bytes/200000', { stream: false })).status, 200)
    const sent = await call(honest, '/hash', { method: 'POST', body: 'x'.repeat(100_000) })
    t.is(sent.status, 200)
  }
  await attack.end()
})

test.serial('a tenant gets a place while others hold every place of their group', async (t) => {
  notThrough('each process counts for itself')
  t.timeout(300_000)
  const honest = await settingOf(resources)
  const hostile = await Promise.all(Array.from({ length: 8 }, () => settingOf(resources)))
  const path = '/silent/places'
  // All places that sandboxes hold together.
  const attack = begin(hostile, 128, path, true)
  await until('the places are held', WITHIN_MS, () => seen(path) === 1024)
  // A tenant that holds places takes none from others.
  const refused = await call(hostile[0]!, '/echo')
  t.is(refused.status, 503)
  t.is(refused.body['error'], 'share_exhausted')
  t.is(refused.headers['retry-after'], '1')
  for (let times = 0; times < 10; times += 1) {
    const answer = await call(honest, '/echo', { stream: times % 2 === 0 })
    t.is(answer.status, 200, JSON.stringify(answer.body))
  }
  await attack.end()
})
