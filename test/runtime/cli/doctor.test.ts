/** Own service: its commands have its kms and a second process of its deployment. */
/** Each check of `svc doctor` in its passing and in its failing form, against real servers. */
import { once } from 'node:events'
import { createServer, request, type Server } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import { readFileSync } from 'node:fs'
import type { AddressInfo } from 'node:net'
import type { PeerCertificate } from 'node:tls'
import test, { type ExecutionContext } from 'ava'
import { Command } from 'commander'
import { Client } from 'pg'
import {
  addressChecks,
  judgeCertificate,
  judgeProxy,
} from '../../../runtime/cli/doctor/address-checks.js'
import type { Check, Verdict } from '../../../runtime/cli/doctor/checks.js'
import { databaseChecks, judgeClock } from '../../../runtime/cli/doctor/database-checks.js'
import { listenerChecks } from '../../../runtime/cli/doctor/listener-checks.js'
import { diagnose, doctorCommand } from '../../../runtime/cli/doctor/doctor.js'
import { mailChecks } from '../../../runtime/cli/doctor/service-checks.js'
import { loadSettings } from '../../../runtime/process/configuration/load-settings.js'
import { databaseUrls } from '../../../storage/platform/settings.js'
import { isUnixSocket } from '../../../storage/platform/tls-mode.js'
import { bootstrapped } from '../../support/identity/person.js'
import { openMailServer } from '../../support/operations/mail.js'
import { makeCertificate } from '../../support/service/certificates.js'
import { until } from '../../support/service/watch.js'
import { emptyDatabase, freshDatabase } from '../../support/storage/database.js'
import { sql } from '../../support/storage/sql.js'
import { ownService } from '../../support/service/own-service.js'
import { freePort } from '../../support/service.js'

const running = await ownService({ transport: 'plain_http' })
test.after.always(() => running.end())

/** The configuration of the running service. */
const own = {
  DATABASE_URL: running.db.url,
  SVC_OIDC__ISSUER_URL: running.baseUrl,
  ...running.kms.environment,
}

async function checksWith(
  environment: Record<string, string>,
  caFile?: string,
): Promise<readonly Check[]> {
  return (await diagnose({ environment: { ...own, ...environment }, cwd: '/' }, caFile)).checks
}

/** One check of the name has the verdict and a detail, and says what to change. */
function found(
  t: ExecutionContext,
  checks: readonly Check[],
  name: string,
  verdict: Verdict,
  detail: RegExp,
): void {
  const named = checks.filter((check) => check.name === name)
  const match = named.find((check) => check.verdict === verdict && detail.test(check.detail))
  t.truthy(match, JSON.stringify(named.length > 0 ? named : checks))
  if (match !== undefined) t.is(match.fix === '', verdict === 'ok')
}

async function listening(t: ExecutionContext, server: Server): Promise<number> {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  return (server.address() as AddressInfo).port
}

test('a healthy deployment has no failure, and every check is there', async (t) => {
  const { target, checks } = await diagnose({ environment: own, cwd: '/' })
  t.deepEqual(
    checks.filter(({ verdict }) => verdict === 'fail'),
    [],
  )
  t.true(target.startsWith(`deployment ${running.baseUrl} (from SVC_OIDC__ISSUER_URL), `), target)
  t.true(target.endsWith('(from DATABASE_URL)'), target)
  const names = new Set(checks.map(({ name }) => name))
  for (const name of [
    'configuration',
    'issuer',
    'proxy',
    'trusted_proxies',
    'allowed_hosts',
    'cookies',
    'dns',
    'certificate',
    'egress_url',
    'listener',
    'egress_listener',
    'database',
    'database_role',
    'database_time_limits',
    'database_tls',
    'audiences',
    'client_secrets',
    'mail_addresses',
    'clock',
    'schema',
    'listen',
    'coordination',
    'kms',
    'mail',
  ])
    t.true(names.has(name), name)
  found(t, checks, 'proxy', 'ok', /arrive as/)
  found(t, checks, 'listen', 'ok', /arrive/)
  found(
    t,
    checks,
    'listener',
    'ok',
    /^127\.0\.0\.1 port \d+: plain_http, parser uwebsockets, .* 10 s$/,
  )
  found(t, checks, 'egress_listener', 'ok', /^not configured/)
  found(t, checks, 'egress_url', 'ok', /at the issuer/)
  found(t, checks, 'kms', 'ok', /wraps with/)
  found(t, checks, 'database', 'ok', /^PostgreSQL \d+\.\d+ .*at /)
})

test('what serves the listeners, and the egress address', async (t) => {
  const loadedWith = (environment: Record<string, string>) => {
    const loaded = loadSettings({ environment: { ...own, ...environment }, cwd: '/' })
    if (loaded.tag === 'refused') throw new Error(JSON.stringify(loaded.failures))
    return loaded
  }
  const verified = { tag: 'verified', file: 'uws.node' } as const
  const tls = {
    SVC_SERVER__TRANSPORT: 'tls_h2_only',
    SVC_SERVER__TLS__CERT_PEM_PATH: '/cert.pem',
    SVC_SERVER__TLS__KEY_PEM_PATH: '/key.pem',
    SVC_SERVER__EGRESS_PORT: '8444',
    SVC_SERVER__KEEP_ALIVE_SECS: '30',
  }
  const encrypted = listenerChecks(loadedWith(tls), verified)
  found(t, encrypted, 'listener', 'ok', /tls_h2_only, parser node, .* 30 s$/)
  found(t, encrypted, 'egress_listener', 'ok', /port 8444: tls_http1, parser node, .* 30 s$/)
  const kept = listenerChecks(loadedWith({ SVC_SERVER__KEEP_ALIVE_SECS: '30' }), verified)
  found(t, kept, 'listener', 'warn', /keep_alive_secs has no effect/)
  const open = { SVC_SERVER__HOST: '0.0.0.0', SVC_SERVER__HTTP1_PARSER: 'uwebsockets' }
  found(t, listenerChecks(loadedWith(open), verified), 'listener', 'warn', /505/)
  const refused = { tag: 'refused', reason: 'no pinned hash' } as const
  const fallen = listenerChecks(loadedWith({}), refused)
  found(t, fallen, 'listener', 'ok', /parser node, .* 75 s$/)
  found(t, fallen, 'listener', 'warn', /no pinned hash/)
  const nowhere = { SVC_SERVER__EGRESS_URL: `http://127.0.0.1:${await freePort()}` }
  const lost = { ...own, ...nowhere, SVC_OIDC__ISSUER_URL: `http://localhost:${await freePort()}` }
  const { checks } = await diagnose({ environment: lost, cwd: '/' })
  found(t, checks, 'egress_url', 'fail', /ECONNREFUSED/)
})

test('the command prints the shape as JSON, and exits with 1 when a check fails', async (t) => {
  const run = async (environment: Record<string, string>, ...words: string[]) => {
    const said = { out: '', code: 0 }
    const program = new Command().exitOverride()
    doctorCommand(program, {
      environment,
      cwd: '/',
      out: (text) => (said.out += text),
      exitWith: (code) => (said.code = code),
    })
    await program.parseAsync(['node', 'svc', 'doctor', ...words])
    return said
  }
  const healthy = await run(own, '--json')
  t.is(healthy.code, 0, healthy.out)
  const { target, checks } = JSON.parse(healthy.out) as { target: string; checks: Check[] }
  t.true(target.startsWith('deployment '))
  for (const check of checks)
    t.deepEqual(Object.keys(check).toSorted(), ['detail', 'fix', 'name', 'verdict'])
  t.false(healthy.out.includes('svc_test:'), 'no password')

  const ill = await run({ ...own, SVC_OIDC__ISSUER_URL: `http://localhost:${await freePort()}` })
  t.is(ill.code, 1)
  t.regex(ill.out, /^FAIL {2}issuer .*ECONNREFUSED/m)
  t.regex(ill.out, /^ +-> start the service/m)
  const refused = await run({ SVC_SERVER__PORT: 'x' }, '--json')
  t.is(refused.code, 1)
  found(
    t,
    (JSON.parse(refused.out) as { checks: Check[] }).checks,
    'configuration',
    'fail',
    /server\.port/,
  )
})

test('an issuer that calls itself otherwise', async (t) => {
  const server = createServer((_, response) => response.end('{"issuer":"https://other.example"}'))
  const port = await listening(t, server)
  const checks = await checksWith({ SVC_OIDC__ISSUER_URL: `http://localhost:${port}` })
  found(t, checks, 'issuer', 'fail', /calls itself https:\/\/other\.example/)
  found(t, checks, 'proxy', 'warn', /not checked/)
})

/** A proxy to the service, which changes the headers of requests. */
async function proxied(t: ExecutionContext, change: (headers: Record<string, unknown>) => void) {
  let target = ''
  const server = createServer((incoming, response) => {
    const headers: Record<string, unknown> = { ...incoming.headers }
    change(headers)
    const url = new URL(incoming.url ?? '/', target)
    const outgoing = request(url, { headers: headers as Record<string, string> }, (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.headers)
      answer.pipe(response)
    })
    outgoing.end()
  })
  const issuer = `http://localhost:${await listening(t, server)}`
  const behind = await ownService({
    transport: 'plain_http',
    peerOf: running,
    environment: { SVC_OIDC__ISSUER_URL: issuer, SVC_SERVER__TRUSTED_PROXIES: '["127.0.0.1"]' },
  })
  t.teardown(() => behind.end())
  target = behind.baseUrl
  return { SVC_OIDC__ISSUER_URL: issuer }
}

test('a proxy that rewrites Host, and one that is not trusted', async (t) => {
  const good = await proxied(t, (headers) => (headers['x-forwarded-for'] = '203.0.113.7'))
  const trusted = { SVC_SERVER__TRUSTED_PROXIES: '["127.0.0.1"]' }
  const healthy = await checksWith({ ...good, ...trusted })
  found(t, healthy, 'proxy', 'ok', /arrive as/)
  found(t, healthy, 'trusted_proxies', 'ok', /203\.0\.113\.7/)

  const rewriting = await proxied(t, (headers) => (headers['host'] = 'backend.internal'))
  const checks = await checksWith({ ...rewriting, ...trusted })
  found(t, checks, 'proxy', 'fail', /receives Host backend\.internal/)
  found(t, checks, 'trusted_proxies', 'warn', /no X-Forwarded-For/)
})

test('what the service sees is judged: scheme and trust', (t) => {
  const settings = {
    oidc: { issuer_url: 'https://id.example.com' },
    server: { trusted_proxies: [] as string[] },
  } as unknown as Parameters<typeof judgeProxy>[0]
  const seen = {
    host: 'id.example.com',
    origin: 'http://id.example.com',
    client_address: '10.0.0.2',
    forwarded_for: '203.0.113.7',
  }
  const checks = judgeProxy(settings, seen)
  found(t, checks, 'proxy', 'fail', /takes the scheme .* for http/)
  found(t, checks, 'trusted_proxies', 'fail', /10\.0\.0\.2 .* not trusted/)
  const other = judgeProxy(settings, { ...seen, host: 'svc:8080' })
  found(t, other, 'proxy', 'fail', /Host svc:8080 instead of id\.example\.com/)
})

test('the ticket of the proxy check is not public', async (t) => {
  const at = `${running.baseUrl}/health/request`
  t.is((await fetch(at)).status, 404)
  t.is((await fetch(at, { headers: { 'svc-doctor': 'guess' } })).status, 404)
})

test('hosts and cookies that do not fit the issuer', async (t) => {
  const checks = await checksWith({
    SVC_SERVER__ALLOWED_HOSTS: '["id.example.com"]',
    SVC_SERVER__BASE_DOMAIN: 'example.com',
  })
  found(t, checks, 'allowed_hosts', 'fail', /localhost:[0-9]+, is not in/)
  found(t, checks, 'cookies', 'warn', /outside of server\.base_domain/)
})

test('names that do not resolve', async (t) => {
  const checks = await checksWith({
    SVC_OIDC__ISSUER_URL: 'http://id.nowhere.invalid',
    SVC_SERVER__BASE_DOMAIN: 'nowhere.invalid',
  })
  found(t, checks, 'dns', 'fail', /id\.nowhere\.invalid does not resolve/)
  found(t, checks, 'dns_tenants', 'warn', /\*\.nowhere\.invalid/)
  found(t, checks, 'issuer', 'fail', /./)
})

test('a certificate that no CA signed, and one that is trusted', async (t) => {
  const certificate = makeCertificate()
  t.teardown(() => certificate.remove())
  const server = createTlsServer(
    { cert: certificate.pem, key: readFileSync(certificate.keyPath) },
    (_, response) => response.end('{}'),
  )
  const port = await listening(t, server as unknown as Server)
  const environment = { SVC_OIDC__ISSUER_URL: `https://localhost:${port}` }
  const unknown = await checksWith(environment)
  found(t, unknown, 'certificate', 'fail', /the chain is not trusted/)
  const known = await checksWith(environment, certificate.certPath)
  // It is trusted, and valid for one day.
  found(t, known, 'certificate', 'warn', /expires in 0 days/)
  const ofSettings = await checksWith({
    ...environment,
    SVC_SERVER__TLS__CERT_PEM_PATH: certificate.certPath,
    SVC_SERVER__TLS__KEY_PEM_PATH: certificate.keyPath,
    SVC_SERVER__TLS__CA_PEM_PATH: certificate.certPath,
  })
  found(t, ofSettings, 'certificate', 'warn', /expires in 0 days/)
})

test('a certificate that expires, has expired, or has another name', (t) => {
  const settings = {
    oidc: { issuer_url: 'https://id.example.com' },
    server: { base_domain: 'example.com' },
    tenant: {},
  } as unknown as Parameters<typeof judgeCertificate>[0]
  const nowMs = Date.parse('2026-01-01T00:00:00Z')
  const judge = (validTo: string, names: string, fault: string | null = null) =>
    judgeCertificate(
      settings,
      {
        certificate: {
          subject: { CN: 'x' },
          subjectaltname: names,
          valid_to: validTo,
        } as unknown as PeerCertificate,
        fault,
      },
      nowMs,
    )
  const both = 'DNS:id.example.com, DNS:*.example.com'
  found(t, judge('Jun  1 00:00:00 2026 GMT', both), 'certificate', 'ok', /151 days/)
  found(t, judge('Jan  5 00:00:00 2026 GMT', both), 'certificate', 'warn', /expires in 4 days/)
  found(t, judge('Dec  5 00:00:00 2025 GMT', both), 'certificate', 'fail', /expired/)
  const other = judge('Jun  1 00:00:00 2026 GMT', 'DNS:www.example.com')
  found(t, other, 'certificate', 'fail', /not for id\.example\.com/)
  found(t, other, 'certificate_tenants', 'warn', /\*\.example\.com/)
})

test('audiences from before they were unique and owned are listed', async (t) => {
  found(t, await checksWith({}), 'audiences', 'ok', /one tenant/)
  const { tenantId } = await bootstrapped(running)
  const named = async (audience: string) => {
    const id = crypto.randomUUID()
    await sql(running)`
      insert into applications (tenant_id, id, name, client_type, token_endpoint_auth_method,
      audience,
      grant_types, response_types, scopes, created_at, updated_at)
      values (${tenantId}, ${id}, 'Old', 'public', 'none', ${audience}, '{}', '{}', '{}', now(),
      now())`
    return id
  }
  const claimed = async (audience: string) => {
    await sql(running)`
      insert into audience_claims (audience_key, holder, tenant_id, application_id)
      values (${audience}, 'application', ${tenantId}, ${await named(audience)})`
  }
  await claimed('https://orders.test/')
  await claimed('urn:orders')
  found(t, await checksWith({}), 'audiences', 'ok', /one tenant/)
  const unclaimed = await named('urn:twice')
  await claimed('https://api.example.com/')
  const { checks } = await diagnose({ environment: own, cwd: '/' })
  found(t, checks, 'audiences', 'warn', /https:\/\/api\.example\.com\/ of /)
  found(t, checks, 'audiences', 'warn', new RegExp(`urn:twice of ${unclaimed}`))
})

test('accounts whose address another account has are listed', async (t) => {
  found(t, await checksWith({}), 'mail_addresses', 'ok', /the key of one account/)
  await sql(
    running.db.database,
    `insert into accounts (id, email, email_key, typed_email, display_name, created_at, updated_at)
     values (gen_random_uuid(), 'ada@xn--bcher-kva.works', 'ada@xn--bcher-kva.works/x', 'ada@bücher.works', '', now(), now())`,
  )
  found(t, await checksWith({}), 'mail_addresses', 'warn', /ada@bücher\.works of [0-9a-f-]{36}/)
})

test('applications with URLs that the service does not call are listed', async (t) => {
  const { clientId, tenantSlug } = await bootstrapped(running)
  const stores = (member: string, url: string | null) =>
    sql(running, `update applications set ${member} = $1 where id = $2`, [url, clientId])
  const of = `of ${clientId} \\(${tenantSlug}\\)`
  for (const [member, url, isRight] of [
    ['jwks_uri', 'https://keys.example.com/a?b=c', true],
    ['jwks_uri', 'https://10.0.0.1/keys', false],
    ['jwks_uri', 'https://me@keys.example.com/', false],
    ['backchannel_logout_uri', 'https://app.internal/logout', false],
    ['logo_uri', 'https://app.internal/logo.png#a', true],
    ['logo_uri', 'https:app.example.com/logo.png', false],
  ] as const) {
    await stores(member, url)
    const { checks } = await diagnose({ environment: own, cwd: '/' })
    const listed = isRight ? /may be called/ : new RegExp(`${member} ${of}`)
    found(t, checks, 'application_urls', isRight ? 'ok' : 'warn', listed)
    await stores(member, null)
  }
})

test('clients that authenticate otherwise than registered are listed', async (t) => {
  found(t, await checksWith({}), 'client_secrets', 'ok', /as it is registered/)
  const { clientId, clientSecret, tenantSlug } = await bootstrapped(running)
  const form = {
    grant_type: 'client_credentials',
    client_id: clientId,
    client_secret: clientSecret,
  }
  const answer = await fetch(`${running.baseUrl}/oauth/token`, {
    method: 'POST',
    body: new URLSearchParams(form),
  })
  t.is(answer.status, 200)
  await until('it is noted', async () => {
    const { checks } = await diagnose({ environment: own, cwd: '/' })
    const { verdict, detail } = checks.find(({ name }) => name === 'client_secrets')!
    return verdict === 'warn' && detail.includes(`${clientId} (${tenantSlug}, client_secret_basic)`)
  })
  const basic = Buffer.from(`${clientId}:${clientSecret}`).toString('base64')
  await sql(running)`update applications set secret_misplaced_at = null`
  const right = await fetch(`${running.baseUrl}/oauth/token`, {
    method: 'POST',
    headers: { authorization: `Basic ${basic}` },
    body: new URLSearchParams({ grant_type: 'client_credentials' }),
  })
  t.is(right.status, 200)
  found(t, await checksWith({}), 'client_secrets', 'ok', /as it is registered/)
})

test('a database that is away, empty, or has a role with too many rights', async (t) => {
  const away = `postgres://svc:hunter2@127.0.0.1:${await freePort()}/svc`
  const checks = await checksWith({ DATABASE_URL: away })
  found(t, checks, 'database', 'fail', /cannot use database\.url at 127\.0\.0\.1:/)
  t.false(JSON.stringify(checks).includes('hunter2'))

  const empty = await emptyDatabase(t)
  const unmigrated = await checksWith({ DATABASE_URL: empty.url })
  found(t, unmigrated, 'schema', 'fail', /the database lacks/)
  found(t, unmigrated, 'coordination', 'fail', /./)

  const { superuserUrl } = running.db
  const mighty = await checksWith({ DATABASE_URL: superuserUrl })
  found(t, mighty, 'database_role', 'warn', /superuser or has BYPASSRLS/)
})

test('a role without rights on the tables', async (t) => {
  const fresh = await freshDatabase(t)
  const admin = new Client({ connectionString: fresh.superuserUrl })
  await admin.connect()
  await admin.query(`drop role if exists svc_doctor_weak`)
  await admin.query(`create role svc_doctor_weak login password 'weak'`)
  t.teardown(async () => {
    await admin.query('drop role svc_doctor_weak')
    await admin.end()
  })
  const weak = new URL(fresh.url)
  weak.username = 'svc_doctor_weak'
  weak.password = 'weak'
  const checks = await checksWith({ DATABASE_URL: fresh.url, DATABASE_AUTH_URL: weak.href })
  found(t, checks, 'database_role', 'fail', /svc_doctor_weak of database\.auth_url lacks rights on/)
})

test('a listener that hears nothing', async (t) => {
  const other = await freshDatabase(t)
  const checks = await checksWith({ DATABASE_LISTENER_URL: other.url })
  found(t, checks, 'listen', 'fail', /does not arrive/)
})

test('clocks that differ', (t) => {
  t.is(judgeClock(1_000_000, 1_000_400).verdict, 'ok')
  t.is(judgeClock(1_000_000, 1_005_000).verdict, 'warn')
  t.is(judgeClock(1_000_000, 1_090_000).verdict, 'fail')
})

test('production demands more than other deployments', async (t) => {
  const refused = await checksWith({ SVC_SECURITY__PRODUCTION: 'true' })
  found(t, refused, 'configuration', 'fail', /server\.transport/)
  found(t, refused, 'configuration', 'fail', /database\.require_ssl/)

  const loaded = loadSettings({ environment: own, cwd: '/', servesPlane: false })
  if (loaded.tag === 'refused') return t.fail()
  const { settings, plane, dataDir } = loaded
  const url = running.db.superuserUrl
  const urls = databaseUrls({ ...settings.database, url })
  const patient = { settings, plane, dataDir, isProduction: true, urls, ca: undefined }
  const ofDatabase = await databaseChecks(patient)
  found(t, ofDatabase, 'database_role', 'fail', /BYPASSRLS/)
  if (!isUnixSocket(url)) found(t, ofDatabase, 'database_tls', 'fail', /not encrypted/)
  const ofAddress = await addressChecks(patient, undefined, 'ticket')
  found(t, ofAddress, 'certificate', 'fail', /not https/)
  found(t, ofAddress, 'allowed_hosts', 'fail', /empty/)
  found(t, await mailChecks(patient), 'mail', 'fail', /email\.provider is log/)
})

test('a kms that does not answer', async (t) => {
  const checks = await checksWith({ SVC_KMS__SOCKET_PATH: '/tmp/svc-no-such-kms.sock' })
  found(t, checks, 'kms', 'fail', /./)
})

test('a mail server that is away, without STARTTLS, and one that works', async (t) => {
  const smtp = (port: number) => ({
    SVC_EMAIL__PROVIDER: 'smtp',
    SVC_EMAIL__SMTP_HOST: '127.0.0.1',
    SVC_EMAIL__SMTP_PORT: String(port),
    SVC_EMAIL__FROM: 'svc <no-reply@example.com>',
  })
  found(t, await checksWith(smtp(await freePort())), 'mail', 'fail', /ECONNREFUSED/)
  const open = await openMailServer()
  t.teardown(() => open.close())
  found(t, await checksWith(smtp(open.port)), 'mail', 'fail', /STARTTLS|TLS/i)
  const good = await openMailServer({ starttls: true })
  t.teardown(() => good.close())
  const checks = await checksWith(good.environment as Record<string, string>)
  found(t, checks, 'mail', 'ok', /accepts EHLO and STARTTLS/)
  t.is(good.received.length, 0, 'no message is sent')
})

test('a coordination backend that is away', async (t) => {
  const port = await freePort()
  const redis = await checksWith({
    SVC_DEPLOYMENT__COORDINATION_BACKEND: 'redis',
    SVC_REDIS__URL: `redis://127.0.0.1:${port}`,
  })
  found(t, redis, 'coordination', 'fail', /redis/)
  const memcached = await checksWith({
    SVC_DEPLOYMENT__COORDINATION_BACKEND: 'memcached',
    SVC_MEMCACHED__ADDRESS: `127.0.0.1:${port}`,
  })
  found(t, memcached, 'coordination', 'fail', /memcached/)
})
