/**
 * Requests an access token from an upstream's token endpoint (RFC 6749 sections 4.4 and 6): through the
 * dialer, without redirects, with limits for size and time.
 */
import type { Clock } from '../../../runtime/kernel/clock.js'
import type { ClientAuth } from '../../../storage/vault/managed-tokens.js'
import { proxyErrorOf } from '../../platform/outbound-http/failures.js'
import type { Resolver } from '../../platform/outbound-http/dialer.js'
import { type EgressSettings, outbound } from '../../platform/outbound-http/outbound.js'
import { judgeTarget } from '../../platform/outbound-http/targets.js'
import { createUpstreams } from '../../platform/outbound-http/upstreams.js'
import { parseStrictJson } from '../../platform/jose/strict-json.js'
import { methodsOf, type TokenRequest, tokenRequest } from './token-request.js'
import { type TokenSource, tokenUrlOf } from './token-source.js'
import {
  asOAuth,
  type EndpointAnswer,
  judgeEndpointAnswer,
  type TokenAnswer,
} from './token-answer.js'

/** `ask` takes at most this long, both requests together. */
export const ASK_MS_MAX = 30_000
const REQUESTS_MAX = 2
/** An idle connection may end while a request is sent. Then the request is sent once more. */
const CONNECTION_BROKE = 'connection_terminated'
const CONNECT_MS_MAX = 3_000
const ANSWER_BYTES_MAX = 64 * 1024
const ANSWER_DEPTH_MAX = 16
const ORIGINS_MAX = 128

export interface TokenEndpoint {
  /**
   * @param clientAuth the method that this upstream accepted last; null when unknown.
   * Never throws.
   */
  ask(source: TokenSource, clientAuth: ClientAuth | null): Promise<TokenAnswer>
  close(): Promise<void>
}

type TokenEndpointOptions = {
  readonly settings: EgressSettings
  readonly clock: Clock
  /** DNS resolver, for tests. */
  readonly resolve?: Resolver | undefined
}

export function createTokenEndpoint({
  settings,
  clock,
  resolve,
}: TokenEndpointOptions): TokenEndpoint {
  const { dialer, rules } = outbound(settings, { connectTimeoutMs: CONNECT_MS_MAX, resolve })
  const upstreams = createUpstreams(dialer, ORIGINS_MAX)

  async function post(
    url: URL,
    { headers: sent, body: form }: TokenRequest,
    signal: AbortSignal,
  ): Promise<EndpointAnswer> {
    let answered = false
    try {
      const { statusCode, headers, body } = await upstreams.of(url.origin).request({
        method: 'POST',
        path: url.pathname + url.search,
        headers: sent,
        body: form,
        signal,
      })
      answered = true
      const retryAfter = [headers['retry-after'] ?? []].flat()[0] ?? null
      const chunks: Buffer[] = []
      let bytes = 0
      for await (const chunk of body as AsyncIterable<Buffer>) {
        bytes += chunk.length
        if (bytes > ANSWER_BYTES_MAX) {
          body.on('error', () => undefined).destroy()
          return { tag: 'answer', status: statusCode, retryAfter, document: undefined }
        }
        chunks.push(chunk)
      }
      const document = parseStrictJson(Buffer.concat(chunks), ANSWER_DEPTH_MAX)
      return { tag: 'answer', status: statusCode, retryAfter, document }
    } catch (error) {
      return { tag: 'none', fault: signal.aborted ? 'timeout' : proxyErrorOf(error, answered) }
    }
  }

  return {
    async ask(source, clientAuth) {
      const target = judgeTarget(tokenUrlOf(source).url, rules)
      if (target.tag === 'refused') {
        return { tag: 'prohibited', fault: target.fault }
      }
      const signal = AbortSignal.timeout(ASK_MS_MAX)
      const methods = methodsOf(source, clientAuth)
      let at = 0
      for (let requests = 1; ; requests += 1) {
        const method = methods[at]!
        const request = await tokenRequest(source, method, clock.nowSecs())
        const response = await post(target.url, request, signal)
        const accepted = method === 'client_secret_post' ? 'post' : 'basic'
        const answer = judgeEndpointAnswer(asOAuth(source, response, clock), accepted, clock)
        if (requests === REQUESTS_MAX) return answer
        // Upstreams choose the method (RFC 6749 section 2.3.1). After invalid_client the refresh token is
        // not consumed, so the other method can be tried.
        if (answer.tag === 'refused' && answer.error === 'invalid_client') at += 1
        else if (response.tag !== 'none' || response.fault !== CONNECTION_BROKE) return answer
        if (at === methods.length) return answer
      }
    },
    close: () => upstreams.destroy(),
  }
}
