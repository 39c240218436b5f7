/**
 * Required by the Node programs of a child and by their worker threads: makes `fetch` and every `https.Agent` of Node
 * versions that ignore HTTPS_PROXY use it. It runs inside the user's program, so it changes nothing else. `--import`
 * does not run in worker threads, so this is a CommonJS module.
 */
const http: typeof import('node:http') = require('node:http')
const https: typeof import('node:https') = require('node:https')
const tls: typeof import('node:tls') = require('node:tls')
const undici: typeof import('undici') = require('undici')

const HTTPS_PORT = 443
type Duplex = import('node:stream').Duplex
type Agent = import('node:https').Agent
type Connected = (error: Error | null, socket?: Duplex) => void
type Target = import('node:https').RequestOptions & {
  readonly host?: string | null
  readonly port?: number | string | null
  /** The program brings its connection. */
  readonly socket?: Duplex
}
type Connect = (this: Agent, options: Target, connected: Connected) => unknown

/** Replaces how agents connect, including agents that a program makes and `agent: false`. */
function tunnelAll(proxy: URL, unproxied: ReadonlySet<string>): void {
  const agents = https.Agent.prototype as unknown as { createConnection: Connect }
  const direct = agents.createConnection
  agents.createConnection = function createConnection(options, connected) {
    const host = options.host ?? 'localhost'
    const isOwn = options.socket !== undefined || options.socketPath != null
    if (isOwn || unproxied.has(host)) return direct.call(this, options, connected)
    tunnel(proxy, host, options, connected)
    return undefined
  }
}

/** Connects through the proxy with CONNECT. */
function tunnel(proxy: URL, host: string, options: Target, connected: Connected): void {
  const port = Number(options.port ?? HTTPS_PORT)
  const { hostname, port: proxyPort, username, password } = proxy
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
    const secured = tls.connect({ ...options, host, socket, servername } as never)
    secured.once('secureConnect', () => connected(null, secured)).once('error', connected)
  })
  request.end()
}

const { HTTPS_PROXY: address, NO_PROXY: unproxied = '' } = process.env
if (address !== undefined) {
  undici.setGlobalDispatcher(new undici.EnvHttpProxyAgent())
  tunnelAll(new URL(address), new Set(unproxied.split(',')))
}
