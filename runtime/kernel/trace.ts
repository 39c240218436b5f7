/**
 * The id under which everything that one request causes can be found: in the response header, in
 * every log line of every thread, in problem documents. It travels in `AskOptions` and `Turn`, never
 * in a global, so it is exactly where it was given (interface.md, x-request-id; decisions.md, request id).
 */
import type { Random } from './random.js'

const REQUEST_ID = /^[A-Za-z0-9._-]{1,128}$/

/** Keeps a caller's id when it is harmless in logs and headers, otherwise makes a new one. */
export function requestIdOf(received: string | undefined, random: Random): string {
  return received !== undefined && REQUEST_ID.test(received) ? received : random.uuid()
}
