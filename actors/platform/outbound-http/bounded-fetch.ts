/**
 * A `fetch` for libraries that make requests themselves, such as an OpenID Connect client: https only,
 * through the dialer, without redirects, with limits for size and time. A response is complete or an
 * error.
 */
import { limitedTo } from '../../../runtime/kernel/clock.js'
import { discard, readBody } from './bounded-body.js'
import type { Resolver } from './dialer.js'
import { proxyErrorOf } from './failures.js'
import { type EgressSettings, outbound } from './outbound.js'
import { judgeTarget } from './targets.js'
import { createUpstreams } from './upstreams.js'

const CONNECT_MS_MAX = 3_000
const ORIGINS_MAX = 64

export type BoundedFetch = (
  url: string,
  init: {
    readonly method: string
    readonly headers?: Readonly<Record<string, string>> | undefined
    readonly body?: unknown
    readonly signal?: AbortSignal | undefined
  },
) => Promise<Response>

/** `fault`: a `UrlFault`, an error type of RFC 9209, or a fault of the response. */
export class FetchFailed extends Error {
  override readonly name = 'FetchFailed'
  readonly fault: string

  constructor(fault: string) {
    super(`request failed: ${fault}`)
    this.fault = fault
  }
}

type BoundedFetchOptions = {
  readonly settings: EgressSettings
  /** Limit of the response body. */
  readonly answerBytesMax: number
  /** Time limit of a request, in addition to the caller's signal. */
  readonly timeoutMs: number
  /** DNS resolver, for tests. */
  readonly resolve?: Resolver | undefined
}

/** `fetch` throws {FetchFailed} for everything but a complete response. */
export function createBoundedFetch({
  settings,
  answerBytesMax,
  timeoutMs,
  resolve,
}: BoundedFetchOptions): { readonly fetch: BoundedFetch; close(): Promise<void> } {
  const { dialer, rules } = outbound(settings, {
    connectTimeoutMs: CONNECT_MS_MAX,
    http2: true,
    resolve,
  })
  const upstreams = createUpstreams(dialer, ORIGINS_MAX, { http2: true })

  return {
    async fetch(text, { method, headers = {}, body, signal: outer }) {
      const target = judgeTarget(text, rules)
      if (target.tag === 'refused') throw new FetchFailed(target.fault)
      const { url } = target
      return limitedTo(timeoutMs, outer, async (signal) => {
        let answered = false
        try {
          const answer = await upstreams.of(url.origin).request({
            method: method as 'GET',
            path: url.pathname + url.search,
            headers: { ...headers, 'accept-encoding': 'identity' },
            body: bodyOf(body),
            signal,
          })
          answered = true
          if (answer.headers['content-encoding'] !== undefined) {
            discard(answer.body)
            throw new FetchFailed('content_encoding')
          }
          const bytes = await readBody(answer.body, answerBytesMax)
          if (bytes === undefined) throw new FetchFailed('http_response_body_size')
          return responseOf(answer.statusCode, answer.headers, bytes)
        } catch (error) {
          if (error instanceof FetchFailed) throw error
          throw new FetchFailed(signal.aborted ? 'timeout' : proxyErrorOf(error, answered))
        }
      })
    },
    close: () => upstreams.destroy(),
  }
}

function bodyOf(body: unknown): string | null {
  if (body === undefined || body === null) return null
  if (typeof body === 'string') return body
  if (body instanceof URLSearchParams) return body.toString()
  throw new FetchFailed('request_body')
}

/** Statuses for which `Response` must have no body. */
const BODILESS = new Set([204, 205, 304])

function responseOf(
  status: number,
  headers: Readonly<Record<string, string | string[] | undefined>>,
  body: Buffer,
): Response {
  if (status < 200 || status > 599) throw new FetchFailed('unexpected_status')
  const pairs = Object.entries(headers).flatMap(([name, value]) =>
    [value ?? []].flat().map((text): [string, string] => [name, text]),
  )
  return new Response(BODILESS.has(status) ? null : new Uint8Array(body), {
    status,
    headers: pairs.filter(([name]) => !name.startsWith(':')),
  })
}
