/** JSON-RPC 2.0 messages of the MCP endpoint: parsing and results (docs/reference/operations.md, MCP). */
import { z } from 'zod'
import { parseBody } from '../../body/read.js'
import { CODES, type RequestId } from '../../response/json-rpc-errors.js'

/** Largest message. */
export const MESSAGE_BYTES_MAX = 16 * 1024
const ID_CHARS_MAX = 1_024

export type Params = Readonly<Record<string, unknown>>

export type Message =
  | {
      readonly kind: 'request'
      readonly id: RequestId
      readonly method: string
      readonly params: Params | undefined
    }
  | {
      readonly kind: 'notification'
      readonly method: string
      readonly params: Params | undefined
    }
  /** An answer of the client. The service asks clients nothing, so it is dropped. */
  | { readonly kind: 'response' }
  | { readonly kind: 'invalid'; readonly code: number; readonly message: string }

/** Any JSON value. The shape is checked below, because each fault has its own error code. */
const rule = { kind: 'json', schema: z.unknown(), maxBytes: MESSAGE_BYTES_MAX } as const

/** Parses the bytes of one message. Never throws. */
export function parseMessage(bytes: Uint8Array): Message {
  const parsed = parseBody(rule, bytes)
  if (!parsed.ok) {
    const { detail = 'The body is not valid JSON.' } = parsed.problem
    return { kind: 'invalid', code: CODES.parseError, message: detail }
  }
  return classify(parsed.value)
}

function classify(value: unknown): Message {
  if (Array.isArray(value)) return invalid('Batches are not supported: send one message a request.')
  if (!isObject(value)) return invalid('The message must be an object.')
  if (value['jsonrpc'] !== '2.0') return invalid('The member jsonrpc must be "2.0".')
  const { id, method, params } = value
  const answers = ['result', 'error'].filter((name) => Object.hasOwn(value, name))
  if (method === undefined) {
    const hasId = isId(id) || (id === null && answers[0] === 'error')
    return answers.length === 1 && hasId
      ? { kind: 'response' }
      : invalid('The message must have a method, or an id with either result or error.')
  }
  if (typeof method !== 'string' || method === '') return invalid('The method must be a string.')
  if (answers.length > 0) return invalid('A message with a method has neither result nor error.')
  if (params !== undefined && !isObject(params)) return invalid('The params must be an object.')
  if (!Object.hasOwn(value, 'id')) return { kind: 'notification', method, params }
  if (!isId(id)) {
    return invalid(`The id must be a string of at most ${ID_CHARS_MAX} characters or an integer.`)
  }
  return { kind: 'request', id, method, params }
}

const invalid = (message: string): Message => ({
  kind: 'invalid',
  code: CODES.invalidRequest,
  message,
})

export function isObject(value: unknown): value is Params {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function isId(value: unknown): value is RequestId {
  if (typeof value === 'string') return value.length <= ID_CHARS_MAX
  return Number.isSafeInteger(value)
}

/** @param result JSON text. */
export function resultText(id: RequestId, result: string): string {
  return `{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":${result}}`
}
