/**
 * Fetches documents of the authorization server: bounded in size and time, without redirects, one request at a time for
 * each address.
 */
import type { Clock } from '../../kernel/clock.js'

const FETCH_MS_MAX = 5_000

/** A document could not be fetched. The request that needed it is answered with 503, not with a challenge. */
export class Unavailable extends Error {
  override readonly name = 'Unavailable'
}

export type Document = {
  readonly text: string
  readonly contentType: string
  /** `max-age` of Cache-Control in seconds, if sent. */
  readonly maxAgeSecs: number | undefined
}

export type FetchLike = (url: string, init: RequestInit) => Promise<Response>

/** A request without a response is sent once more. @throws Unavailable for every failure, and for any status but 200. */
export async function fetchDocument(
  fetch: FetchLike,
  url: string,
  { accept, bytesMax }: { readonly accept: string; readonly bytesMax: number },
): Promise<Document> {
  try {
    const signal = AbortSignal.timeout(FETCH_MS_MAX)
    const ask = () => fetch(url, { headers: { accept }, redirect: 'error', signal })
    // A proxy closes an idle connection at any time, also while a request is on its way.
    const answer = await ask().catch((error: unknown) => {
      if (signal.aborted) throw error
      return ask()
    })
    if (answer.status !== 200) {
      await answer.body?.cancel()
      throw new Error(`status ${answer.status}`)
    }
    const [, age] = /\bmax-age=(\d{1,9})\b/.exec(answer.headers.get('cache-control') ?? '') ?? []
    return {
      text: await boundedText(answer, bytesMax),
      contentType: (answer.headers.get('content-type') ?? '').split(';')[0]!.trim().toLowerCase(),
      maxAgeSecs: age === undefined ? undefined : Number(age),
    }
  } catch (error) {
    throw new Unavailable(`${url} could not be fetched: ${(error as Error).message}`, {
      cause: error,
    })
  }
}

async function boundedText(answer: Response, bytesMax: number): Promise<string> {
  if (answer.body === null) return ''
  const chunks: Uint8Array[] = []
  let length = 0
  for await (const chunk of answer.body as AsyncIterable<Uint8Array>) {
    length += chunk.byteLength
    // Leaving the loop cancels the body.
    if (length > bytesMax) throw new Error(`more than ${bytesMax} bytes`)
    chunks.push(chunk)
  }
  return new TextDecoder('utf-8', { fatal: true }).decode(Buffer.concat(chunks))
}

export type Held<Value> = {
  readonly value: Value
  /** The value is refreshed before the next use from then on. In milliseconds of the monotonic clock. */
  readonly freshUntilMs: number
  /** The value is used until then while it cannot be refreshed. */
  readonly usableUntilMs: number
}

/** A value that is loaded on demand, kept, and refreshed. Concurrent callers share one load. */
export class Cached<Value> {
  #held: Held<Value> | undefined
  #loading: Promise<Value> | undefined
  #attemptedMs = Number.NEGATIVE_INFINITY
  readonly #load: () => Promise<Held<Value>>
  readonly #clock: Clock
  readonly #pauseMs: number

  /** @param pauseMs the minimum time between two loads, also after a failure. */
  constructor(clock: Clock, pauseMs: number, load: () => Promise<Held<Value>>) {
    this.#clock = clock
    this.#pauseMs = pauseMs
    this.#load = load
  }

  /** @throws Unavailable without a usable value. */
  async get(): Promise<Value> {
    const held = this.#held
    const nowMs = this.#clock.monotonicMs()
    if (held !== undefined && nowMs < held.freshUntilMs) return held.value
    const isUsable = held !== undefined && nowMs < held.usableUntilMs
    try {
      return await this.#refresh()
    } catch (error) {
      if (isUsable) return held.value
      throw error
    }
  }

  /** Loads again unless the last load was less than the pause ago. For a value that lacks what is looked for. */
  async again(): Promise<Value> {
    try {
      return await this.#refresh()
    } catch (error) {
      if (this.#held !== undefined) return this.#held.value
      throw error
    }
  }

  #refresh(): Promise<Value> {
    if (this.#loading !== undefined) return this.#loading
    const nowMs = this.#clock.monotonicMs()
    if (nowMs - this.#attemptedMs < this.#pauseMs)
      return Promise.reject(new Unavailable('the last attempt failed or was moments ago'))
    this.#attemptedMs = nowMs
    this.#loading = this.#load()
      .then((held) => {
        this.#held = held
        return held.value
      })
      .finally(() => {
        this.#loading = undefined
      })
    return this.#loading
  }
}
