/**
 * The token endpoint of a loopback upstream; it rotates refresh tokens and accepts each once. Below `/api` is an API
 * that takes its tokens and repeats the request.
 */
import { createServer } from 'node:https'
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import {
  UPSTREAM_CERT,
  UPSTREAM_KEY,
  UPSTREAM_NAME,
} from '../../actors/vault/egress/loopback-tls.js'

export type TokenRequest = {
  readonly headers: IncomingHttpHeaders
  readonly form: Readonly<Record<string, string>>
  readonly path: string
  readonly text: string
}
export type TokenReply = {
  readonly status?: number
  readonly headers?: Readonly<Record<string, string>>
  /** An object is sent as JSON. */
  readonly body?: unknown
}

/** A call of the API. */
export type ApiRequest = {
  readonly method: string
  readonly authorization: string
  readonly body: string
}

export interface TokenUpstream {
  readonly url: string
  readonly origin: string
  readonly apiRequests: readonly ApiRequest[]
  /** What it answers to a refresh token. */
  issue(refreshToken: string): TokenReply
  /** The API answers 401 to this token, or to all. */
  reject(token: string): void
  /** The API does not answer the next call until the returned function is called. */
  holdNext(): () => void
  /** Ends the connection of the next requests for a token, without an answer. */
  breakNext(count: number): void
  /** Connections that were ended. */
  readonly broken: number
  readonly tokenRequests: readonly TokenRequest[]
  /** The next responses; null to issue tokens. */
  answer(reply: ((request: TokenRequest) => TokenReply | Promise<TokenReply>) | null): void
  /** Members that override the members of issued tokens. */
  adorn(members: Readonly<Record<string, unknown>>): void
  close(): Promise<void>
}

/** Accepts `first` as the first refresh token, then the last issued one. */
export async function tokenUpstream(first = 'rt-0'): Promise<TokenUpstream> {
  const tokenRequests: TokenRequest[] = []
  let scripted: ((request: TokenRequest) => TokenReply | Promise<TokenReply>) | null = null
  let more: Readonly<Record<string, unknown>> = {}
  let current = first
  let count = 0
  const apiRequests: ApiRequest[] = []
  const rejected = new Set<string>()
  let held: Promise<void> | null = null
  let toBreak = 0
  let broken = 0

  /** Repeats the request with every token that it knows. */
  async function api({ method = '', headers }: IncomingMessage, body: string): Promise<TokenReply> {
    const { authorization = '' } = headers
    apiRequests.push({ method, authorization, body })
    const holding = held
    held = null
    await holding
    const token = authorization.replace('Bearer ', '')
    if (rejected.has(token) || rejected.has('all'))
      return { status: 401, body: { error: 'rejected' } }
    const known = Array.from({ length: count }, (_, nth) => `at-${nth + 1}`)
    return { body: { authorization, body, known } }
  }

  function issue({ form }: Pick<TokenRequest, 'form'>): TokenReply {
    const refreshing = form['grant_type'] === 'refresh_token'
    if (refreshing && form['refresh_token'] !== current) {
      return { status: 400, body: { error: 'invalid_grant', error_description: 'reused' } }
    }
    count += 1
    if (refreshing) current = `rt-${count}`
    return {
      body: {
        access_token: `at-${count}`,
        token_type: 'bearer',
        expires_in: 3600,
        ...(refreshing ? { refresh_token: current } : {}),
        ...more,
      },
    }
  }

  async function answerOf(request: IncomingMessage, text: string): Promise<TokenReply> {
    if (request.url?.startsWith('/api')) return api(request, text)
    const form = Object.fromEntries(new URLSearchParams(text))
    const tokenRequest = { headers: request.headers, form, path: request.url ?? '', text }
    tokenRequests.push(tokenRequest)
    return (scripted ?? issue)(tokenRequest)
  }

  const server = createServer({ key: UPSTREAM_KEY, cert: UPSTREAM_CERT }, (request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      if (toBreak > 0 && request.url === '/token') {
        toBreak -= 1
        broken += 1
        return void request.socket.destroy()
      }
      const text = Buffer.concat(chunks).toString()
      void answerOf(request, text).then(({ status = 200, headers, body }) => {
        response.writeHead(status, { 'content-type': 'application/json', ...headers })
        response.end(typeof body === 'string' ? body : JSON.stringify(body))
      })
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const origin = `https://${UPSTREAM_NAME}:${(server.address() as AddressInfo).port}`
  return {
    url: `${origin}/token`,
    origin,
    tokenRequests,
    apiRequests,
    issue: (token) => issue({ form: { grant_type: 'refresh_token', refresh_token: token } }),
    holdNext() {
      let letGo = () => {}
      held = new Promise((resolve) => (letGo = resolve))
      return letGo
    },
    breakNext: (next) => {
      toBreak = next
    },
    get broken() {
      return broken
    },
    reject: (token) => void rejected.add(token),
    answer: (reply) => {
      scripted = reply
    },
    adorn: (members) => {
      more = members
    },
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}
