/** Which parser serves HTTP/1.1 (docs/concepts/gateway.md). */
import type { ServerSettings } from '../settings.js'

/**
 * What `server.http1_parser` asks for. Undefined for `tls` and `tls_h2_only`, whose listener is node:http2. The native
 * build of uWebSockets answers 505 to a request line that TCP cuts (uNetworking/uWebSockets#1776). Loopback and TLS records
 * do not cut it, so `auto` is uWebSockets there, and node elsewhere.
 */
export function wantedParser({
  host,
  transport,
  http1_parser,
}: Pick<ServerSettings, 'host' | 'transport' | 'http1_parser'>):
  | 'uwebsockets'
  | 'node'
  | undefined {
  if (transport !== 'plain_http' && transport !== 'tls_http1') return undefined
  if (http1_parser !== 'auto') return http1_parser
  return transport === 'tls_http1' || isLoopback(host) ? 'uwebsockets' : 'node'
}

/** True for the names and addresses of this machine. */
export function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || host.startsWith('127.')
}
