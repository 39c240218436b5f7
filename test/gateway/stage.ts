/** A gateway on a real socket in front of small actors, and clients for each transport. */
import { request as httpRequest } from 'node:http'
import { request as httpsRequest } from 'node:https'
import { connect as connectHttp2, type ClientHttp2Session } from 'node:http2'
import type { TestFn } from 'ava'
import { z } from 'zod'
import type { Principal } from '../../actors/domain/principal.js'
import { rateLimits } from '../../actors/operations/rate-limits/protocol.js'
import {
  type Authenticate,
  tokens,
  type TokensProtocol,
} from '../../actors/oauth/tokens/protocol.js'
import { type GatewayOptions, openGateway, type Gateway } from '../../gateway/gateway.js'
import { IN_PROGRESS_MAX } from '../../gateway/transports/bounds.js'
import { openapiSettings, serverSettings } from '../../gateway/settings.js'
import { defineActor, type ActorRef } from '../../runtime/kernel/actor.js'
import { type Clock, systemClock } from '../../runtime/kernel/clock.js'
import { spawnInline } from '../../runtime/kernel/inline.js'
import { silentLogger } from '../../runtime/kernel/log.js'
import { createMetrics } from '../../runtime/kernel/metrics/metrics.js'
import { systemRandom } from '../../runtime/kernel/random.js'
import { type Certificate, makeCertificate } from '../support/service/certificates.js'
import { IS_LONG } from '../support/runs.js'
import { probeActor, type ProbeNotes, probeRoutes } from './probe.js'

/** `tls` is HTTP/1.1 over TLS, on a listener that also offers HTTP/2, and `uws_tls` is `tls_http1`. */
export type Transport = 'uws' | 'uws_tls' | 'http1' | 'http2' | 'tls'
export const TRANSPORTS: readonly Transport[] = [
  'uws',
  'http1',
  'http2',
  'tls',
  // The parser and the exchange belong to `uws`.
  ...(IS_LONG ? (['uws_tls'] as const) : []),
]
/** The transports whose HTTP/1.1 parser is uWebSockets. */
export const UWS_PARSED = ['uws', 'uws_tls'] as const
export const isUws = (transport: Transport): boolean =>
  UWS_PARSED.some((known) => known === transport)
/** The transports whose HTTP/1.1 parser is node:http. */
export const NODE_PARSED = ['http1', 'tls'] as const

export type Call = {
  readonly method?: string
  readonly path: string
  readonly headers?: Readonly<Record<string, string | readonly string[]>>
  readonly body?: string | Uint8Array
  readonly signal?: AbortSignal
}
export type Reply = {
  readonly status: number
  readonly headers: Readonly<Record<string, string | undefined>>
  readonly text: string
  json(): Record<string, never> & { [name: string]: unknown }
}

export type StageOptions = {
  readonly transport: Transport
  readonly server?: Record<string, unknown>
  readonly openapi?: Record<string, unknown>
  readonly issuer?: string
  readonly clock?: Clock
  readonly notStarted?: boolean
  readonly throttle?: ActorRef<never>
  readonly gateway?: Partial<GatewayOptions>
}

export interface Stage {
  readonly url: string
  readonly port: number
  readonly transport: Transport
  readonly gateway: Gateway
  readonly notes: ProbeNotes
  readonly certificate: Certificate | null
  call(call: Call): Promise<Reply>
  close(): Promise<void>
}

export const PRINCIPAL: Principal = {
  subject: 'agent-1',
  subjectType: 'agent',
  tenantId: 'tenant-1',
  organizationId: null,
  clientId: 'agent-1',
  scopes: ['probe:read'],
  audience: ['https://id.test'],
  actors: [],
  delegationId: null,
  sessionId: null,
  acr: null,
  authTimeSecs: null,
  jkt: null,
  tokenId: 'token-1',
  expiresAtSecs: 4_000_000_000,
}

/** Valid tokens are `good`, `expired`, `human`, `delegated`, `metrics` and `id-<n>`. */
function judge({ token, scheme, dpopProof }: Authenticate): ReturnType<typeof verdictOf> {
  return verdictOf(token, scheme, dpopProof)
}

function verdictOf(token: string, scheme: string, dpopProof: string | null) {
  const authenticated = (changes: Partial<Principal>) =>
    ({ tag: 'authenticated', principal: { ...PRINCIPAL, ...changes } }) as const
  const refused = (
    error: 'unauthorized' | 'token_expired' | 'use_dpop_nonce',
    dpopNonce?: string,
  ) => ({ tag: 'refused', error, description: `the token is "${token}"`, dpopNonce }) as const
  if (scheme === 'DPoP' && dpopProof === null) return refused('use_dpop_nonce', 'nonce-1')
  if (token === 'good') return authenticated({})
  if (token.startsWith('id-')) return authenticated({ tokenId: token })
  if (token === 'human') return authenticated({ subjectType: 'human' })
  if (token === 'metrics')
    return authenticated({ subjectType: 'service', scopes: ['metrics:read'] })
  if (token === 'scopeless') return authenticated({ scopes: [] })
  if (token === 'delegated') {
    // The subject is the user, the agent is the actor.
    return authenticated({
      subjectType: 'human',
      actors: [{ sub: 'agent-2', subjectType: 'agent' }],
    })
  }
  return refused(token === 'expired' ? 'token_expired' : 'unauthorized')
}

const tokensActor = defineActor<Pick<TokensProtocol, 'authenticate'>, Record<string, never>>({
  address: { ...tokens, idempotent: [] } as never,
  asks: {},
  mailbox: { capacity: 1024, inflightMax: 64 },
  create: () => ({ authenticate: async (message) => judge(message) }),
})

/** `server.transport` of those with a certificate. */
const OVER_TLS: Readonly<Partial<Record<Transport, string>>> = {
  http2: 'tls_h2_only',
  tls: 'tls',
  uws_tls: 'tls_http1',
}

export async function openStage(options: StageOptions): Promise<Stage> {
  const { transport, issuer = 'https://id.test', clock = systemClock } = options
  const certificate = transport in OVER_TLS ? makeCertificate() : null
  const tls =
    certificate === null
      ? {}
      : {
          transport: OVER_TLS[transport],
          tls: { cert_pem_path: certificate.certPath, key_pem_path: certificate.keyPath },
        }
  const server = z.object(serverSettings.shape).parse({
    egress_url: issuer,
    errors_base_url: issuer,
    drain_secs: 0,
    port: 0,
    http1_parser: isUws(transport) ? 'uwebsockets' : 'node',
    endpoint_throttle: {},
    ...tls,
    ...options.server,
  })
  const openapi = z.object(openapiSettings.shape).parse({ exposure: 'public', ...options.openapi })
  const notes: ProbeNotes = { ran: [], aborted: 0, release: new Set() }
  const probe = spawnInline(probeActor, { notes })
  const judge = spawnInline(tokensActor, {})
  const refs = new Map<string, ActorRef<never>>([
    ['probe', probe.ref as unknown as ActorRef<never>],
    ['tokens', judge.ref as unknown as ActorRef<never>],
  ])
  if (options.throttle !== undefined) refs.set(rateLimits.name, options.throttle)
  const gateway = openGateway({
    server: server as GatewayOptions['server'],
    openapi: openapi as GatewayOptions['openapi'],
    issuer,
    routes: probeRoutes,
    refs,
    plane: 'all',
    log: silentLogger,
    metrics: createMetrics(),
    clock,
    random: systemRandom(systemClock),
    ...options.gateway,
  })
  const { url, port } = await gateway.listen()
  if (options.notStarted !== true) gateway.started()
  /** Sessions with the number of their open streams, of which a gateway works on 16. */
  const sessions: { readonly session: ClientHttp2Session; open: number }[] = []
  const openSession = () => {
    const session = connectHttp2(`https://localhost:${port}`, { ca: certificate!.pem })
    session.on('error', () => undefined)
    sessions.push({ session, open: 0 })
    return sessions.at(-1)!
  }
  return {
    url,
    port,
    transport,
    gateway,
    notes,
    certificate,
    async call(call) {
      if (transport !== 'http2') return callHttp1(port, call, certificate?.pem)
      const used =
        sessions.find(
          ({ session: { closed, destroyed }, open }) =>
            !closed && !destroyed && open < IN_PROGRESS_MAX,
        ) ?? openSession()
      used.open += 1
      return callHttp2(used.session, call).finally(() => (used.open -= 1))
    },
    async close() {
      for (const { session } of sessions) session.destroy()
      for (const release of notes.release) release()
      await gateway.close()
      await probe.stop()
      await judge.stop()
      certificate?.remove()
    },
  }
}

function reply(status: number, headers: Reply['headers'], body: Buffer): Reply {
  const text = body.toString('utf8')
  return { status, headers, text, json: () => JSON.parse(text) as never }
}

/** @param ca sends the request over TLS and trusts this certificate (PEM). */
export function callHttp1(port: number, call: Call, ca?: string): Promise<Reply> {
  const { method = 'GET', path, headers = {}, body, signal } = call
  return new Promise((resolve, reject) => {
    const send = ca === undefined ? httpRequest : httpsRequest
    const outgoing = send(
      {
        ...(ca === undefined ? {} : { ca, servername: 'localhost' }),
        host: '127.0.0.1',
        port,
        method,
        path,
        agent: false,
        headers: {
          host: 'id.test',
          ...(body === undefined ? {} : { 'content-length': Buffer.byteLength(body) }),
          ...(headers as Record<string, string>),
        },
        ...(signal === undefined ? {} : { signal }),
      },
      (incoming) => {
        const chunks: Buffer[] = []
        incoming.on('data', (chunk: Buffer) => chunks.push(chunk))
        incoming.on('error', reject)
        incoming.on('end', () =>
          resolve(
            reply(
              incoming.statusCode ?? 0,
              Object.fromEntries(
                Object.entries(incoming.headers).map(([name, value]) => [name, String(value)]),
              ),
              Buffer.concat(chunks),
            ),
          ),
        )
      },
    )
    outgoing.on('error', reject)
    outgoing.end(body)
  })
}

function callHttp2(session: ClientHttp2Session, call: Call): Promise<Reply> {
  const { method = 'GET', path, headers = {}, body, signal } = call
  const { host = 'id.test', ...others } = headers
  return new Promise((resolve, reject) => {
    const stream = session.request(
      {
        ':method': method,
        ':path': path,
        ':authority': String(host),
        ...(others as Record<string, string>),
      },
      { endStream: body === undefined, ...(signal === undefined ? {} : { signal }) },
    )
    let status = 0
    let fields: Reply['headers'] = {}
    const chunks: Buffer[] = []
    stream.on('response', (received) => {
      status = received[':status'] ?? 0
      fields = Object.fromEntries(
        Object.entries(received).map(([name, value]) => [name, String(value)]),
      )
    })
    stream.on('data', (chunk: Buffer) => chunks.push(chunk))
    stream.on('error', reject)
    stream.on('close', () => {
      if (status === 0) reject(new Error('the stream closed without an answer'))
      else resolve(reply(status, fields, Buffer.concat(chunks)))
    })
    if (body !== undefined) stream.end(body)
  })
}

export type OnTransport = {
  readonly transport: Transport
  /** The title with the transport in front. */
  on(title: string): string
  stage(): Stage
  call(call: Call): Promise<Reply>
  postJson(path: string, body: unknown, headers?: Record<string, string>): Promise<Reply>
}

/** Defines the same tests for all transports, with one stage per file and transport. */
export function onEachTransport(
  test: TestFn,
  options: Omit<StageOptions, 'transport'> | (() => Omit<StageOptions, 'transport'>),
  define: (given: OnTransport) => void,
  transports: readonly Transport[] = TRANSPORTS,
): void {
  for (const transport of transports) {
    let opened: Stage | undefined
    test.before(`${transport}: open`, async () => {
      opened = await openStage({
        ...(typeof options === 'function' ? options() : options),
        transport,
      })
    })
    test.after.always(`${transport}: close`, async () => opened?.close())
    const call = (request: Call) => opened!.call(request)
    define({
      transport,
      on: (title) => `${transport}: ${title}`,
      stage: () => opened!,
      call,
      postJson: (path, body, headers = {}) =>
        call({
          method: 'POST',
          path,
          headers: { 'content-type': 'application/json', ...headers },
          body: JSON.stringify(body),
        }),
    })
  }
}
