/** Checks of the public address: issuer, proxy, hosts, cookies, DNS and certificate. */
import { lookup } from 'node:dns/promises'
import {
  checkServerIdentity,
  connect,
  type ConnectionOptions,
  type PeerCertificate,
  rootCertificates,
} from 'node:tls'
import { Agent, request } from 'undici'
import { doctorKey } from '../../../actors/operations/health/protocol.js'
import { hostPolicy, withoutPort } from '../../../gateway/request/hosts.js'
import type { Coordination } from '../../../storage/platform/coordination/port.js'
import { systemClock } from '../../kernel/clock.js'
import {
  ANSWER_MS,
  type Check,
  fail,
  failInProduction,
  guarded,
  ok,
  type Patient,
  warn,
  within,
} from './checks.js'

const DISCOVERY = '/.well-known/openid-configuration'
const TICKET_SECS = 60
const SKEW_FAIL_SECS = 60
const EXPIRY_WARN_DAYS = 21
const DAY_MS = 86_400_000
/** A label that no tenant has. */
const PROBE_LABEL = 'svc-doctor-probe'
const LOCAL_NAME = /(^|\.)localhost$/
const IS_ADDRESS = /^(\[.*\]|[0-9.]+)$/

type Answer = {
  readonly status: number
  readonly body: Readonly<Record<string, unknown>>
  readonly date: string | undefined
}

/** The checks of the address in `oidc.issuer_url`. */
export async function addressChecks(
  patient: Patient,
  coordination: Pick<Coordination, 'put' | 'forget'> | undefined,
  ticket: string,
): Promise<readonly Check[]> {
  const { ca } = patient
  const agent = new Agent({ connect: ca === undefined ? {} : { ca: [...rootCertificates, ca] } })
  try {
    const issuer = await issuerChecks(patient, agent)
    return [
      ...issuer.checks,
      ...(await proxyChecks(patient, agent, issuer.isReached ? coordination : undefined, ticket)),
      hostsCheck(patient),
      cookieCheck(patient),
      ...(await dnsChecks(patient)),
      ...(await certificateChecks(patient)),
      ...(await egressCheck(patient, agent)),
    ]
  } finally {
    await agent.destroy()
  }
}

async function ask(
  agent: Agent,
  url: string,
  headers: Readonly<Record<string, string>> = {},
): Promise<Answer> {
  const answer = await request(url, {
    dispatcher: agent,
    headers,
    signal: AbortSignal.timeout(ANSWER_MS),
  })
  const text = await answer.body.text()
  const { date } = answer.headers
  let body: unknown
  try {
    body = JSON.parse(text)
  } catch {
    body = {}
  }
  return {
    status: answer.statusCode,
    body: (body ?? {}) as Answer['body'],
    date: Array.isArray(date) ? date[0] : date,
  }
}

async function issuerChecks(
  { settings }: Patient,
  agent: Agent,
): Promise<{ readonly isReached: boolean; readonly checks: readonly Check[] }> {
  const issuer = settings.oidc.issuer_url
  let isReached = false
  const checks = await guarded(
    'issuer',
    `start the service, and make ${issuer} reachable from this machine`,
    async () => {
      const { status, body, date } = await ask(agent, issuer + DISCOVERY)
      if (status !== 200)
        return fail(
          'issuer',
          `${issuer}${DISCOVERY} answers ${status}`,
          'route the address of the issuer to this service, without a path or a login in front',
        )
      if (body['issuer'] !== issuer)
        return fail(
          'issuer',
          `the service at ${issuer} calls itself ${String(body['issuer'])}`,
          'set oidc.issuer_url to the public address, the same in all processes',
        )
      isReached = true
      return [ok('issuer', `${issuer} answers with the same issuer`), ...clockOf(date)]
    },
  )
  return { isReached, checks }
}

/** The clock of the service, from its Date header. */
function clockOf(date: string | undefined): readonly Check[] {
  const theirs = date === undefined ? Number.NaN : Date.parse(date)
  if (Number.isNaN(theirs)) return []
  const skewSecs = Math.abs(systemClock.now().getTime() - theirs) / 1_000
  return skewSecs > SKEW_FAIL_SECS
    ? [
        fail(
          'clock',
          `the service's clock differs by ${Math.round(skewSecs)} s from this machine's`,
          'synchronise both clocks with NTP',
        ),
      ]
    : []
}

async function proxyChecks(
  { settings }: Patient,
  agent: Agent,
  coordination: Pick<Coordination, 'put' | 'forget'> | undefined,
  ticket: string,
): Promise<readonly Check[]> {
  if (coordination === undefined)
    return [
      warn(
        'proxy',
        'not checked: the service or the coordination backend is unreachable',
        'repair that first',
      ),
    ]
  return guarded('proxy', 'repair the coordination backend first', async () => {
    const { issuer_url: issuer } = settings.oidc
    await coordination.put(doctorKey(ticket), Buffer.from('1'), TICKET_SECS)
    try {
      const { status, body } = await ask(agent, `${issuer}/health/request`, {
        'svc-doctor': ticket,
      })
      if (status === 421)
        return fail(
          'proxy',
          'the proxy sends a Host that the service does not serve',
          'let the proxy forward Host unchanged (nginx: proxy_set_header Host $host)',
        )
      if (status !== 200)
        return fail(
          'proxy',
          `the service does not find the ticket of this command: ${status}`,
          'use the configuration of the running service: database and coordination backend',
        )
      return judgeProxy(settings, body)
    } finally {
      await coordination.forget(doctorKey(ticket))
    }
  })
}

/** Compares what the service saw with what the client sent. Exported for tests. */
export function judgeProxy(
  { oidc, server }: Pick<Patient['settings'], 'oidc' | 'server'>,
  seen: Readonly<Record<string, unknown>>,
): readonly Check[] {
  const issuer = new URL(oidc.issuer_url)
  const host = String(seen['host'])
  const origin = String(seen['origin'])
  const client = String(seen['client_address'])
  const forwarded = seen['forwarded_for']
  const checks: Check[] = []
  if (new URL(`${issuer.protocol}//${host}`).host !== issuer.host)
    checks.push(
      fail(
        'proxy',
        `the service receives Host ${host} instead of ${issuer.host}`,
        'let the proxy forward Host unchanged (nginx: proxy_set_header Host $host)',
      ),
    )
  if (!origin.startsWith(issuer.protocol))
    checks.push(
      fail(
        'proxy',
        `the service takes the scheme of a request to ${issuer.origin} for ${origin.split(':')[0]}`,
        'send X-Forwarded-Proto, and list the proxy in server.trusted_proxies',
      ),
    )
  if (checks.length === 0) checks.push(ok('proxy', `Host and scheme arrive as ${issuer.origin}`))
  return [...checks, judgeForwarded(server.trusted_proxies, client, forwarded)]
}

function judgeForwarded(trusted: readonly string[], client: string, forwarded: unknown): Check {
  const name = 'trusted_proxies'
  if (typeof forwarded !== 'string')
    return trusted.length === 0
      ? ok(name, `no proxy: the client's address is ${client}`)
      : warn(
          name,
          'server.trusted_proxies is set, and the request has no X-Forwarded-For',
          'let the proxy send X-Forwarded-For, or remove server.trusted_proxies',
        )
  // Without trust the client's address is the proxy's address, which the proxy does not write.
  const hops = forwarded.split(',').map((hop) => hop.trim())
  return hops.some(
    (hop) => hop === client || hop.startsWith(`[${client}]`) || hop.startsWith(`${client}:`),
  )
    ? ok(name, `the client's address ${client} comes from X-Forwarded-For`)
    : fail(
        name,
        `the proxy at ${client} sends X-Forwarded-For and is not trusted: all its clients share one rate limit`,
        `add ${client} to server.trusted_proxies`,
      )
}

/** The address of the egress proxy, where it is another one than the issuer. */
async function egressCheck({ settings }: Patient, agent: Agent): Promise<readonly Check[]> {
  const name = 'egress_url'
  const issuer = settings.oidc.issuer_url
  // `npm start` chooses the address, and the service names it.
  const named = await ask(agent, `${issuer}/api/v1/capabilities`).catch(() => undefined)
  const url = String(named?.body['egress_url'] ?? settings.server.egress_url)
  if (url === issuer) return [ok(name, 'the egress proxy is at the issuer')]
  const fix = `make ${url} reachable from clients, or correct server.egress_url`
  return guarded(name, fix, async () => {
    const { status } = await ask(agent, `${url}/health/live`)
    return status === 200
      ? ok(name, `${url} answers`)
      : fail(name, `${url}/health/live answers ${status}`, fix)
  })
}

function hostsCheck(patient: Patient): Check {
  const { server, oidc } = patient.settings
  const name = 'allowed_hosts'
  const { host } = new URL(oidc.issuer_url)
  if (server.allowed_hosts.length === 0)
    return failInProduction(
      patient,
      name,
      'server.allowed_hosts is empty: every Host is served',
      `set server.allowed_hosts to ["${withoutPort(host)}"]`,
    )
  return hostPolicy(server.allowed_hosts, server.base_domain)(host) === 'served'
    ? ok(name, `${host} is served`)
    : fail(
        name,
        `the host of the issuer, ${host}, is not in server.allowed_hosts`,
        `add "${withoutPort(host)}" to server.allowed_hosts`,
      )
}

/** Browsers send cookies of the issuer to its own host. Tenants are served below base_domain. */
function cookieCheck(patient: Patient): Check {
  const { server, oidc } = patient.settings
  const name = 'cookies'
  const { hostname, protocol } = new URL(oidc.issuer_url)
  const domain = server.base_domain.toLowerCase()
  if (hostname !== domain && !hostname.endsWith(`.${domain}`))
    return failInProduction(
      patient,
      name,
      `the issuer ${hostname} is outside of server.base_domain ${domain}: browsers treat its pages as another site`,
      `set server.base_domain to ${hostname}, or serve the issuer below ${domain}`,
    )
  if (protocol !== 'https:' && !LOCAL_NAME.test(hostname))
    return failInProduction(
      patient,
      name,
      'browsers do not send Secure cookies to an http address',
      'use an https address in oidc.issuer_url',
    )
  return ok(name, `${hostname} is within ${domain}`)
}

async function dnsChecks({ settings }: Patient): Promise<readonly Check[]> {
  const { hostname } = new URL(settings.oidc.issuer_url)
  if (LOCAL_NAME.test(hostname) || IS_ADDRESS.test(hostname))
    return [ok('dns', `${hostname} needs no DNS`)]
  const domain = settings.server.base_domain
  const resolve = async (name: string) =>
    within(ANSWER_MS, lookup(name, { all: true })).then(
      (found) => found.map(({ address }) => address),
      () => null,
    )
  const [own, tenants] = await Promise.all([resolve(hostname), resolve(`${PROBE_LABEL}.${domain}`)])
  const checks: Check[] = []
  checks.push(
    own === null
      ? fail('dns', `${hostname} does not resolve`, `create an A or AAAA record for ${hostname}`)
      : ok('dns', `${hostname} is ${own.join(', ')}`),
  )
  if (settings.tenant.default_tenant_slug === undefined)
    checks.push(
      tenants === null
        ? warn(
            'dns_tenants',
            `*.${domain} does not resolve: tenants have no hosts`,
            `create a wildcard record *.${domain}, or set tenant.default_tenant_slug`,
          )
        : ok('dns_tenants', `*.${domain} is ${tenants.join(', ')}`),
    )
  return checks
}

async function certificateChecks(patient: Patient): Promise<readonly Check[]> {
  const name = 'certificate'
  const { hostname, port, protocol } = new URL(patient.settings.oidc.issuer_url)
  if (protocol !== 'https:')
    return [
      patient.isProduction
        ? fail(name, 'the issuer is not https', 'set oidc.issuer_url to an https address')
        : ok(name, 'the issuer is not https, which production requires'),
    ]
  return guarded(name, 'make the TLS listener reachable from this machine', async () => {
    const seen = await within(ANSWER_MS, peerOf(hostname, Number(port || '443'), patient.ca))
    return judgeCertificate(patient.settings, seen, systemClock.now().getTime())
  })
}

type Peer = {
  readonly certificate: PeerCertificate
  /** Why the chain is not trusted. Null when it is. */
  readonly fault: string | null
}

function peerOf(host: string, port: number, ca: string | undefined): Promise<Peer> {
  return new Promise((resolve, reject) => {
    const options: ConnectionOptions = {
      host,
      port,
      ...(IS_ADDRESS.test(host) ? {} : { servername: host }),
      // The faults are judged below, each with its fix.
      rejectUnauthorized: false,
      ALPNProtocols: ['h2', 'http/1.1'],
      ...(ca === undefined ? {} : { ca: [...rootCertificates, ca] }),
    }
    const socket = connect(options)
    socket.setTimeout(ANSWER_MS, () => socket.destroy(new Error('no TLS handshake in time')))
    socket.once('error', reject)
    socket.once('secureConnect', () => {
      const { authorizationError } = socket
      const fault = socket.authorized ? null : String(authorizationError)
      resolve({ certificate: socket.getPeerCertificate(), fault })
      socket.destroy()
    })
  })
}

/** Judges names, expiry and chain. Exported for tests. */
export function judgeCertificate(
  { oidc, server, tenant }: Pick<Patient['settings'], 'oidc' | 'server' | 'tenant'>,
  { certificate, fault }: Peer,
  nowMs: number,
): readonly Check[] {
  const name = 'certificate'
  const { hostname } = new URL(oidc.issuer_url)
  const until = Date.parse(certificate.valid_to)
  const days = Math.floor((until - nowMs) / DAY_MS)
  const checks: Check[] = []
  if (until <= nowMs)
    checks.push(fail(name, `it expired at ${certificate.valid_to}`, 'renew the certificate'))
  else if (days < EXPIRY_WARN_DAYS)
    checks.push(warn(name, `it expires in ${days} days`, 'renew the certificate'))
  if (checkServerIdentity(hostname, certificate) !== undefined)
    checks.push(
      fail(name, `it is not for ${hostname}`, `get a certificate with the name ${hostname}`),
    )
  if (fault !== null && fault !== 'CERT_HAS_EXPIRED' && !fault.startsWith('ERR_TLS_CERT_ALTNAME'))
    checks.push(
      fail(
        name,
        `the chain is not trusted: ${fault}`,
        'serve the intermediate certificates too, and trust a private CA with --ca-file or NODE_EXTRA_CA_CERTS',
      ),
    )
  if (checks.length === 0) checks.push(ok(name, `valid for ${hostname}, ${days} days left`))
  const tenantHost = `${PROBE_LABEL}.${server.base_domain}`
  if (
    tenant.default_tenant_slug === undefined &&
    checkServerIdentity(tenantHost, certificate) !== undefined
  )
    checks.push(
      warn(
        'certificate_tenants',
        `it is not for *.${server.base_domain}: hosts of tenants have no certificate here`,
        `get a certificate with *.${server.base_domain} too, or set tenant.default_tenant_slug`,
      ),
    )
  return checks
}
