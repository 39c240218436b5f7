/**
 * Skips a 100 (Continue) that no request asked for. A client must be able to parse one or more of them before the final
 * response (RFC 9110 section 15.2). The HTTP/1.1 client of undici (pinned) ends the connection instead.
 */
import type { Client } from 'undici'
import { memberOf } from './members.js'

/** The parser of a connection inside undici. */
interface Parser {
  onHeadersComplete(status: number, isUpgrade: boolean, keepsAlive: boolean): number
}

const CONTINUE = 100
/** An interim status that undici passes on, and that all of its users skip. */
const PROCESSING = 102

/** Call it for a newly connected client, before its first request. */
export function skipContinue(client: Client): void {
  if (memberOf<{ version?: 'h2' }>(client, 'http context').version === 'h2') return
  const parser = memberOf<Parser>(memberOf(client, 'socket'), 'parser')
  const complete = parser.onHeadersComplete.bind(parser)
  parser.onHeadersComplete = (status, ...rest) =>
    complete(status === CONTINUE ? PROCESSING : status, ...rest)
}
