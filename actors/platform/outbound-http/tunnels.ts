/** Tunnels through an HTTP proxy (CONNECT, RFC 9110 section 9.3.6). */
import { request as requestHttp } from 'node:http'
import { request as requestHttps } from 'node:https'
import { BlockList, isIP, type Socket } from 'node:net'
import type { ProxySettings } from './proxy-settings.js'

/** The proxy refused to connect. */
export const PROXY_REFUSED = 'SVC_PROXY_REFUSED'

export interface Tunnels {
  /** True for a host that is reached without the proxy. */
  skips(hostname: string): boolean
  /** `name`: the proxy is given the name of the host, otherwise its checked address. */
  readonly connectTo: ProxySettings['connect_to']
  /** Opens a tunnel to a host and port. `done` is called once. */
  open(
    host: string,
    port: number,
    timeoutMs: number,
    done: (error: Error | null, socket: Socket | null) => void,
  ): void
}

/** Undefined unless `proxy.enabled`. */
export function tunnelsOf(settings: ProxySettings | undefined): Tunnels | undefined {
  if (settings === undefined || !settings.enabled || settings.url === undefined) return undefined
  const { connect_to: connectTo, username, password = '' } = settings
  const { protocol, hostname, port: proxyPort } = new URL(settings.url)
  const isTls = protocol === 'https:'
  const send = isTls ? requestHttps : requestHttp
  const proxy = {
    host: hostname.replace(/^\[|\]$/g, ''),
    port: proxyPort === '' ? (isTls ? 443 : 80) : Number(proxyPort),
  }
  const authorization =
    username === undefined
      ? {}
      : {
          'proxy-authorization': `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`,
        }

  return {
    skips: bypassOf(settings.no_proxy),
    connectTo,
    open(host, port, timeoutMs, done) {
      const authority = `${isIP(host) === 6 ? `[${host}]` : host}:${port}`
      let isOver = false
      const finish = (error: Error | null, socket: Socket | null) => {
        if (isOver) return
        isOver = true
        clearTimeout(timer)
        if (error !== null) connecting.destroy()
        done(error, socket)
      }
      const connecting = send({
        ...proxy,
        method: 'CONNECT',
        path: authority,
        agent: false,
        headers: { host: authority, ...authorization },
      })
      const timer = setTimeout(
        () => finish(coded('the proxy did not answer in time', 'ETIMEDOUT'), null),
        timeoutMs,
      )
      connecting.once('connect', ({ statusCode = 0 }, socket: Socket, head: Buffer) => {
        if (statusCode >= 200 && statusCode < 300) {
          if (head.length > 0) socket.unshift(head)
          finish(null, socket)
          return
        }
        socket.destroy()
        finish(coded(`the proxy answered ${statusCode}`, PROXY_REFUSED), null)
      })
      connecting.once('response', (answer) => {
        answer.resume()
        finish(coded('the proxy did not accept CONNECT', PROXY_REFUSED), null)
      })
      connecting.on('error', (error) => finish(error, null))
      connecting.end()
    },
  }
}

/** Matches names with their subdomains, addresses and CIDRs. */
function bypassOf(entries: readonly string[]): (hostname: string) => boolean {
  const addresses = new BlockList()
  const names: string[] = []
  for (const entry of entries) {
    const [address = '', bits] = entry.split('/')
    const version = isIP(address)
    if (version === 0) names.push(entry.replace(/^\./, '').toLowerCase())
    else {
      const length = bits === undefined ? (version === 4 ? 32 : 128) : Number(bits)
      addresses.addSubnet(address, length, version === 4 ? 'ipv4' : 'ipv6')
    }
  }
  return (hostname) => {
    const version = isIP(hostname)
    if (version !== 0) return addresses.check(hostname, version === 4 ? 'ipv4' : 'ipv6')
    const name = hostname.toLowerCase().replace(/\.$/, '')
    return names.some((own) => name === own || name.endsWith(`.${own}`))
  }
}

function coded(message: string, code: string): Error {
  return Object.assign(new Error(message), { code })
}
