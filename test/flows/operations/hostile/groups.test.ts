/**
 * Sandboxes, and tenants of one registering network, hold their part of what tenants share. Another tenant is still served.
 * `../noisy-neighbour.test.ts` has one hostile tenant.
 */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import test, { type ExecutionContext } from 'ava'
import { callerOf } from '../../../support/agents/journey.js'
import { apiOf } from '../../../support/api.js'
import { startCardProvider } from '../../../support/commerce/card-provider.js'
import { COMMERCE, openShop } from '../../../support/commerce/shop.js'
import { notThrough } from '../../../support/fleet/through.js'
import { sql } from '../../../support/storage/sql.js'
import { bootstrapped, signIn } from '../../../support/identity/person.js'
import { openMailServer } from '../../../support/operations/mail.js'
import { openBrowser } from '../../../support/pages/browser.js'
import { type TestService, testService } from '../../../support/service.js'
import { metric, METRICS_TOKEN, until } from '../../../support/service/watch.js'
import { startDns } from '../../../support/storage/dns.js'
import { bodyCall, egressHouse, settingOf, UPSTREAM_NAME } from '../../../support/vault/egress.js'

const METRICS = { SVC_SERVER__METRICS_BEARER_TOKEN: METRICS_TOKEN }
const BEHIND_PROXY = { SVC_SERVER__TRUSTED_PROXIES: '127.0.0.1' }

async function started(t: ExecutionContext, environment: Readonly<Record<string, string>>) {
  notThrough('each process counts for itself')
  t.timeout(300_000)
  const running = await testService({ environment: { ...METRICS, ...environment } })
  const api = apiOf(running)
  t.teardown(() => api.end())
  return { running, api }
}

/** Simulates the activation by its owner. */
const activate = ({ db }: TestService, tenantId: string) =>
  sql(db.database)`update tenants set environment = 'production' where id = ${tenantId}`

/** Units that a group holds. */
const inUse = ({ baseUrl }: TestService, resource: string, group: string) =>
  metric(callerOf(baseUrl), 'svc_share_in_use', { resource, group })

function gate(t: ExecutionContext) {
  let open!: () => void
  const opened = new Promise<void>((resolve) => (open = resolve))
  t.teardown(() => open())
  return { opened, open }
}

/** A mail server that keeps letters to `crowd...` waiting, and a tenant that invites. */
async function mailStage(t: ExecutionContext, more: Readonly<Record<string, string>> = {}) {
  const { opened, open } = gate(t)
  let held = 0
  const mail = await openMailServer({
    onMessage: async (_, raw) => {
      if (!/^To: .*crowd/m.test(raw)) return
      held += 1
      await opened
    },
  })
  t.teardown(() => mail.close())
  const { running, api } = await started(t, {
    ...mail.environment,
    ...more,
    SVC_EMAIL__SMTP_TIMEOUT_SECS: '280',
    SVC_INVITATIONS__ENABLED: 'true',
  })
  const invite = async (token: string, name: string) => {
    const email = `${name}@mail.svc-tests.net`
    t.is((await api.post('/api/v1/tenant-users', token, { email })).status, 201)
    return email
  }
  return { mail, running, api, invite, open, held: () => held }
}

test.serial('letters leave while sandboxes hold their half of the outgoing mail', async (t) => {
  const { mail, running, api, invite, open, held } = await mailStage(t)
  const sandboxes = await Promise.all([1, 2, 3, 4, 5].map(() => api.workspace()))
  const honest = await api.workspace()
  await activate(running, honest.tenantId)
  for (const [at, { token }] of sandboxes.entries()) {
    for (const nth of [1, 2, 3, 4]) await invite(token, `crowd-${at}-${nth}`)
  }
  await until('the half is held', () => held() === 8)
  for (const nth of [1, 2, 3, 4, 5, 6]) await mail.letterTo(await invite(honest.token, `a${nth}`))
  t.is(await inUse(running, 'mail_sending', 'sandboxes'), 8)
  t.is(held(), 8, 'sandboxes got no place beyond their half')
  open()
  await until('each letter leaves in the end', () => held() === 20)
})

test.serial('letters leave while tenants of one network hold their eighth', async (t) => {
  const { mail, running, api, invite, open, held } = await mailStage(t, BEHIND_PROXY)
  const registered = async (from: string) => {
    const tenant = await api.workspace('Acme', from)
    await activate(running, tenant.tenantId)
    return tenant
  }
  const crowd = await Promise.all([1, 2, 3, 4].map((host) => registered(`2001:db8:5:1::${host}`)))
  const honest = await registered('2001:db8:5:2::1')
  for (const [at, { token }] of crowd.entries()) await invite(token, `crowd-${at}`)
  await until('the eighth is held', () => held() === 2)
  for (const nth of [1, 2, 3]) await mail.letterTo(await invite(honest.token, `b${nth}`))
  t.is(held(), 2, 'tenants of the network got no place beyond their eighth')
  open()
  await until('each letter leaves in the end', () => held() === 4)
})

test.serial('tenants sign in while sandboxes hold their half of the password hashes', async (t) => {
  const { running } = await started(t, {
    // Long enough that the places are full for most of the test, one at a time.
    SVC_AUTH__ARGON2_MEMORY_KIB: '32768',
    SVC_AUTH__ARGON2_ITERATIONS: '2',
    SVC_AUTH__ARGON2_MAX_CONCURRENT: '1',
    SVC_AUTH__PASSWORD_VERIFY_IP_MAX_ATTEMPTS: '1000000',
    SVC_SERVER__REQUEST_TIMEOUT_SECS: '120',
  })
  // Half of the one that runs and the 32 that wait.
  const half = 16
  const hostile = await Promise.all([1, 2].map(() => bootstrapped(running)))
  const [honest, sandbox] = [await bootstrapped(running), await bootstrapped(running)]
  await activate(running, honest.tenantId)
  const over = new AbortController()
  let refused = 0
  const flood = hostile.flatMap((tenant, at) =>
    Array.from({ length: 12 }, async (_, worker) => {
      const browser = openBrowser(running)
      for (let turn = 0; !over.signal.aborted; turn += 1) {
        const email = `none-${at}-${worker}-${turn}@harbour.test`
        if ((await signIn(browser, { ...tenant, email })).status === 503) refused += 1
      }
      await browser.close()
    }),
  )
  const browser = openBrowser(running)
  let most = 0
  const look = async () => {
    most = Math.max(most, await inUse(running, 'passwords', 'sandboxes'))
    return most >= half
  }
  try {
    await until('the half is held', look)
    for (const tenant of [honest, sandbox]) {
      const before = refused
      await until('sign-ins of the group are refused', () => refused > before)
      t.is((await signIn(browser, tenant)).status, 303)
      browser.cookies.clear()
      await look()
    }
  } finally {
    over.abort()
    await Promise.all(flood)
  }
  t.is(most, half, 'sandboxes got no place beyond their half')
})

test.serial('buyers pay by card while tenants of one network hold their eighth', async (t) => {
  const { opened, open } = gate(t)
  const provider = await startCardProvider()
  t.teardown(() => provider.close())
  const { running } = await started(t, {
    ...COMMERCE,
    ...provider.environment,
    ...BEHIND_PROXY,
    SVC_COMMERCE__CARD__TIMEOUT_SECS: '280',
  })
  const shopOf = async (from: string) => {
    const shop = await openShop(running, from)
    t.teardown(() => shop.api.close())
    await activate(running, shop.workspace.tenantId)
    return shop
  }
  const crowd = [await shopOf('2001:db8:6:1::1'), await shopOf('2001:db8:6:1::2')]
  const honest = await shopOf('2001:db8:6:2::1')
  const slow = new Set<unknown>()
  let held = 0
  provider.wait = async ({ fields }) => {
    if (!slow.has(fields['client_reference_id'])) return
    held += 1
    await opened
  }
  const buy = async (shop: (typeof crowd)[number], isSlow: boolean) => {
    const checkout = await shop.checkout()
    if (isSlow) slow.add(checkout['charge_id'])
    const browser = openBrowser(running)
    const shown = await browser.get(new URL(String(checkout['checkout_url'])).pathname)
    const sent = await browser.submit(shown, { rail: 'card' })
    await browser.close()
    return sent.status
  }
  const buyers = crowd.flatMap((shop) => Array.from({ length: 8 }, () => buy(shop, true)))
  await until('the eighth is held', () => held === 8)
  for (let times = 0; times < 2; times += 1) t.is(await buy(honest, false), 303)
  t.is(held, 8, 'tenants of the network got no place beyond their eighth')
  open()
  t.deepEqual(await Promise.all(buyers), Array(16).fill(303), 'each buyer is served in the end')
})

const HOSTS = 64

test.serial('names are looked up while sandboxes hold their half of the look-ups', async (t) => {
  notThrough('each process counts for itself')
  t.timeout(300_000)
  const dns = await startDns()
  dns.addresses.set(UPSTREAM_NAME, ['127.0.0.1'])
  dns.silentBelow = '.slow.test'
  const folder = await mkdtemp(join(tmpdir(), 'svc-groups-'))
  const config = join(folder, 'svc.toml')
  await writeFile(config, `[vault]\negress_dns_servers = ["${dns.server}"]\n`)
  const house = await egressHouse({
    environment: {
      ...METRICS,
      SVC_CONFIG_FILE: config,
      SVC_VAULT__EGRESS_CALLS_PER_AGENT_MAX: '2048',
      SVC_VAULT__LOOKUPS_PER_TENANT_MAX: String(HOSTS),
    },
  })
  const { api, running, upstream } = house
  t.teardown(async () => {
    await house.end()
    await dns.close()
    await rm(folder, { recursive: true })
  })
  const honest = await settingOf(house)
  await activate(running, honest.tenantId)
  const over = new AbortController()
  const group = await Promise.all(
    Array.from({ length: 6 }, async (_, at) => {
      const names = Array.from({ length: HOSTS }, (_name, nth) => `n${at}-${nth}.slow.test`)
      return { names, setting: await settingOf(house, { allowed_hosts: names }) }
    }),
  )
  const flood = group.flatMap(({ names, setting }) =>
    names.map(async (name) => {
      // Its failure is cached for some seconds, so that it is not always looked up.
      while (!over.signal.aborted) {
        const headers = bodyCall(setting, `https://${name}/`, { 'x-svc-method': 'GET' })
        const { signal } = over
        const answer = await house.send('/v1/proxy/body', {
          token: setting.direct,
          headers,
          signal,
        })
        await answer.body.dump()
      }
    }),
  )
  const ended = Promise.allSettled(flood)
  let most = 0
  const look = async () => {
    most = Math.max(most, await inUse(running, 'lookups', 'sandboxes'))
    return most >= 256
  }
  try {
    await until('the half is held', look)
    for (let times = 0; times < 2; times += 1) {
      const answer = await api.post('/v1/proxy', honest.delegated, {
        credential_id: honest.credentialId,
        url: `${upstream.origin}/echo`,
      })
      t.is(answer.status, 200)
      await look()
    }
  } finally {
    over.abort()
    await ended
  }
  t.is(most, 256, 'sandboxes got no place beyond their half')
})
