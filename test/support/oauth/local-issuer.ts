/** An authorization server of a test: metadata, keys and status lists that the test chooses, and the tokens it signs. */
import { createHash } from 'node:crypto'
import { createServer, type IncomingHttpHeaders } from 'node:http'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import {
  calculateJwkThumbprint,
  type CryptoKey,
  exportJWK,
  generateKeyPair,
  type JWK,
  type JWTPayload,
  SignJWT,
} from 'jose'

export type TestKey = { readonly privateKey: CryptoKey; readonly jwk: JWK; readonly jkt: string }

export async function testKey(alg = 'ES256', kid?: string): Promise<TestKey> {
  const { publicKey, privateKey } = await generateKeyPair(alg, { extractable: true })
  const bare = await exportJWK(publicKey)
  const jkt = await calculateJwkThumbprint(bare)
  return { privateKey, jwk: { ...bare, ...(kid === undefined ? {} : { kid, alg }) }, jkt }
}

export type Served = {
  readonly status?: number
  readonly headers?: Readonly<Record<string, string>>
  readonly body: string
}

export interface LocalIssuer {
  readonly issuer: string
  /** Answers by path. Any other path is 404. A test may change them. */
  readonly pages: Map<string, Served>
  /** The paths that were requested, in order, with their headers. */
  readonly requests: { readonly path: string; readonly headers: IncomingHttpHeaders }[]
  setKeys(...keys: readonly TestKey[]): void
  /** Ends the connections of the next requests, without a response. */
  breakNext(requests: number): void
  close(): Promise<void>
}

export async function localIssuer(path = ''): Promise<LocalIssuer> {
  const pages = new Map<string, Served>()
  const requests: LocalIssuer['requests'] = []
  let breaking = 0
  const server = createServer((request, response) => {
    const at = request.url ?? ''
    requests.push({ path: at, headers: request.headers })
    if (breaking > 0) {
      breaking -= 1
      request.socket.destroy()
      return
    }
    const { status = 200, headers = {}, body } = pages.get(at) ?? { status: 404, body: '' }
    response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(body)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const issuer = `${origin}${path}`
  pages.set(`/.well-known/oauth-authorization-server${path}`, {
    body: JSON.stringify({ issuer, jwks_uri: `${origin}/jwks` }),
  })
  return {
    issuer,
    pages,
    requests,
    setKeys: (...keys) => {
      pages.set('/jwks', { body: JSON.stringify({ keys: keys.map(({ jwk }) => jwk) }) })
    },
    breakNext(count) {
      breaking = count
    },
    async close() {
      server.closeAllConnections()
      server.close()
    },
  }
}

/** Signs a token. A claim that is undefined is absent. */
export function signed(
  { privateKey, jwk }: TestKey,
  claims: Readonly<Record<string, unknown>>,
  header: Readonly<Record<string, unknown>> = {},
): Promise<string> {
  const protectedHeader = { alg: 'ES256', typ: 'at+jwt', kid: jwk.kid, ...header }
  return new SignJWT(claims as JWTPayload)
    .setProtectedHeader(protectedHeader as { alg: string })
    .sign(privateKey)
}

/** A DPoP proof for a request with a token. */
export function dpopProof(
  key: TestKey,
  token: string,
  claims: Readonly<Record<string, unknown>>,
  header: Readonly<Record<string, unknown>> = {},
): Promise<string> {
  const ath = createHash('sha256').update(token).digest('base64url')
  const { kid: _kid, alg: _alg, ...jwk } = key.jwk
  return signed(key, { ath, ...claims }, { typ: 'dpop+jwt', kid: undefined, jwk, ...header })
}
