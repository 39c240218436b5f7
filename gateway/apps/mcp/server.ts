/** Answers MCP messages: a request in, a status and a JSON text out. The server has no state. */
import type { AskOptions } from '../../../runtime/kernel/actor.js'
import { INTERFACE_VERSION } from '../../request/interface-version.js'
import type { AnyRouteRequest } from '../../route.js'
import type { Documents } from './documents.js'
import {
  eraOf,
  LEGACY_VERSIONS,
  type McpHeaders,
  META_SERVER_INFO,
  refuseVersion,
  SUPPORTED_VERSIONS,
} from './eras.js'
import { CODES, errorText, type RequestId } from '../../response/json-rpc-errors.js'
import { isObject, type Params, parseMessage, resultText } from './json-rpc.js'
import { type Outcome, runTool, TOOL_LIST } from './tools.js'

/** Time that clients may keep a result: as long as the capabilities document. */
const TTL_MS = 60_000

const SERVER_INFO = { name: 'svc', title: 'svc discovery', version: INTERFACE_VERSION }
const CAPABILITIES = { tools: { listChanged: false } }
const INSTRUCTIONS =
  'Public read-only tools that describe this identity provider: its features, discovery documents, API operations, ' +
  'scopes, event types and error codes. Begin with get_capabilities, then get_guide for the task. The tools need no ' +
  'credentials, and the endpoint refuses requests that carry them.'

/** Members of each result since 2026-07-28. */
const MODERN = {
  resultType: 'complete',
  ttlMs: TTL_MS,
  cacheScope: 'public',
  _meta: { [META_SERVER_INFO]: SERVER_INFO },
}

const TOOLS_TEXT = {
  legacy: JSON.stringify({ tools: TOOL_LIST }),
  modern: JSON.stringify({ tools: TOOL_LIST, ...MODERN }),
}
const DISCOVER_TEXT = JSON.stringify({
  supportedVersions: SUPPORTED_VERSIONS,
  capabilities: CAPABILITIES,
  instructions: INSTRUCTIONS,
  ...MODERN,
})

type McpAnswer = { readonly status: 200 | 202 | 400 | 404; readonly body: string | null }

type McpCall = {
  readonly bytes: Uint8Array
  readonly headers: McpHeaders
  readonly documents: Documents
  readonly request: AnyRouteRequest
  readonly asking: AskOptions
}

/** A result as JSON text, or an error. */
type Reply =
  | { readonly result: string }
  | { readonly code: number; readonly message: string; readonly data?: unknown }

/** @throws {ActorUnavailable} */
export async function answerMcp(call: McpCall): Promise<McpAnswer> {
  const { bytes, headers } = call
  const message = parseMessage(bytes)
  const id = message.kind === 'request' ? message.id : null
  const unsupported = refuseVersion(headers)
  if (unsupported !== undefined) {
    const { code, message: text, data } = unsupported
    return { status: 400, body: errorText(id, code, text, data) }
  }
  if (message.kind === 'invalid') {
    return { status: 400, body: errorText(null, message.code, message.message) }
  }
  if (message.kind === 'response') return { status: 202, body: null }
  const era = eraOf(message, headers)
  if (era.tag === 'refused') {
    return { status: 400, body: errorText(id, era.code, era.message, era.data) }
  }
  if (message.kind === 'notification') return { status: 202, body: null }
  const { method, params = {} } = message
  const version = era.tag === 'legacy' ? era.version : null
  const reply =
    method === 'tools/call'
      ? await callTool(params, version, call)
      : (version === null ? modernReply : legacyReply)(method, params)
  const isUnknown = 'code' in reply && reply.code === CODES.methodNotFound
  return {
    status: isUnknown && version === null ? 404 : 200,
    body: bodyOf(message.id, reply),
  }
}

function bodyOf(id: RequestId, reply: Reply): string {
  return 'result' in reply
    ? resultText(id, reply.result)
    : errorText(id, reply.code, reply.message, reply.data)
}

function legacyReply(method: string, params: Params): Reply {
  switch (method) {
    case 'initialize':
      return initialize(params)
    case 'ping':
      return { result: '{}' }
    case 'tools/list':
      return listTools(params, TOOLS_TEXT.legacy)
    default:
      return unknownMethod()
  }
}

function modernReply(method: string, params: Params): Reply {
  switch (method) {
    case 'server/discover':
      return { result: DISCOVER_TEXT }
    case 'tools/list':
      return listTools(params, TOOLS_TEXT.modern)
    default:
      return unknownMethod()
  }
}

const unknownMethod = (): Reply => ({
  code: CODES.methodNotFound,
  message: 'The method is not supported.',
})
const invalidParams = (message: string): Reply => ({ code: CODES.invalidParams, message })

/** Agrees on the requested version, or offers the latest one (MCP 2025-11-25, lifecycle). */
function initialize({ protocolVersion }: Params): Reply {
  if (typeof protocolVersion !== 'string') {
    return invalidParams('The params must have the string protocolVersion.')
  }
  const agreed = LEGACY_VERSIONS.find((version) => version === protocolVersion)
  return {
    result: JSON.stringify({
      protocolVersion: agreed ?? LEGACY_VERSIONS[0],
      capabilities: CAPABILITIES,
      serverInfo: SERVER_INFO,
      instructions: INSTRUCTIONS,
    }),
  }
}

function listTools({ cursor }: Params, list: string): Reply {
  return cursor === undefined
    ? { result: list }
    : invalidParams('The cursor is invalid: the list has one page.')
}

/** Versions in which bad arguments are a protocol error. Later ones return them to the model as a tool error. */
const STRICT_ARGUMENTS: ReadonlySet<string> = new Set(['2025-03-26', '2025-06-18'])

/** @param version the legacy version, or null */
async function callTool(params: Params, version: string | null, call: McpCall): Promise<Reply> {
  const { name, arguments: input = {} } = params
  if (typeof name !== 'string') return invalidParams('The params must have the string name.')
  if (!isObject(input)) return invalidParams('The arguments must be an object.')
  const outcome = await runTool(name, input, call)
  if (outcome === null) return invalidParams('There is no tool with this name.')
  if (outcome.tag === 'bad_arguments' && version !== null && STRICT_ARGUMENTS.has(version)) {
    return invalidParams(`The arguments are invalid: ${outcome.message}`)
  }
  return { result: toolResult(outcome, version === null) }
}

function toolResult(outcome: Outcome, modern: boolean): string {
  const more = modern ? MODERN : {}
  if (outcome.tag !== 'done') {
    return JSON.stringify({ content: [textOf(outcome.message)], isError: true, ...more })
  }
  const { content } = outcome
  return JSON.stringify({
    content: [textOf(JSON.stringify(content))],
    structuredContent: content,
    isError: false,
    ...more,
  })
}

const textOf = (text: string) => ({ type: 'text', text })
