/** What `svc run` itself says no with, in the form of the service. docs/guides/vault/svc-run.md, What the program sees. */
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

/** A problem document, as the service writes them (RFC 9457), with who says it (RFC 9209). */
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

/** How long a program may go on sending what nobody wants, in milliseconds. */
const LINGER_MS = 5_000

/**
 * Ends an answer that does not wait for the request. The connection is closed once the program has
 * sent its body or left: closed on bytes that are still under way it would be reset, and the program
 * would lose the answer (RFC 9112 section 9.6).
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
