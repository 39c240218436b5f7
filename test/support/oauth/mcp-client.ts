/** An MCP server on loopback that accepts tokens of the service, and MCP clients with the official SDKs. */
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { auth as authOfV2 } from '@modelcontextprotocol/client'
import { auth as authOfV1 } from '@modelcontextprotocol/sdk/client/auth.js'
import { createRemoteJWKSet, type JWTPayload, jwtVerify } from 'jose'
import type { Workspace } from '../identity/person.js'
import type { Json } from '../identity/tenant-agent.js'
import { openBrowser, type TestBrowser } from '../pages/browser.js'
import type { TestService } from '../service.js'
import { isConsent, pathOf } from './relying-party.js'

/** A resource server that verifies `iss` and `aud`, and serves its metadata document (RFC 9728). */
export async function mcpServer({ issuer, baseUrl }: TestService, form: 'path' | 'root') {
  let document: Json = {}
  const keys = createRemoteJWKSet(new URL(`${baseUrl}/.well-known/jwks.json`))
  const server = createServer((request, response) => {
    const { pathname } = new URL(request.url ?? '/', 'http://localhost')
    const documentPath = `/.well-known/oauth-protected-resource${form === 'path' ? '/mcp' : ''}`
    if (pathname !== documentPath) return response.writeHead(404).end()
    return response.setHeader('content-type', 'application/json').end(JSON.stringify(document))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return {
    url: `${origin}/mcp`,
    serve(metadata: Json): void {
      document = metadata
    },
    verify: async (token: string): Promise<JWTPayload> => {
      const audience = String(document['resource'])
      return (await jwtVerify(token, keys, { issuer, audience, typ: 'at+jwt' })).payload
    },
    close(): void {
      server.closeAllConnections()
      server.close()
    },
  }
}
export type McpServer = Awaited<ReturnType<typeof mcpServer>>

type Provider = Parameters<typeof authOfV1>[0] & Parameters<typeof authOfV2>[0]
type Information = Awaited<ReturnType<Parameters<typeof authOfV1>[0]['clientInformation']>>
type Tokens = Awaited<ReturnType<Parameters<typeof authOfV1>[0]['tokens']>>

export const SDKS = { 'SDK 1': authOfV1, 'SDK 2': authOfV2 } as const
export type SdkName = keyof typeof SDKS

/** A client that keeps its registration and tokens in memory. Its user signs in with a browser. */
export function mcpClient(
  running: TestService,
  sdk: SdkName,
  metadata: Json,
  /** Creates an initial access token (RFC 7591). */
  initialToken: () => Promise<string>,
) {
  const kept: {
    information?: Information
    tokens?: Tokens
    verifier: string
    url?: URL
    registrations: number
  } = { verifier: '', registrations: 0 }
  const redirectUrl = String((metadata['redirect_uris'] as string[])[0])
  const provider = {
    redirectUrl,
    clientMetadata: { client_name: 'MCP client', ...metadata },
    state: () => 'state of the client',
    clientInformation: () => kept.information,
    saveClientInformation: (information: Information) => {
      kept.information = information
    },
    tokens: () => kept.tokens,
    saveTokens: (tokens: Tokens) => {
      kept.tokens = tokens
    },
    redirectToAuthorization: (url: URL) => {
      kept.url = url
    },
    saveCodeVerifier: (verifier: string) => {
      kept.verifier = verifier
    },
    codeVerifier: () => kept.verifier,
    invalidateCredentials: (which: string) => {
      if (which === 'all' || which === 'client') delete kept.information
      delete kept.tokens
    },
  } as unknown as Provider
  const fetchFn = async (url: string | URL, init: RequestInit = {}): Promise<Response> => {
    if (new URL(url).pathname !== '/oauth/register') return fetch(url, init)
    kept.registrations += 1
    const headers = new Headers(init.headers)
    headers.set('authorization', `Bearer ${await initialToken()}`)
    return fetch(url, { ...init, headers })
  }
  const browser: TestBrowser = openBrowser(running)
  return {
    kept,
    browser,
    /** One call of `auth()`. */
    run: (server: McpServer, more: Json = {}) =>
      SDKS[sdk](provider, { serverUrl: server.url, fetchFn, ...more } as never),
    /** The user signs in and consents. Returns the redirect to the client. */
    async allow(person: Workspace, change: (url: URL) => void = () => {}): Promise<URL> {
      const url = kept.url!
      change(url)
      let page = await browser.follow(await browser.get(pathOf(url)))
      if (page.path.startsWith('/auth/login'))
        page = await browser.follow(
          await browser.submit(page, { email: person.email, password: person.password }),
        )
      if (isConsent(page)) page = await browser.submit(page, { action: 'allow' })
      if (page.location === null) throw new Error(`${page.status} ${page.html}`)
      return new URL(page.location)
    },
  }
}
