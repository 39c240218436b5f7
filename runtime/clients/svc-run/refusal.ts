/** Error responses of `svc run` itself (docs/guides/vault/svc-run.md). */
import type { IncomingMessage, ServerResponse } from 'node:http'

export class Refusal extends Error {
  readonly status: number
  readonly proxyError: string
  constructor(status: number, proxyError: string, detail: string) {
    super(detail)
    this.status = status
    this.proxyError = proxyError
  }
}

const CODES: Readonly<Record<number, string>> = {
  403: 'policy_denied',
  413: 'payload_too_large',
  501: 'not_implemented',
}

/** Sends a problem document (RFC 9457) with Proxy-Status (RFC 9209). */
export function refuse(
  response: ServerResponse,
  { status, proxyError, message: detail }: Refusal,
  request: IncomingMessage,
): void {
  const body = JSON.stringify({
    type: 'about:blank',
    title: 'Refused by svc run',
    status,
    detail,
    error: CODES[status] ?? 'bad_gateway',
  })
  if (!request.complete) response.setHeader('connection', 'close')
  response.writeHead(status, {
    'content-type': 'application/problem+json',
    'content-length': Buffer.byteLength(body),
    'cache-control': 'no-store',
    'proxy-status': `svc-run; error=${proxyError}`,
  })
  endAfter(request, response, body)
}

/** Time for a program to finish sending an unread body, in milliseconds. */
const LINGER_MS = 5_000

/**
 * Ends a response before the request is complete. Closes the connection only after the program has sent
 * its body or disconnected: an earlier close could reset the connection, and the program would lose the
 * response (RFC 9112 section 9.6).
 */
export function endAfter(request: IncomingMessage, response: ServerResponse, body: string): void {
  if (request.complete) return void response.end(body)
  response.write(body)
  response.flushHeaders()
  const end = () => {
    clearTimeout(timer)
    response.end()
  }
  const timer = setTimeout(end, LINGER_MS).unref()
  request.once('close', end)
  request.resume()
}
