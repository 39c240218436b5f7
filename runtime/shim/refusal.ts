/** What `svc run` itself says no with, in the form of the service. docs/run.md, What the program sees. */
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
  request?: IncomingMessage,
): void {
  const body = JSON.stringify({
    type: 'about:blank',
    title: 'Refused by svc run',
    status,
    detail,
    error: CODES[status] ?? 'bad_gateway',
  })
  // What is left of the request is not read.
  if (request !== undefined && !request.complete) response.setHeader('connection', 'close')
  response.writeHead(status, {
    'content-type': 'application/problem+json',
    'content-length': Buffer.byteLength(body),
    'cache-control': 'no-store',
    'proxy-status': `svc-run; error=${proxyError}`,
  })
  response.end(body)
}
