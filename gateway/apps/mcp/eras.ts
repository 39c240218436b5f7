/**
 * The two eras of MCP. Legacy revisions begin with `initialize` and name their version in a header. Since
 * 2026-07-28 each request describes itself in `_meta`, and headers repeat parts of its body
 * (docs/reference/operations.md, MCP).
 */
import { CODES } from '../../response/json-rpc-errors.js'
import { isObject, type Message, type Params } from './json-rpc.js'

const MODERN_VERSION = '2026-07-28'
/** Revisions that `initialize` agrees on, latest first. */
export const LEGACY_VERSIONS = ['2025-11-25', '2025-06-18'] as const
export const SUPPORTED_VERSIONS: readonly string[] = [MODERN_VERSION, ...LEGACY_VERSIONS]
/** The version of a legacy client without a header (MCP 2025-11-25, transports). */
const ASSUMED_VERSION = '2025-03-26'
const LEGACY_HEADERS: ReadonlySet<string> = new Set([...LEGACY_VERSIONS, ASSUMED_VERSION])

const META_VERSION = 'io.modelcontextprotocol/protocolVersion'
const META_CAPABILITIES = 'io.modelcontextprotocol/clientCapabilities'
export const META_SERVER_INFO = 'io.modelcontextprotocol/serverInfo'

export type McpHeaders = {
  readonly 'mcp-protocol-version'?: string | undefined
  readonly 'mcp-method'?: string | undefined
  readonly 'mcp-name'?: string | undefined
}

type Era =
  | { readonly tag: 'legacy'; readonly version: string }
  | { readonly tag: 'modern' }
  /** Answered with 400. */
  | {
      readonly tag: 'refused'
      readonly code: number
      readonly message: string
      readonly data?: Readonly<Record<string, unknown>>
    }

const refused = (code: number, message: string, data?: Readonly<Record<string, unknown>>): Era => ({
  tag: 'refused',
  code,
  message,
  ...(data === undefined ? {} : { data }),
})

/** The refusal of a version header that names no supported version, or undefined. It needs no message. */
export function refuseVersion(headers: McpHeaders): Extract<Era, { tag: 'refused' }> | undefined {
  const requested = headers['mcp-protocol-version']
  if (requested === undefined || requested === MODERN_VERSION || LEGACY_HEADERS.has(requested)) {
    return undefined
  }
  return {
    tag: 'refused',
    code: CODES.unsupportedVersion,
    message: 'The protocol version is not supported.',
    data: { supported: SUPPORTED_VERSIONS, requested },
  }
}

/** Decides the era of a request or a notification whose version header `refuseVersion` admits. */
export function eraOf(
  message: Extract<Message, { kind: 'request' | 'notification' }>,
  headers: McpHeaders,
): Era {
  const header = headers['mcp-protocol-version']
  const meta = message.params?.['_meta']
  const claimed = isObject(meta) ? meta[META_VERSION] : undefined
  if (header !== MODERN_VERSION) {
    if (claimed === undefined || claimed === header) {
      return { tag: 'legacy', version: header ?? ASSUMED_VERSION }
    }
    return mismatch('MCP-Protocol-Version', META_VERSION)
  }
  if (message.kind === 'request' || meta !== undefined) {
    const fault = metaFault(meta)
    if (fault !== undefined && message.kind === 'request')
      return refused(CODES.invalidParams, fault)
    if (claimed !== undefined && claimed !== header) {
      return mismatch('MCP-Protocol-Version', META_VERSION)
    }
  }
  return headerFault(message, headers) ?? { tag: 'modern' }
}

/** The members that each modern request must have (MCP 2026-07-28, `_meta`). */
function metaFault(meta: unknown): string | undefined {
  if (!isObject(meta)) return 'The params must have the object _meta.'
  if (typeof meta[META_VERSION] !== 'string')
    return `The _meta must have the string ${META_VERSION}.`
  if (!isObject(meta[META_CAPABILITIES])) {
    return `The _meta must have the object ${META_CAPABILITIES}.`
  }
  return undefined
}

/** Checks Mcp-Method and Mcp-Name. A notification may lack them. */
function headerFault(
  { kind, method, params }: Extract<Message, { kind: 'request' | 'notification' }>,
  headers: McpHeaders,
): Era | undefined {
  const named = headers['mcp-method']
  if (named === undefined ? kind === 'request' : named !== method) {
    return mismatch('Mcp-Method', 'method')
  }
  const name = nameOf(method, params)
  const header = headers['mcp-name']
  if (name === undefined && header === undefined) return undefined
  if (name === undefined) {
    // Only tools/call has a name here. The header of another method is not about this body.
    return method === 'tools/call' ? mismatch('Mcp-Name', 'params.name') : undefined
  }
  return header !== undefined && decoded(header) === name
    ? undefined
    : mismatch('Mcp-Name', 'params.name')
}

function nameOf(method: string, params: Params | undefined): string | undefined {
  const name = method === 'tools/call' ? params?.['name'] : undefined
  return typeof name === 'string' ? name : undefined
}

const ENCODED = /^=\?base64\?([A-Za-z0-9+/]*={0,2})\?=$/

/** A value that is no plain ASCII text is sent as `=?base64?...?=` (MCP 2026-07-28, transports). */
function decoded(header: string): string {
  const base64 = ENCODED.exec(header)?.[1]
  return base64 === undefined ? header : Buffer.from(base64, 'base64').toString('utf8')
}

function mismatch(header: string, member: string): Era {
  return refused(CODES.headerMismatch, `The header ${header} does not match ${member} of the body.`)
}
