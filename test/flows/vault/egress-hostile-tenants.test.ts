/** Tenants that cost nothing take the resources of egress calls, with the default limits of tenants, and others are served. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import test from 'ava'
import {
  bodyCall,
  CREDENTIALS,
  egressHouse,
  holdCalls,
  type Setting,
  settingOf,
  UPSTREAM_NAME,
} from '../../support/vault/egress.js'
import { until } from '../../support/service/watch.js'
import { startDns } from '../../support/storage/dns.js'
import { notThrough, SERVING_PROCESSES } from '../../support/fleet/through.js'

const LOOKUPS_PER_TENANT = 4
const HOSTILE_NAMES = 24
const dns = await startDns()
const folder = await mkdtemp(join(tmpdir(), 'svc-names-'))
const config = join(folder, 'svc.toml')
await writeFile(config, `[vault]\negress_dns_servers = ["${dns.server}"]\n`)
const resources = await egressHouse({
  environment: {
    SVC_CONFIG_FILE: config,
    SVC_VAULT__LOOKUPS_PER_TENANT_MAX: String(LOOKUPS_PER_TENANT),
    // One agent stands for the agents that a tenant registers.
    SVC_VAULT__EGRESS_CALLS_PER_AGENT_MAX: '2048',
    // No call ends before its test does.
    SVC_VAULT__EGRESS_HEAD_TIMEOUT_SECS: '600',
    SVC_VAULT__EGRESS_IDLE_GAP_SECS: '600',
    SVC_SERVER__TRUSTED_PROXIES: '127.0.0.1',
  },
})
const { api, upstream } = resources
dns.addresses.set(UPSTREAM_NAME, ['127.0.0.1'])
dns.silentBelow = '.slow.test'
test.after.always(async () => {
  await dns.close()
  await rm(folder, { recursive: true })
})

const call = (setting: Setting, path: string, more: object = {}) =>
  api.post('/v1/proxy', setting.delegated, {
    credential_id: setting.credentialId,
    url: upstream.origin + path,
    ...more,
  })

const seen = (path: string) => upstream.requests.filter(({ url }) => url === path).length

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
  await until('the places are held, and no more', isHeld)
  const refused = await call(hostile[0]!, '/echo').gives(503, 'share_exhausted')
  t.is(refused.headers['retry-after'], '1')
  t.is((await call(neighbour, '/echo')).status, 200, 'a tenant of the network that holds nothing')
  for (let times = 0; times < 3; times += 1) t.is((await call(honest, '/echo')).status, 200)
  await attack.end()
})

test.serial('replies that are announced and do not come take no memory of others', async (t) => {
  notThrough('each process counts for itself')
  const honest = await settingOf(resources)
  const hostile = await Promise.all(Array.from({ length: 4 }, () => settingOf(resources)))
  // Each takes `egress_buffered_bytes_per_tenant_max`, and together they take `egress_buffered_bytes_max`.
  const path = '/announced/10324440'
  const attack = holdCalls(resources, hostile, 13, path, false)
  await until('the replies are announced', () => seen(path) === 52)
  for (let times = 0; times < 3; times += 1) {
    t.is((await call(honest, '/bytes/200000', { stream: false })).status, 200)
    await call(honest, '/hash', { method: 'POST', body: 'x'.repeat(100_000) }).gives(200)
  }
  await attack.end()
})

test.serial('a tenant is served while all look-ups of another one hang', async (t) => {
  const { port } = new URL(upstream.origin)
  const names = Array.from({ length: HOSTILE_NAMES }, (_, at) => `s${at}.slow.test`)
  const hostile = await settingOf(resources, { allowed_hosts: names })
  const honest = await settingOf(resources)
  let over = 0
  const hanging = names.map(async (name) => {
    const answer = await resources.send('/v1/proxy/body', {
      token: hostile.direct,
      headers: bodyCall(hostile, `https://${name}:${port}/echo`, { 'x-svc-method': 'GET' }),
    })
    over += 1
    await answer.body.dump()
    return { status: answer.statusCode, why: String(answer.headers['proxy-status']) }
  })
  const isAsked = () => dns.asked.some((name) => name.endsWith('.slow.test'))
  await until('a name is looked up', isAsked)
  t.is((await call(honest, '/echo')).status, 200)
  t.true(over < HOSTILE_NAMES, 'look-ups of the other tenant still hang')
  // No more look-ups than its share were started.
  const asked = new Set(dns.asked.filter((name) => name.endsWith('.slow.test')))
  t.true(asked.size <= LOOKUPS_PER_TENANT * SERVING_PROCESSES * (1 + over), `${asked.size} names`)
  for (const { status, why } of await Promise.all(hanging)) {
    if (status === 503) t.is(why, 'svc-egress; error=connection_limit_reached')
    else t.deepEqual({ status, why }, { status: 502, why: 'svc-egress; error=dns_timeout' })
  }
  t.is((await call(honest, '/echo')).status, 200)
})

test.serial('a name without address is a 502, and the failure is cached', async (t) => {
  const { port } = new URL(upstream.origin)
  const setting = await settingOf(resources, { allowed_hosts: ['none.example.test'] })
  for (let times = 0; times < 3; times += 1) {
    const answer = await api.post('/v1/proxy', setting.delegated, {
      credential_id: setting.credentialId,
      url: `https://none.example.test:${port}/`,
    })
    t.is(answer.status, 502)
    t.is(answer.headers['proxy-status'], 'svc-egress; error=dns_error')
  }
  // One query each for IPv4 and IPv6, in each process at most.
  const asked = dns.asked.filter((name) => name === 'none.example.test').length
  t.true(asked === 2 || asked === 2 * SERVING_PROCESSES, String(asked))
})

test.serial('names of /etc/hosts are resolved', async (t) => {
  const setting = await settingOf(resources, { allowed_hosts: ['localhost'] })
  const { port } = new URL(upstream.origin)
  const answer = await api.post('/v1/proxy', setting.delegated, {
    credential_id: setting.credentialId,
    url: `https://localhost:${port}/echo`,
  })
  // The connection works; its certificate is for another name.
  t.is(answer.headers['proxy-status'], 'svc-egress; error=tls_certificate_error')
  t.false(dns.asked.includes('localhost'))
  t.is((await api.get(`${CREDENTIALS}/${setting.credentialId}`, setting.operator)).status, 200)
})
