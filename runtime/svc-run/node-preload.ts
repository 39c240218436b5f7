/**
 * Loaded into the Node programs of a child: lets `fetch` and `https` of the versions of Node that do
 * not look at HTTPS_PROXY use it. It runs in somebody else's program, so it keeps to itself.
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

/** An https agent whose connections go through CONNECT of a proxy. */
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
    const asked = http.request({
      host: hostname,
      port: proxyPort,
      method: 'CONNECT',
      path,
      headers: { host: path, 'proxy-authorization': `Basic ${login}` },
      agent: false,
    })
    asked.once('error', connected)
    asked.once('connect', (answer, socket) => {
      if (answer.statusCode !== 200) {
        socket.destroy()
        connected(new Error(`the proxy answered ${answer.statusCode} for ${path}`))
        return
      }
      const servername = options.servername ?? host
      const secured = connectTls({ ...options, host, socket, servername } as never)
      secured.once('secureConnect', () => connected(null, secured)).once('error', connected)
    })
    asked.end()
    return undefined
  }
}

const { HTTPS_PROXY: address, NO_PROXY: unproxied = '' } = readEnvironment()
if (address !== undefined) {
  setGlobalDispatcher(new EnvHttpProxyAgent())
  https.globalAgent = new TunnelAgent(new URL(address), new Set(unproxied.split(',')))
}
