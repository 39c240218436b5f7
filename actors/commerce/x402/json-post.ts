/**
 * Posts JSON to a facilitator or chain node that the operator configured, through the dialer, and
 * parses the JSON response. Time and size are bounded, redirects are not followed, and nothing is
 * thrown.
 */
import type { Dispatcher } from 'undici'
import type { Upstreams } from '../../platform/outbound-http/upstreams.js'
import { proxyErrorOf } from '../../platform/outbound-http/failures.js'

const ANSWER_BYTES_MAX = 256 * 1024

export type JsonPost = {
  readonly url: URL
  readonly message: unknown
  readonly timeoutMs: number
  readonly signal?: AbortSignal | undefined
}

export type JsonAnswer =
  | { readonly tag: 'answered'; readonly status: number; readonly json: unknown }
  /**
   * No parsable response. `sent` is false when no connection was established, so that the peer
   * cannot have seen the request.
   */
  | { readonly tag: 'failed'; readonly error: string; readonly sent: boolean }

/** Marks an abort of ours in undici. */
class BrokenOff extends Error {
  override readonly name = 'BrokenOff'
}

export function postJson(upstreams: Upstreams, post: JsonPost): Promise<JsonAnswer> {
  return new Promise((resolve) => {
    const body = Buffer.from(JSON.stringify(post.message), 'utf8')
    const chunks: Buffer[] = []
    let controller: Dispatcher.DispatchController | undefined
    let status: number | undefined
    let bytes = 0
    let sent = false
    let over = false

    const finish = (answer: JsonAnswer) => {
      if (over) return
      over = true
      clearTimeout(timer)
      post.signal?.removeEventListener('abort', onAbort)
      resolve(answer)
    }
    const breakOff = (error: string) => {
      finish({ tag: 'failed', error, sent })
      controller?.abort(new BrokenOff())
    }
    const onAbort = () => breakOff('cancelled')
    const timer = setTimeout(() => breakOff('timeout'), post.timeoutMs)
    if (post.signal?.aborted) return breakOff('cancelled')
    post.signal?.addEventListener('abort', onAbort, { once: true })

    const { url } = post
    const headers = {
      'content-type': 'application/json',
      'content-length': String(body.length),
      'user-agent': 'svc-x402/1',
      accept: 'application/json',
      ...basicAuthorization(url),
    }
    const path = url.pathname + url.search
    try {
      upstreams.of(url.origin).dispatch(
        { method: 'POST', path, headers, body },
        {
          onRequestStart(started) {
            controller = started
            // From here on the bytes may reach the peer, so the outcome is unknown.
            sent = true
            if (over) started.abort(new BrokenOff())
          },
          onResponseStart(_, answered) {
            if (answered >= 200) status ??= answered
          },
          onResponseData(_, chunk) {
            bytes += chunk.length
            if (bytes > ANSWER_BYTES_MAX) breakOff('answer_too_large')
            else chunks.push(chunk)
          },
          onResponseEnd() {
            const json = parsed(Buffer.concat(chunks))
            if (status === undefined) breakOff('no_response')
            else finish({ tag: 'answered', status, json })
          },
          onResponseError: (_, error) =>
            finish({ tag: 'failed', error: proxyErrorOf(error, status !== undefined), sent }),
        },
      )
    } catch (error) {
      finish({ tag: 'failed', error: proxyErrorOf(error, false), sent })
    }
  })
}

/** @returns undefined when the bytes are not JSON. */
function parsed(bytes: Buffer): unknown {
  try {
    return JSON.parse(bytes.toString('utf8')) as unknown
  } catch {
    return undefined
  }
}

function basicAuthorization({ username, password }: URL): { authorization?: string } {
  if (username === '' && password === '') return {}
  const pair = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`
  return { authorization: `Basic ${Buffer.from(pair, 'utf8').toString('base64')}` }
}
