/**
 * Posts JSON to a facilitator or chain node that the operator configured, through the dialer, and
 * parses the JSON response. Time and size are bounded, redirects are not followed, and nothing is
 * thrown.
 */
import type { Dispatcher } from 'undici'
import { proxyErrorOf } from './failures.js'
import type { Upstreams } from './upstreams.js'

const ANSWER_BYTES_MAX = 256 * 1024
/** The error of an answer that is larger than that. */
export const ANSWER_TOO_LARGE = 'answer_too_large'

type JsonPost = {
  readonly url: URL
  readonly message: unknown
  readonly timeoutMs: number
  /** Default: 256 KiB. */
  readonly answerBytesMax?: number | undefined
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
class AbortedByUs extends Error {
  override readonly name = 'AbortedByUs'
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
      controller?.abort(new AbortedByUs())
    }
    const onAbort = () => breakOff('cancelled')
    const timer = setTimeout(() => breakOff('timeout'), post.timeoutMs)
    if (post.signal?.aborted) return breakOff('cancelled')
    post.signal?.addEventListener('abort', onAbort, { once: true })

    const { url, answerBytesMax = ANSWER_BYTES_MAX } = post
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
            if (over) started.abort(new AbortedByUs())
          },
          onResponseStart(_, answered) {
            if (answered >= 200) status ??= answered
          },
          onResponseData(_, chunk) {
            bytes += chunk.length
            if (bytes > answerBytesMax) breakOff(ANSWER_TOO_LARGE)
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
