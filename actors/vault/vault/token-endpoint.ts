/**
 * Asks the token endpoint of an upstream for an access token (RFC 6749 sections 4.4 and 6). Only
 * through the dialer, without redirects, bounded in bytes and time.
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

/** Both ways to show the client's secret are tried within this. */
const LIMIT_MS = 8_000
const CONNECT_MS_MAX = 3_000
const ANSWER_BYTES_MAX = 64 * 1024
const ANSWER_DEPTH_MAX = 16
const ORIGINS_MAX = 128

export interface TokenEndpoint {
  /**
   * @param clientAuth how this upstream took the secret the last time; null: not known yet.
   * Never throws.
   */
  ask(secret: OAuthSecret, clientAuth: ClientAuth | null): Promise<TokenAnswer>
  close(): Promise<void>
}

export type TokenEndpointOptions = {
  readonly settings: EgressSettings
  readonly clock: Clock
  /** Resolver of names. Given by tests. */
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
      const ways: readonly ClientAuth[] =
        secret.clientSecret === null
          ? ['post']
          : clientAuth === 'post'
            ? ['post', 'basic']
            : ['basic', 'post']
      let answer: TokenAnswer | undefined
      for (const way of ways) {
        answer = judgeEndpointAnswer(await post(target.url, secret, way, signal), way, clock)
        // RFC 6749 section 2.3.1 leaves upstreams a choice; a client that was not let in used up
        // nothing.
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
    // RFC 6749 section 2.3.1: both parts are form-encoded first.
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
