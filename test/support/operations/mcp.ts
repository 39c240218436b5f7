/** Requests to POST /mcp, for tests. */
import { callerOf, type Answer } from '../agents/journey.js'

export const MODERN = '2026-07-28'
export const ACCEPT = 'application/json, text/event-stream'

type Params = Record<string, unknown>
type Headers = Record<string, string>

export type RpcBody = {
  readonly jsonrpc: '2.0'
  readonly id: unknown
  readonly result?: Record<string, unknown>
  readonly error?: { readonly code: number; readonly message: string; readonly data?: Params }
}

export type RpcAnswer = Answer & { readonly rpc: RpcBody }

/** The `_meta` of a request since 2026-07-28. */
export const META = {
  'io.modelcontextprotocol/protocolVersion': MODERN,
  'io.modelcontextprotocol/clientInfo': { name: 'test', version: '1' },
  'io.modelcontextprotocol/clientCapabilities': {},
}

export function mcpOf(baseUrl: string) {
  const { call } = callerOf(baseUrl)
  /** Sends the text with the usual headers. Headers with the value '' are left out. */
  const send = async (body: string | Uint8Array, headers: Headers = {}): Promise<RpcAnswer> => {
    const all = { accept: ACCEPT, 'content-type': 'application/json', ...headers }
    const sent = Object.entries(all).filter(([, value]) => value !== '')
    const answer = await call('/mcp', { method: 'POST', headers: sent, body: body as string })
    return { ...answer, rpc: answer.body as RpcBody }
  }
  const request = (method: string, params?: Params) =>
    JSON.stringify({ jsonrpc: '2.0', id: 1, method, ...(params === undefined ? {} : { params }) })
  return {
    send,
    request,
    /** A request of a legacy client. */
    legacy: (method: string, params?: Params, version = '2025-11-25') =>
      send(request(method, params), { 'mcp-protocol-version': version }),
    /** A request of a client of 2026-07-28, with its headers and `_meta`. */
    modern: (method: string, params: Params = {}, headers: Headers = {}) =>
      send(request(method, { _meta: META, ...params }), {
        'mcp-protocol-version': MODERN,
        'mcp-method': method,
        ...(typeof params['name'] === 'string' ? { 'mcp-name': params['name'] } : {}),
        ...headers,
      }),
  }
}
