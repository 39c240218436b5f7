/** The token endpoint of a loopback upstream; it rotates refresh tokens and accepts each once. */
import { createServer } from 'node:https'
import type { IncomingHttpHeaders } from 'node:http'
import type { AddressInfo } from 'node:net'
import {
  UPSTREAM_CERT,
  UPSTREAM_KEY,
  UPSTREAM_NAME,
} from '../../actors/vault/egress/loopback-tls.js'

export type TokenRequest = {
  readonly headers: IncomingHttpHeaders
  readonly form: Readonly<Record<string, string>>
}
export type TokenReply = {
  readonly status?: number
  readonly headers?: Readonly<Record<string, string>>
  /** An object is sent as JSON. */
  readonly body?: unknown
}

export interface TokenUpstream {
  readonly url: string
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

  function issue({ form }: TokenRequest): TokenReply {
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

  const server = createServer({ key: UPSTREAM_KEY, cert: UPSTREAM_CERT }, (request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      const form = Object.fromEntries(new URLSearchParams(Buffer.concat(chunks).toString()))
      const tokenRequest = { headers: request.headers, form }
      tokenRequests.push(tokenRequest)
      void Promise.resolve((scripted ?? issue)(tokenRequest)).then(
        ({ status = 200, headers, body }) => {
          response.writeHead(status, { 'content-type': 'application/json', ...headers })
          response.end(typeof body === 'string' ? body : JSON.stringify(body))
        },
      )
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `https://${UPSTREAM_NAME}:${(server.address() as AddressInfo).port}/token`,
    tokenRequests,
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
