/**
 * Fetches JSON documents of other parties: key sets, sector identifier files, DID documents, metadata.
 * Over https, through the dialer, without redirects, with limits for size and time. Documents are cached,
 * and concurrent callers share a request. Callers that wait have places by site.
 */
import type { Clock } from '../../../runtime/kernel/clock.js'
import { parseStrictJson } from '../jose/strict-json.js'
import { discard, readBody } from './bounded-body.js'
import type { Resolver } from './dialer.js'
import { proxyErrorOf } from './failures.js'
import { type EgressSettings, outbound } from './outbound.js'
import { SHARE_EXHAUSTED, sitePlaces } from './site-places.js'
import { type FaultOf, faultsUnder, judgeTarget } from './targets.js'
import { createUpstreams, type Upstreams } from './upstreams.js'

const DOCUMENT_BYTES_MAX = 64 * 1024
const DOCUMENT_DEPTH_MAX = 16
const FETCH_MS_MAX = 4_000
const CONNECT_MS_MAX = 3_000
const ORIGINS_MAX = 64
const ENTRIES_MAX = 1_000
/** Cache lifetime without `max-age`, and the limits of `max-age`. */
const KEPT_MS_DEFAULT = 5 * 60_000
const KEPT_MS_MIN = 60_000
const KEPT_MS_MAX = 60 * 60_000
/** Failures are cached for this long, which limits the request rate. */
const FAILURE_KEPT_MS = 15_000
/** Minimum time between two refreshes of a document. */
const REFRESH_MS_MIN = 15_000
const BUSY: Fetched = { tag: 'failed', fault: SHARE_EXHAUSTED }

export type Fetched =
  | { readonly tag: 'fetched'; readonly document: unknown }
  /** `fault`: a `UrlFault`, an error type of RFC 9209, or a fault of the response. */
  | { readonly tag: 'failed'; readonly fault: string }

export interface Documents {
  /**
   * Fetches the document of an https URL. Never throws.
   * @param refresh bypasses the cache, at most once per REFRESH_MS_MIN. For a document without the
   * expected content, such as a key set without the key.
   */
  fetch(url: string, options?: { readonly refresh?: boolean | undefined }): Promise<Fetched>
  /** The fault of a URL, without a request; undefined for a valid one. */
  faultOf: FaultOf
  close(): Promise<void>
}

type DocumentsOptions = {
  readonly settings: EgressSettings
  readonly clock: Clock
  /** DNS resolver, for tests. */
  readonly resolve?: Resolver | undefined
}

type Entry = { readonly answer: Promise<Fetched>; readonly atMs: number; keptUntilMs: number }
type Answer = { readonly fetched: Fetched; readonly keptMs: number }

export function createDocuments({ settings, clock, resolve }: DocumentsOptions): Documents {
  const { dialer, rules } = outbound(settings, { connectTimeoutMs: CONNECT_MS_MAX, resolve })
  const upstreams = createUpstreams(dialer, ORIGINS_MAX)
  const entries = new Map<string, Entry>()
  const places = sitePlaces('documents')

  function begin(url: URL): Promise<Fetched> {
    const atMs = clock.monotonicMs()
    const response = get(upstreams, url)
    const entry: Entry = {
      answer: response.then(({ fetched }) => fetched),
      atMs,
      // Concurrent callers wait for the same response.
      keptUntilMs: Infinity,
    }
    entries.delete(url.href)
    if (entries.size >= ENTRIES_MAX) entries.delete(entries.keys().next().value!)
    entries.set(url.href, entry)
    void response.then(({ keptMs }) => (entry.keptUntilMs = clock.monotonicMs() + keptMs))
    return entry.answer
  }

  return {
    fetch(text, { refresh = false } = {}) {
      const target = judgeTarget(text, rules)
      if (target.tag === 'refused') return Promise.resolve(failed(target.fault))
      const known = entries.get(target.url.href)
      const nowMs = clock.monotonicMs()
      const stale =
        known === undefined ||
        known.keptUntilMs <= nowMs ||
        (refresh && nowMs - known.atMs >= REFRESH_MS_MIN)
      // What is known takes no place, however many ask for it.
      if (!stale && known.keptUntilMs !== Infinity) return known.answer
      return places(target.url, BUSY, () => (stale ? begin(target.url) : known.answer))
    },
    faultOf: faultsUnder(rules),
    close: () => upstreams.destroy(),
  }
}

async function get(upstreams: Upstreams, url: URL): Promise<Answer> {
  const signal = AbortSignal.timeout(FETCH_MS_MAX)
  let answered = false
  try {
    const { statusCode, headers, body } = await upstreams.of(url.origin).request({
      method: 'GET',
      path: url.pathname + url.search,
      headers: { accept: 'application/json, */*;q=0.1', 'accept-encoding': 'identity' },
      signal,
    })
    answered = true
    const refuse = (fault: string): Answer => {
      discard(body)
      return { fetched: failed(fault), keptMs: FAILURE_KEPT_MS }
    }
    if (statusCode !== 200) return refuse('unexpected_status')
    if (headers['content-encoding'] !== undefined) return refuse('content_encoding')
    const bytes = await readBody(body, DOCUMENT_BYTES_MAX)
    if (bytes === undefined) return refuse('http_response_body_size')
    const document = parseStrictJson(bytes, DOCUMENT_DEPTH_MAX)
    if (document === undefined) return refuse('not_json')
    return { fetched: { tag: 'fetched', document }, keptMs: keptMs(headers['cache-control']) }
  } catch (error) {
    const fault = signal.aborted ? 'timeout' : proxyErrorOf(error, answered)
    return { fetched: failed(fault), keptMs: FAILURE_KEPT_MS }
  }
}

/** The lifetime by `max-age`, within limits (RFC 9111 section 5.2.2.1). */
function keptMs(cacheControl: string | string[] | undefined): number {
  const maxAge = /(?:^|[\s,])max-age="?(\d{1,9})/i.exec([cacheControl ?? ''].flat().join(','))?.[1]
  if (maxAge === undefined) return KEPT_MS_DEFAULT
  return Math.min(Math.max(Number(maxAge) * 1000, KEPT_MS_MIN), KEPT_MS_MAX)
}

function failed(fault: string): Fetched {
  return { tag: 'failed', fault }
}
