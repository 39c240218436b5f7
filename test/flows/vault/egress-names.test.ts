/** Silent name servers of one tenant do not block the look-ups of others. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import test from 'ava'
import { SERVING_PROCESSES } from '../../support/fleet/through.js'
import { until } from '../../support/service/watch.js'
import { startDns } from '../../support/storage/dns.js'
import {
  bodyCall,
  CREDENTIALS,
  egressHouse,
  settingOf,
  UPSTREAM_NAME,
} from '../../support/vault/egress.js'

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
  },
})
const { api, upstream } = resources
dns.addresses.set(UPSTREAM_NAME, ['127.0.0.1'])
dns.silentBelow = '.slow.test'
test.after.always(async () => {
  await resources.end()
  await dns.close()
  await rm(folder, { recursive: true })
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
  await until('a name is looked up', 30_000, isAsked)
  const call = () =>
    api.post('/v1/proxy', honest.delegated, {
      credential_id: honest.credentialId,
      url: `${upstream.origin}/echo`,
    })
  t.is((await call()).status, 200)
  t.true(over < HOSTILE_NAMES, 'look-ups of the other tenant still hang')
  // No more look-ups than its share were started.
  const asked = new Set(dns.asked.filter((name) => name.endsWith('.slow.test')))
  t.true(asked.size <= LOOKUPS_PER_TENANT * SERVING_PROCESSES * (1 + over), `${asked.size} names`)
  for (const { status, why } of await Promise.all(hanging)) {
    if (status === 503) t.is(why, 'svc-egress; error=connection_limit_reached')
    else t.deepEqual({ status, why }, { status: 502, why: 'svc-egress; error=dns_timeout' })
  }
  t.is((await call()).status, 200)
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
