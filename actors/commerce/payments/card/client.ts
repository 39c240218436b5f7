/**
 * HTTP client for a card provider with a Stripe-compatible API: form requests, JSON responses, a
 * bearer key and one `Idempotency-Key` per creation. Time, response size and concurrency are
 * bounded. Redirects are not followed. A call returns a final answer or throws. After
 * `ProviderUnavailable` the outcome is unknown.
 */
import { discard, readBody } from '../../../platform/outbound-http/bounded-body.js'
import type { Connector } from '../../../platform/outbound-http/dialer.js'
import { proxyErrorOf } from '../../../platform/outbound-http/failures.js'
import { createUpstreams } from '../../../platform/outbound-http/upstreams.js'
import type { TenantGroups } from '../../../platform/tenant-groups.js'
import {
  FairShare,
  isRefused,
  type ShareCounts,
} from '../../../../runtime/kernel/fairness/fair-share.js'
import { limitedTo } from '../../../../runtime/kernel/clock.js'

/** Objects of the provider are a few KiB. A list of 100 refunds is about 80 KiB. */
const ANSWER_BYTES_MAX = 1024 * 1024
const CALLS_MAX = 64
const CALLS_PER_TENANT_MAX = 16
/** More calls are refused without waiting. The payment stays pending and is looked up later. */
const WAITING_PER_TENANT_MAX = 64
const CODE = /^[a-z0-9_]{1,64}$/
const ID = /^[A-Za-z0-9_]{1,255}$/

/** The idempotency key was used before with other parameters. */
export const KEY_REUSED = 'idempotency_key_reused'

/** The provider returned no final answer. The outcome is unknown. */
export class ProviderUnavailable extends Error {
  override readonly name = 'ProviderUnavailable'
  /** An error type of RFC 9209, `timeout`, `busy`, or `status_` followed by the status. */
  readonly fault: string

  constructor(fault: string) {
    super(`the card provider is unavailable: ${fault}`)
    this.fault = fault
  }

  /**
   * True if the provider stores this error under the idempotency key. A retry then needs another
   * key.
   */
  get isKept(): boolean {
    return this.fault === KEY_REUSED || this.fault.startsWith('status_5')
  }
}

export type Members = Readonly<Record<string, unknown>>

export type ProviderAnswer =
  | { readonly tag: 'ok'; readonly object: Members }
  /** A permanent refusal. `error` is the provider's error object. */
  | { readonly tag: 'refused'; readonly code: string; readonly error: Members }

type ProviderCall = {
  /**
   * The tenant that the call is counted against. Empty for calls about an object of an unknown
   * tenant.
   */
  readonly tenantId: string
  readonly method: 'GET' | 'POST'
  /** Path below the base address, such as `/v1/refunds`. */
  readonly path: string
  /**
   * Request parameters: `{a: {b: 1}, c: [2]}` becomes `a[b]=1&c[0]=2`. Null and undefined are left
   * out.
   */
  readonly params?: Members | undefined
  readonly idempotencyKey?: string | undefined
  readonly signal: AbortSignal
}

export interface CardClient {
  /** @throws {ProviderUnavailable} */
  call(call: ProviderCall): Promise<ProviderAnswer>
  close(): Promise<void>
}

type CardClientOptions = {
  readonly apiBaseUrl: string
  readonly secretKey: string
  /** Timeout of one call, in milliseconds. */
  readonly timeoutMs: number
  readonly connector: Connector
  readonly countCall: (outcome: 'ok' | 'refused' | 'unavailable') => void
  readonly counts?: ShareCounts | undefined
  readonly groups?: Pick<TenantGroups, 'of'> | undefined
}

export function createCardClient(options: CardClientOptions): CardClient {
  const { apiBaseUrl, secretKey, timeoutMs, connector, countCall, groups } = options
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
      try {
        return await limitedTo(timeoutMs, call.signal, async (signal) => {
          const { tenantId } = call
          const within = tenantId === '' ? undefined : { groups: await groups?.of(tenantId) }
          const release = await calls.acquire([tenantId], 1, signal, within).catch(() => undefined)
          if (release === undefined) throw new ProviderUnavailable('timeout')
          if (isRefused(release)) throw new ProviderUnavailable('busy')
          try {
            const answer = await ask({ ...call, signal })
            countCall(answer.tag)
            return answer
          } finally {
            release()
          }
        })
      } catch (error) {
        countCall('unavailable')
        throw error
      }
    },
    close: () => upstreams.destroy(),
  }
}

/** Statuses that refuse a request permanently. Every other status leaves the outcome unknown. */
const REFUSALS: ReadonlySet<number> = new Set([400, 402, 404])

/** Exported for property tests. @throws {ProviderUnavailable} */
export function judgeAnswer(status: number, bytes: Uint8Array): ProviderAnswer {
  const json = membersOf(parsed(bytes))
  if (status === 200 && json !== undefined) return { tag: 'ok', object: json }
  const error = membersOf(json?.['error'])
  if (!REFUSALS.has(status) || error === undefined) {
    throw new ProviderUnavailable(status === 200 ? 'not_json' : `status_${status}`)
  }
  // Another request used the same key with other parameters. The outcome of that request is
  // unknown.
  if (error['type'] === 'idempotency_error') throw new ProviderUnavailable(KEY_REUSED)
  return { tag: 'refused', code: codeOf(error), error }
}

/**
 * The bank's decline code, otherwise the provider's error code. Only values in the form of a code
 * are returned.
 */
function codeOf(error: Members): string {
  for (const value of [error['decline_code'], error['code'], error['type']]) {
    if (typeof value === 'string' && CODE.test(value)) return value
  }
  return 'refused'
}

/** An id issued by the provider. @returns undefined when the value is not in the form of an id. */
export function idOf(value: unknown): string | undefined {
  return typeof value === 'string' && ID.test(value) ? value : undefined
}

/** The id in a member, which is an object or its id depending on `expand`. */
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

/** Encodes application/x-www-form-urlencoded with the provider's nested names. */
export function formOf(params: Members): string {
  const form = new URLSearchParams()
  const add = (name: string, value: unknown): void => {
    if (value === null || value === undefined) return
    if (Array.isArray(value)) value.forEach((item, index) => add(`${name}[${index}]`, item))
    else if (typeof value === 'object') {
      for (const [key, item] of Object.entries(value)) add(`${name}[${key}]`, item)
    } else form.append(name, String(value))
  }
  for (const [name, value] of Object.entries(params)) add(name, value)
  return form.toString()
}
