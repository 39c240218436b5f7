/**
 * The loopback proxy of a child's programs. It terminates TLS for every host with a certificate of the
 * throw-away authority and relays requests to the service, which injects the secret. A password keeps
 * other users of the machine out.
 */
import { timingSafeEqual } from 'node:crypto'
import { once } from 'node:events'
import {
  createServer,
  type IncomingMessage,
  request as plainRequest,
  type Server,
  type ServerResponse,
} from 'node:http'
import { type AddressInfo, connect, isIP, type Socket } from 'node:net'
import { type Duplex, PassThrough, type Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { TLSSocket } from 'node:tls'
import { normalizeHostname } from '../../../actors/domain/hostnames.js'
import { METHODS } from '../../../actors/domain/vault/egress.js'
import { reasonOf } from '../../kernel/text/reasons.js'
import type { Random } from '../../kernel/random.js'
import type { ThrowawayAuthority } from './authority.js'
import type { CredentialChoice } from './credential-choice.js'
import { endAfter, Refusal, refuse } from './refusal.js'
import { APPROVAL_FIELD, NotApproved, readApproval, untilApproved } from '../client/approval.js'
import type { HeaderPairs } from '../client/egress-fields.js'
import type { OutboundCall, ServiceAnswer, ServiceCalls } from './service-calls.js'

const USER = 'svc'
const PASSWORD_BYTES = 24
const HTTPS_PORT = 443
/** Keep-alive of idle connections. */
const KEEP_ALIVE_MS = 60_000
/** Limit of the service. */
const BODY_BYTES_MAX = 32 * 1024 * 1024
/** Response fields that apply to the connection or the origin of the service. */
const NOT_RELAYED = new Set([
  'alt-svc',
  'connection',
  'keep-alive',
  'set-cookie',
  'strict-transport-security',
  'transfer-encoding',
])

type ProxyNeeds = {
  readonly authority: ThrowawayAuthority
  readonly choice: CredentialChoice
  readonly calls: ServiceCalls
  /** Hosts to tunnel without a credential; `*` for every host without one. */
  readonly passthrough: readonly string[]
  readonly random: Random
  /** How long a call waits for a person. Undefined: until its approval expires. */
  readonly approvalTimeoutMs?: number | undefined
  /** Prints a warning for the user. */
  readonly warn: (line: string) => void
  /** Prints a line per call, if enabled. */
  readonly trace: (line: string) => void
}

interface ProgramProxy {
  /** Includes user and password. */
  readonly url: string
  close(): Promise<void>
}

/** The target of a request. */
type Authority = { readonly host: string; readonly port: number; readonly text: string }

type OpenProxy = {
  readonly needs: ProxyNeeds
  /** Serves the connections whose TLS ends here. */
  readonly inner: Server
  readonly sockets: Set<Duplex>
  /** Connections with TLS terminated here, and their targets. */
  readonly targets: WeakMap<object, Authority>
  readonly isAuthorized: (request: IncomingMessage) => boolean
}

export async function startProgramProxy(needs: ProxyNeeds): Promise<ProgramProxy> {
  const password = needs.random.token(PASSWORD_BYTES)
  const expected = Buffer.from(`Basic ${Buffer.from(`${USER}:${password}`).toString('base64')}`)
  const sockets = new Set<Duplex>()
  const targets = new WeakMap<object, Authority>()

  const isAuthorized = ({ headers }: IncomingMessage) => {
    const received = Buffer.from(headers['proxy-authorization'] ?? '')
    return received.length === expected.length && timingSafeEqual(received, expected)
  }

  const inner = listenerOf(needs.warn, (request, response) => {
    const authority = targets.get(request.socket)
    const { url = '' } = request
    if (authority === undefined || !url.startsWith('/')) {
      return refuse(
        response,
        new Refusal(400, 'http_request_error', 'The request target must be a path.'),
        request,
      )
    }
    answer(needs, request, response, authority, `https://${authority.text}${url}`)
  })

  const outer = listenerOf(needs.warn, (request, response) => {
    if (!isAuthorized(request)) return challenge(request, response)
    const target = absolute(request.url ?? '')
    if (target === null) {
      const detail = 'This is the proxy of svc run. It accepts CONNECT and absolute URLs.'
      return refuse(response, new Refusal(400, 'http_request_error', detail), request)
    }
    const authority = authorityOf(target.host, target.protocol === 'https:' ? HTTPS_PORT : 80)!
    if (target.protocol === 'https:') answer(needs, request, response, authority, request.url!)
    else void answerPlain(needs, request, response, authority, target)
  })

  const proxy: OpenProxy = { needs, inner, sockets, targets, isAuthorized }
  outer.on('connect', (request, socket, head) => connectTo(proxy, request, socket, head))
  outer.on('connection', (socket) => watch(proxy, socket))
  outer.listen(0, '127.0.0.1')
  await once(outer, 'listening')
  const { port } = outer.address() as AddressInfo
  return {
    url: `http://${USER}:${password}@127.0.0.1:${port}`,
    async close() {
      outer.close()
      for (const each of sockets) each.destroy()
    },
  }
}

/** A program asks for a tunnel to a host. */
function connectTo(proxy: OpenProxy, request: IncomingMessage, socket: Duplex, head: Buffer): void {
  watch(proxy, socket)
  if (!proxy.isAuthorized(request)) {
    const fields = 'Proxy-Authenticate: Basic realm="svc run"\r\nConnection: close'
    socket.end(
      `HTTP/1.1 407 Proxy Authentication Required\r\n${fields}\r\nContent-Length: 0\r\n\r\n`,
    )
    return
  }
  const authority = authorityOf(request.url ?? '', HTTPS_PORT)
  if (authority === null) {
    socket.end('HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Length: 0\r\n\r\n')
    return
  }
  open(proxy, socket, head, authority).catch((error: unknown) => {
    proxy.needs.warn(`${authority.host}: ${reasonOf(error)}`)
    socket.destroy()
  })
}

async function open(
  proxy: OpenProxy,
  socket: Duplex,
  head: Buffer,
  authority: Authority,
): Promise<void> {
  const { needs } = proxy
  const choice = await needs.choice.of(authority.host)
  if (choice.tag === 'none' && isPassed(needs.passthrough, authority.host)) {
    needs.trace(`${authority.text}: passed through`)
    tunnel(proxy, socket, head, authority)
    return
  }
  const secureContext = await needs.authority.contextOf(authority.host)
  socket.write('HTTP/1.1 200 Connection Established\r\n\r\n')
  if (head.length > 0) socket.unshift(head)
  const secured = new TLSSocket(socket as Socket, {
    isServer: true,
    secureContext,
    ALPNProtocols: ['http/1.1'],
  })
  watch(proxy, secured)
  let isSecured = false
  secured.once('secure', () => {
    isSecured = true
  })
  secured.once('error', (error) => {
    if (!isSecured)
      needs.warn(
        `${authority.host}: the program aborted the TLS handshake (${error.message}). Does it use other trusted certificates?`,
      )
  })
  proxy.targets.set(secured, authority)
  proxy.inner.emit('connection', secured)
}

/** Passes bytes and the end of each direction on. A direction that has ended does not end the other one. */
function tunnel(
  proxy: OpenProxy,
  socket: Duplex,
  head: Buffer,
  { host, port, text }: Authority,
): void {
  const upstream = connect({ host, port, allowHalfOpen: true })
  watch(proxy, upstream)
  let isOpen = false
  upstream.once('connect', () => {
    isOpen = true
    socket.write('HTTP/1.1 200 Connection Established\r\n\r\n')
    if (head.length > 0) upstream.write(head)
    upstream.pipe(socket)
    socket.pipe(upstream)
  })
  upstream.once('error', (error) => {
    proxy.needs.warn(`${text}: ${reasonOf(error)}`)
    // A tunnel forwards a reset as a reset.
    if (isOpen) (socket as Socket).resetAndDestroy()
    else socket.end('HTTP/1.1 502 Bad Gateway\r\nConnection: close\r\nContent-Length: 0\r\n\r\n')
  })
  // After both ends the other side may still have to send what its peer has not read yet.
  upstream.once('close', () => {
    if (!hasEnded(upstream)) socket.destroy()
  })
  socket.once('close', () => {
    if (!hasEnded(socket)) upstream.destroy()
  })
}

function watch({ sockets }: OpenProxy, socket: Duplex): void {
  sockets.add(socket)
  socket.on('error', () => {})
  socket.once('close', () => sockets.delete(socket))
}

/** True if both directions ended without an error. */
function hasEnded({ readableEnded, writableFinished }: Duplex): boolean {
  return readableEnded && writableFinished
}

function listenerOf(
  warn: (line: string) => void,
  handle: (request: IncomingMessage, response: ServerResponse) => void,
): Server {
  const server = createServer({ keepAliveTimeout: KEEP_ALIVE_MS, requestTimeout: 0 }, handle)
  // The handler decides whether to send 100 Continue. A disconnect is not reported.
  server.on('checkContinue', handle)
  server.on('clientError', (error: NodeJS.ErrnoException, socket) => {
    const isWrong = error.code?.startsWith('HPE_') && error.code !== 'HPE_INVALID_EOF_STATE'
    if (!isWrong || !socket.writable) return void socket.destroy()
    warn(`invalid HTTP request (${error.message})`)
    socket.end('HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Length: 0\r\n\r\n')
  })
  return server
}

/** Responds with the relayed response, or with a problem document. */
function answer(
  needs: ProxyNeeds,
  request: IncomingMessage,
  response: ServerResponse,
  authority: Authority,
  url: string,
): void {
  const line = `${request.method} ${authority.text}`
  call(needs, request, response, authority, url).then(
    (status) => needs.trace(`${line} ${status}`),
    (error: unknown) => {
      if (response.destroyed) return
      const refusal =
        error instanceof Refusal
          ? error
          : new Refusal(502, 'proxy_internal_error', `svc run: ${reasonOf(error)}`)
      needs.warn(`${line}: ${refusal.message}`)
      // After its headers a response can only be aborted, so that it does not look complete.
      if (response.headersSent) response.destroy()
      else refuse(response, refusal, request)
    },
  )
}

async function call(
  needs: ProxyNeeds,
  request: IncomingMessage,
  response: ServerResponse,
  { host }: Authority,
  url: string,
): Promise<number> {
  const { method = '' } = request
  if (!(METHODS as readonly string[]).includes(method)) {
    throw new Refusal(
      501,
      'http_request_error',
      `The egress proxy does not support the method ${method}.`,
    )
  }
  const choice = await needs.choice.of(host)
  if (choice.tag !== 'chosen') throw notChosen(host, choice)
  const disconnected = new AbortController()
  response.once('close', () => disconnected.abort())
  const length = request.headers['content-length']
  // Refused here, before any of the body is sent.
  if (Number(length ?? 0) > BODY_BYTES_MAX) {
    throw new Refusal(
      413,
      'http_request_denied',
      'The egress proxy accepts request bodies of up to 32 MiB.',
    )
  }
  if (request.headers.expect !== undefined) response.writeContinue()
  const hasBody = length !== undefined || request.headers['transfer-encoding'] !== undefined
  const body = hasBody && length !== '0' ? detached(request) : null
  const outbound = {
    method,
    url,
    headers: pairsOf(request.rawHeaders),
    body,
    bodyBytes: hasBody && length !== undefined ? Number(length) : null,
    credential: choice.credential,
    stream: true,
    signal: disconnected.signal,
  }
  const relayed = await approved(needs, outbound, `${method} ${host}`)
  const { statusCode, headers, body: received } = relayed
  const proxyStatus = String(headers['proxy-status'])
  if (proxyStatus.includes('error=')) {
    needs.warn(`${method} ${host}: ${statusCode}, ${proxyStatus}`)
  }
  for (const [name, value] of Object.entries(headers)) {
    const isHeadLength = name === 'content-length' && method === 'HEAD'
    if (value !== undefined && !NOT_RELAYED.has(name) && !isHeadLength) {
      response.setHeader(name, value)
    }
  }
  response.writeHead(statusCode)
  response.flushHeaders()
  await pipeline(received, response)
  return statusCode
}

/** Sends a call. If a person has to approve it, prints the page, waits, and repeats the call. */
async function approved(
  { calls, warn, approvalTimeoutMs }: ProxyNeeds,
  call: OutboundCall,
  line: string,
): Promise<ServiceAnswer> {
  const kept: Uint8Array[] = []
  const keep = (chunk: Uint8Array) => kept.push(chunk)
  if (call.body instanceof PassThrough) call.body.on('data', keep).pause()
  const answer = await calls.send(call)
  if (call.body instanceof PassThrough) call.body.off('data', keep)
  if (answer.headers[APPROVAL_FIELD] === undefined) return answer
  const asked = readApproval(await answer.body.json())
  warn(`${line} waits for a person: ${asked.url}`)
  try {
    await untilApproved(asked, calls.read, approvalTimeoutMs, call.signal)
  } catch (error) {
    if (!(error instanceof NotApproved)) throw error
    throw new Refusal(403, 'http_request_denied', error.message)
  }
  const body = call.body === null ? null : Buffer.concat(kept)
  return calls.send({ ...call, body, bodyBytes: body?.byteLength ?? null, approvalId: asked.id })
}

/**
 * A request body that can be destroyed while the program still sends it. The service may respond before
 * it has the whole body, and destroying the request itself would close the connection of the response.
 */
function detached(request: IncomingMessage): Readable {
  const body = new PassThrough()
  request.once('close', () => {
    if (!request.complete) body.destroy(new Error('the program disconnected'))
  })
  body.on('error', () => {})
  // In this order, because unpiping the last destination pauses a request.
  body.once('close', () => request.unpipe(body).resume())
  return request.pipe(body)
}

function notChosen(
  host: string,
  choice: { readonly tag: 'none' } | { readonly tag: 'ambiguous'; readonly ids: readonly string[] },
): Refusal {
  const detail =
    choice.tag === 'none'
      ? `There is no credential for ${host}. Grant one, or use --passthrough ${host}`
      : `There are ${choice.ids.length} credentials for ${host}. Choose one with --credential ${host}=<id>: ${choice.ids.join(', ')}`
  return new Refusal(403, 'http_request_denied', detail)
}

/** Plain http never gets a credential: it is passed through or refused. */
async function answerPlain(
  { choice, passthrough, warn, trace }: ProxyNeeds,
  request: IncomingMessage,
  response: ServerResponse,
  { host, text }: Authority,
  target: URL,
): Promise<void> {
  try {
    const known = await choice.of(host)
    if (known.tag !== 'none') {
      throw new Refusal(403, 'http_request_denied', `A credential is used with https only: ${host}`)
    }
    if (!isPassed(passthrough, host)) throw notChosen(host, known)
    if (request.headers.expect !== undefined) response.writeContinue()
    const headers = pairsOf(request.rawHeaders).filter(([name]) => isPassedOn(name, request))
    const upstream = plainRequest(target, {
      method: request.method,
      headers: headers.flat() as never,
    })
    response.once('close', () => upstream.destroy())
    const answered = once(upstream, 'response') as Promise<[IncomingMessage]>
    answered.catch(() => {})
    await Promise.race([pipeline(detached(request), upstream), answered])
    const [received] = await answered
    response.writeHead(received.statusCode!, received.rawHeaders)
    trace(`${request.method} ${text}: passed through`)
    await pipeline(received, response)
  } catch (error) {
    if (response.destroyed) return
    warn(`${request.method} ${text}: ${reasonOf(error)}`)
    const refusal =
      error instanceof Refusal
        ? error
        : new Refusal(502, 'destination_unavailable', reasonOf(error))
    if (response.headersSent) response.destroy()
    else refuse(response, refusal, request)
  }
}

/** False for hop-by-hop fields (RFC 9110 section 7.6.1). */
function isPassedOn(name: string, { headers: { connection = '' } }: IncomingMessage): boolean {
  const lower = name.toLowerCase()
  if (/^(proxy-.*|connection|expect|keep-alive|upgrade)$/.test(lower)) return false
  const named = connection.toLowerCase().split(',')
  return lower === 'transfer-encoding' || !named.some((option) => option.trim() === lower)
}

function challenge(request: IncomingMessage, response: ServerResponse): void {
  if (!request.complete) response.setHeader('connection', 'close')
  response.writeHead(407, { 'proxy-authenticate': 'Basic realm="svc run"', 'content-length': 0 })
  endAfter(request, response, '')
}

function authorityOf(text: string, port: number): Authority | null {
  let url: URL
  try {
    url = new URL(`http://${text}`)
  } catch {
    return null
  }
  const bare = url.hostname.replace(/^\[(.*)\]$/, '$1')
  const host = isIP(bare) === 0 ? normalizeHostname(bare) : bare
  if (host === null || url.username !== '' || url.pathname !== '/') return null
  // The URL parser drops an explicit :80.
  const explicit = /:(\d+)$/.exec(text)?.[1]
  const actual = explicit === undefined ? port : Number(explicit)
  const name = isIP(host) === 6 ? `[${host}]` : host
  return { host, port: actual, text: actual === HTTPS_PORT ? name : `${name}:${actual}` }
}

function absolute(text: string): URL | null {
  if (!/^https?:\/\//i.test(text)) return null
  try {
    const url = new URL(text)
    return url.username === '' && authorityOf(url.host, 0) !== null ? url : null
  } catch {
    return null
  }
}

function isPassed(passthrough: readonly string[], host: string): boolean {
  return passthrough.includes('*') || passthrough.includes(host)
}

function pairsOf(raw: readonly string[]): HeaderPairs {
  return Array.from(
    { length: raw.length / 2 },
    (_, index) => [raw[index * 2]!, raw[index * 2 + 1]!] as const,
  )
}
