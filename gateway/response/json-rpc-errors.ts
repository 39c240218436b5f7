/** Errors of JSON-RPC 2.0, for routes with `errors: 'json-rpc'`. */
import { PROBLEM_TYPES, type Problem, problemCode } from './problems.js'

/** Error codes of JSON-RPC 2.0 section 5.1 and of MCP 2026-07-28. */
export const CODES = {
  parseError: -32700,
  invalidRequest: -32600,
  methodNotFound: -32601,
  invalidParams: -32602,
  internalError: -32603,
  /** A refusal of HTTP before the message is read. */
  refused: -32000,
  headerMismatch: -32020,
  unsupportedVersion: -32022,
} as const

export type RequestId = string | number

/** @param id null if the message has no valid id. */
export function errorText(
  id: RequestId | null,
  code: number,
  message: string,
  data?: unknown,
): string {
  const error = data === undefined ? { code, message } : { code, message, data }
  return JSON.stringify({ jsonrpc: '2.0', id, error })
}

/** A refusal of the pipeline as a JSON-RPC error without an id. `data` has members of problem documents. */
export function refusalText(problem: Problem, requestId: string): string {
  const { name, detail, retryAfterSecs, members } = problem
  const { status, title } = PROBLEM_TYPES[name]
  const code =
    status === 400 ? CODES.invalidRequest : status === 500 ? CODES.internalError : CODES.refused
  return errorText(null, code, detail ?? title, {
    status,
    error: problem.error ?? problemCode(name),
    request_id: requestId,
    ...(retryAfterSecs === undefined ? {} : { retry_after: retryAfterSecs }),
    ...members,
  })
}
