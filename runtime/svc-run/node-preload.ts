/**
 * Preloaded into the Node programs of a child: makes `fetch` and `https` of Node versions that ignore
 * HTTPS_PROXY use it. It runs inside the user's program, so it changes nothing else.
 */
import http from 'node:http'
import https from 'node:https'
import { connect as connectTls } from 'node:tls'
import type { Duplex } from 'node:stream'
import { EnvHttpProxyAgent, setGlobalDispatcher } from 'undici'
import { readEnvironment } from '../kernel/config/environment.js'

const HTTPS_PORT = 443
type Connected = (error: Error | null, socket?: Duplex) => void
type Target = https.RequestOptions & { host?: string | null; port?: number | string | null }

/** An https agent that connects through a proxy with CONNECT. */
class TunnelAgent extends https.Agent {
  readonly #proxy: URL
  readonly #unproxied: ReadonlySet<string>

  constructor(proxy: URL, unproxied: ReadonlySet<string>) {
    super({ keepAlive: true })
    this.#proxy = proxy
    this.#unproxied = unproxied
  }

  override createConnection(options: Target, connected: Connected): undefined {
    const host = options.host ?? 'localhost'
    const port = Number(options.port ?? HTTPS_PORT)
    if (this.#unproxied.has(host)) {
      const direct = connectTls({ ...options, host, port } as never)
      direct.once('secureConnect', () => connected(null, direct)).once('error', connected)
      return undefined
    }
    const { hostname, port: proxyPort, username, password } = this.#proxy
    const login = Buffer.from(`${username}:${password}`).toString('base64')
    const path = host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`
    const request = http.request({
      host: hostname,
      port: proxyPort,
      method: 'CONNECT',
      path,
      headers: { host: path, 'proxy-authorization': `Basic ${login}` },
      agent: false,
    })
    request.once('error', connected)
    request.once('connect', (answer, socket) => {
      if (answer.statusCode !== 200) {
        socket.destroy()
        connected(new Error(`the proxy answered ${answer.statusCode} for ${path}`))
        return
      }
      const servername = options.servername ?? host
      const secured = connectTls({ ...options, host, socket, servername } as never)
      secured.once('secureConnect', () => connected(null, secured)).once('error', connected)
    })
    request.end()
    return undefined
  }
}

const { HTTPS_PROXY: address, NO_PROXY: unproxied = '' } = readEnvironment()
if (address !== undefined) {
  setGlobalDispatcher(new EnvHttpProxyAgent())
  https.globalAgent = new TunnelAgent(new URL(address), new Set(unproxied.split(',')))
}
