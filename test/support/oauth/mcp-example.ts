/** The MCP server of docs/examples as a process, and what an MCP client keeps in memory. */
import { spawn } from 'node:child_process'
import { createServer } from 'node:net'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import type { ExecutionContext } from 'ava'
import { openBrowser, type TestBrowser } from '../pages/browser.js'
import type { Workspace } from '../identity/person.js'
import type { TestService } from '../service.js'
import { authorized, isConsent } from './relying-party.js'
import { notThroughHttp2 } from '../fleet/through.js'
import { trustOfPrograms } from '../service/trust.js'

const ROOT = new URL('../../../../', import.meta.url)

/** A port that is free now on 127.0.0.1. */
export async function loopbackPort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as { port: number }
  server.close()
  await once(server, 'close')
  return port
}

/** Starts docs/examples/mcp-server/server.mjs unchanged. It ends with the test. */
export async function exampleServer(t: ExecutionContext, issuer: string, resource: string) {
  notThroughHttp2()
  const child = spawn(process.execPath, ['docs/examples/mcp-server/server.mjs'], {
    cwd: ROOT,
    env: { PATH: process.env['PATH'], ...trustOfPrograms(), ISSUER: issuer, RESOURCE: resource },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  t.teardown(async () => {
    if (child.exitCode !== null) return
    child.kill()
    await once(child, 'exit')
  })
  for await (const line of createInterface({ input: child.stdout })) {
    if (line === `listening at ${resource}`) return
  }
  throw new Error('the example ended before it listened')
}

type Stored = Record<string, unknown>

/**
 * The state of an MCP client, in the shape that both SDKs expect (`OAuthClientProvider`). A person in a browser answers
 * each authorization request.
 */
export class McpClientState {
  client: Stored | undefined
  stored: Stored | undefined
  /** The URL of the client's own metadata document (Client ID Metadata Document), if it has one. */
  clientMetadataUrl?: string
  /** The DPoP key of the client (SDK 2.x), if it binds its tokens. */
  dpop?: () => unknown
  verifier = ''
  discovered: object | undefined
  /** The parameters of the last callback. */
  callback = new URLSearchParams()
  /** All authorization requests. */
  readonly requests: URL[] = []
  readonly registrations: Stored[] = []
  readonly redirectUrl: string
  readonly #browser: TestBrowser
  readonly #running: TestService
  readonly #person: Pick<Workspace, 'email' | 'password'>
  readonly #metadata: Stored

  constructor(
    running: TestService,
    person: Pick<Workspace, 'email' | 'password'>,
    redirectUrl: string,
    metadata: Stored = {},
  ) {
    this.#running = running
    this.#person = person
    this.redirectUrl = redirectUrl
    this.#metadata = metadata
    this.#browser = openBrowser(running)
  }

  get clientMetadata(): never {
    const metadata = {
      client_name: 'Test client',
      redirect_uris: [this.redirectUrl],
      ...this.#metadata,
    }
    // Each SDK has another type for the same metadata.
    return metadata as never
  }
  state = () => 'state-of-the-client'
  clientInformation = () => this.client as never
  saveClientInformation(client: object): void {
    this.client = { ...client }
    this.registrations.push(this.client)
  }
  tokens = () => this.stored as never
  saveTokens(tokens: object): void {
    this.stored = { ...tokens }
  }
  saveCodeVerifier(verifier: string): void {
    this.verifier = verifier
  }
  codeVerifier = () => this.verifier
  /** Which authorization server the person was sent to: the callback must come from it. */
  saveDiscoveryState(found: object): void {
    this.discovered = found
  }
  discoveryState = () => this.discovered as never

  async redirectToAuthorization(url: URL): Promise<void> {
    this.requests.push(url)
    const { origin } = new URL(this.#running.baseUrl)
    if (url.origin !== origin) throw new Error(`sent to ${url.origin}`)
    let page = await authorized(this.#browser, this.#person, url)
    if (isConsent(page)) page = await this.#browser.submit(page, { action: 'allow' })
    if (page.location === null || !page.location.startsWith(this.redirectUrl))
      throw new Error(`no answer to the client: ${page.status} ${page.location} ${page.html}`)
    this.callback = new URL(page.location).searchParams
  }

  scopes(): readonly string[] {
    return String(this.stored?.['scope'] ?? '')
      .split(' ')
      .sort()
  }
  close = () => this.#browser.close()
}
