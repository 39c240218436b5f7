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
import type { OAuthSecret } from './oauth-secret.js'
import { type EndpointAnswer, judgeEndpointAnswer, type TokenAnswer } from './token-answer.js'

/** Time limit of both client authentication methods together. */
const LIMIT_MS = 8_000
const CONNECT_MS_MAX = 3_000
const ANSWER_BYTES_MAX = 64 * 1024
const ANSWER_DEPTH_MAX = 16
const ORIGINS_MAX = 128

export interface TokenEndpoint {
  /**
   * @param clientAuth the method that this upstream accepted last; null when unknown.
   * Never throws.
   */
  ask(secret: OAuthSecret, clientAuth: ClientAuth | null): Promise<TokenAnswer>
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
    secret: OAuthSecret,
    clientAuth: ClientAuth,
    signal: AbortSignal,
  ): Promise<EndpointAnswer> {
    let answered = false
    try {
      const { statusCode, headers, body } = await upstreams.of(url.origin).request({
        method: 'POST',
        path: url.pathname + url.search,
        ...requestOf(secret, clientAuth),
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
    async ask(secret, clientAuth) {
      const target = judgeTarget(secret.tokenUrl, rules)
      if (target.tag === 'refused') {
        return { tag: 'prohibited', fault: target.fault }
      }
      const signal = AbortSignal.timeout(LIMIT_MS)
      const methods: readonly ClientAuth[] =
        secret.clientSecret === null
          ? ['post']
          : clientAuth === 'post'
            ? ['post', 'basic']
            : ['basic', 'post']
      let answer: TokenAnswer | undefined
      for (const method of methods) {
        const response = await post(target.url, secret, method, signal)
        answer = judgeEndpointAnswer(response, method, clock)
        // Upstreams choose the method (RFC 6749 section 2.3.1). After invalid_client the refresh token is
        // not consumed, so the other method can be tried.
        if (answer.tag !== 'refused' || answer.error !== 'invalid_client') break
      }
      return answer!
    },
    close: () => upstreams.destroy(),
  }
}

function requestOf(secret: OAuthSecret, clientAuth: ClientAuth) {
  const { clientId, clientSecret, refreshToken, scope } = secret
  const form = new URLSearchParams(
    refreshToken === null
      ? { grant_type: 'client_credentials' }
      : { grant_type: 'refresh_token', refresh_token: refreshToken },
  )
  if (scope !== null) form.set('scope', scope)
  const headers: Record<string, string> = {
    accept: 'application/json',
    'accept-encoding': 'identity',
    'content-type': 'application/x-www-form-urlencoded',
    'user-agent': 'svc',
  }
  if (clientSecret !== null && clientAuth === 'basic') {
    // RFC 6749 section 2.3.1: both parts are form-encoded.
    const pair = `${formEncoded(clientId)}:${formEncoded(clientSecret)}`
    headers['authorization'] = `Basic ${Buffer.from(pair).toString('base64')}`
  } else {
    form.set('client_id', clientId)
    if (clientSecret !== null) form.set('client_secret', clientSecret)
  }
  return { headers, body: form.toString() }
}

function formEncoded(text: string): string {
  return new URLSearchParams({ '': text }).toString().slice(1)
}
