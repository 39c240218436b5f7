/**
 * HTTP client of a card provider that has the API of Stripe: forms out, JSON back, a bearer key, an
 * `Idempotency-Key` per creation. Bounded in time, bytes and calls at once; no redirect is followed. An
 * answer is final or an exception: a caller that gets `ProviderUnavailable` does not know the outcome.
 */
import { discard, readBody } from '../../platform/outbound-http/bounded-body.js'
import type { Connector } from '../../platform/outbound-http/dialer.js'
import { proxyErrorOf } from '../../platform/outbound-http/failures.js'
import { createUpstreams } from '../../platform/outbound-http/upstreams.js'
import {
  FairShare,
  isRefused,
  type ShareCounts,
} from '../../../runtime/kernel/fairness/fair-share.js'

/** Objects of the provider are a few KiB; a list of 100 refunds is some 80. */
const ANSWER_BYTES_MAX = 1024 * 1024
const CALLS_MAX = 64
const CALLS_PER_TENANT_MAX = 16
/** More are refused at once: the payment stays pending and is looked up later. */
const WAITING_PER_TENANT_MAX = 64
const CODE = /^[a-z0-9_]{1,64}$/
const ID = /^[A-Za-z0-9_]{1,255}$/

/** A call with this idempotency key came before, with other parameters. */
export const KEY_REUSED = 'idempotency_key_reused'

/** No final answer: nothing is known of what the provider did. */
export class ProviderUnavailable extends Error {
  override readonly name = 'ProviderUnavailable'
  /** An error type of RFC 9209, `timeout`, `busy`, or `status_` and the status. */
  readonly fault: string

  constructor(fault: string) {
    super(`the card provider gave no answer: ${fault}`)
    this.fault = fault
  }

  /** The provider keeps such an answer under its idempotency key: only another key gets another. */
  get isKept(): boolean {
    return this.fault === KEY_REUSED || this.fault.startsWith('status_5')
  }
}

export type Members = Readonly<Record<string, unknown>>

export type ProviderAnswer =
  | { readonly tag: 'ok'; readonly object: Members }
  /** A refusal for good. `error` is the provider's error object. */
  | { readonly tag: 'refused'; readonly code: string; readonly error: Members }

export type ProviderCall = {
  /** Whose share of the calls it takes; empty where the provider has named no tenant. */
  readonly tenantId: string
  readonly method: 'GET' | 'POST'
  /** Below the base address, such as `/v1/refunds`. */
  readonly path: string
  /** Nested: `{a: {b: 1}, c: [2]}` becomes `a[b]=1&c[0]=2`. Null and undefined are left out. */
  readonly params?: Members | undefined
  readonly idempotencyKey?: string | undefined
  readonly signal: AbortSignal
}

export interface CardClient {
  /** @throws {ProviderUnavailable} */
  call(call: ProviderCall): Promise<ProviderAnswer>
  close(): Promise<void>
}

export type CardClientOptions = {
  readonly apiBaseUrl: string
  readonly secretKey: string
  /** Of one call, in milliseconds. */
  readonly timeoutMs: number
  readonly connector: Connector
  /** Counts calls by what became of them: `ok`, `refused` or `unavailable`. */
  readonly called: (outcome: 'ok' | 'refused' | 'unavailable') => void
  readonly counts?: ShareCounts | undefined
}

export function createCardClient(options: CardClientOptions): CardClient {
  const { apiBaseUrl, secretKey, timeoutMs, connector, called } = options
  const base = new URL(apiBaseUrl)
  const prefix = base.pathname.replace(/\/+$/, '')
  const upstreams = createUpstreams(connector)
  const calls = new FairShare({
    resource: 'card_calls',
    total: CALLS_MAX,
    levels: [{ name: 'tenant', max: CALLS_PER_TENANT_MAX }],
    waitingPerKeyMax: WAITING_PER_TENANT_MAX,
    counts: options.counts,
  })

  async function ask({ method, path, params, idempotencyKey, signal }: ProviderCall) {
    const fields = formOf(params ?? {})
    const query = method === 'GET' && fields !== '' ? `?${fields}` : ''
    let answered = false
    try {
      const { statusCode, headers, body } = await upstreams.of(base.origin).request({
        method,
        path: prefix + path + query,
        headers: {
          authorization: `Bearer ${secretKey}`,
          accept: 'application/json',
          'accept-encoding': 'identity',
          'user-agent': 'svc-commerce/1',
          ...(method === 'POST' ? { 'content-type': 'application/x-www-form-urlencoded' } : {}),
          ...(idempotencyKey === undefined ? {} : { 'idempotency-key': idempotencyKey }),
        },
        body: method === 'POST' ? fields : null,
        signal,
      })
      answered = true
      if (headers['content-encoding'] !== undefined) {
        discard(body)
        throw new ProviderUnavailable('content_encoding')
      }
      const bytes = await readBody(body, ANSWER_BYTES_MAX)
      if (bytes === undefined) throw new ProviderUnavailable('http_response_body_size')
      return judgeAnswer(statusCode, bytes)
    } catch (error) {
      if (error instanceof ProviderUnavailable) throw error
      throw new ProviderUnavailable(signal.aborted ? 'timeout' : proxyErrorOf(error, answered))
    }
  }

  return {
    async call(call) {
      const signal = AbortSignal.any([call.signal, AbortSignal.timeout(timeoutMs)])
      try {
        const release = await calls.acquire([call.tenantId], 1, signal).catch(() => undefined)
        if (release === undefined) throw new ProviderUnavailable('timeout')
        if (isRefused(release)) throw new ProviderUnavailable('busy')
        try {
          const answer = await ask({ ...call, signal })
          called(answer.tag)
          return answer
        } finally {
          release()
        }
      } catch (error) {
        called('unavailable')
        throw error
      }
    },
    close: () => upstreams.destroy(),
  }
}

/** Statuses that refuse a request for good. All others say nothing of what the provider did. */
const REFUSALS: ReadonlySet<number> = new Set([400, 402, 404])

/**
 * Exported for its properties.
 * @throws {ProviderUnavailable}
 */
export function judgeAnswer(status: number, bytes: Uint8Array): ProviderAnswer {
  const json = membersOf(parsed(bytes))
  if (status === 200 && json !== undefined) return { tag: 'ok', object: json }
  const error = membersOf(json?.['error'])
  if (!REFUSALS.has(status) || error === undefined) {
    throw new ProviderUnavailable(status === 200 ? 'not_json' : `status_${status}`)
  }
  // Another request with the same key and other parameters: the first one's outcome is not known.
  if (error['type'] === 'idempotency_error') throw new ProviderUnavailable(KEY_REUSED)
  return { tag: 'refused', code: codeOf(error), error }
}

/** What the bank said, else what the provider said; only what has the shape of a code. */
function codeOf(error: Members): string {
  for (const value of [error['decline_code'], error['code'], error['type']]) {
    if (typeof value === 'string' && CODE.test(value)) return value
  }
  return 'refused'
}

/** An id of the provider; undefined for anything that has not the shape of one. */
export function idOf(value: unknown): string | undefined {
  return typeof value === 'string' && ID.test(value) ? value : undefined
}

/** Of an object or of its id: a member may be either, as `expand` says. */
export function idIn(value: unknown): string | undefined {
  return idOf(value) ?? idOf(membersOf(value)?.['id'])
}

export function membersOf(value: unknown): Members | undefined {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return undefined
  return value as Members
}

function parsed(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(Buffer.from(bytes).toString('utf8')) as unknown
  } catch {
    return undefined
  }
}

/** application/x-www-form-urlencoded with the nested names of the provider. */
export function formOf(params: Members): string {
  const form = new URLSearchParams()
  const add = (name: string, value: unknown): void => {
    if (value === null || value === undefined) return
    if (Array.isArray(value)) value.forEach((one, index) => add(`${name}[${index}]`, one))
    else if (typeof value === 'object') {
      for (const [key, one] of Object.entries(value)) add(`${name}[${key}]`, one)
    } else form.append(name, String(value))
  }
  for (const [name, value] of Object.entries(params)) add(name, value)
  return form.toString()
}
