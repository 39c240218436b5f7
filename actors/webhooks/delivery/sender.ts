/**
 * One attempt: signs, posts through the dialer, and reads the status. Redirects are not followed and
 * cookies are not stored. It reads only as much of the response body as keeps the connection reusable.
 */
import { traceIdOf, tracing } from '../../../runtime/kernel/tracing.js'
import { readFileSync } from 'node:fs'
import type { Dispatcher } from 'undici'
import type { Clock } from '../../../runtime/kernel/clock.js'
import { createDialer, type Resolver } from '../../platform/outbound-http/dialer.js'
import type { ProxySettings } from '../../platform/outbound-http/proxy-settings.js'
import { proxyErrorOf } from '../../platform/outbound-http/failures.js'
import {
  createNameLookup,
  type NameLookupOptions,
} from '../../platform/outbound-http/name-lookup.js'
import { judgeTarget, type TargetVerdict } from '../../platform/outbound-http/targets.js'
import { createUpstreams, type Upstreams } from '../../platform/outbound-http/upstreams.js'
import type { TenantGroups } from '../../platform/tenant-groups.js'
import type { AttemptResult, Outgoing, Sender } from './protocol.js'
import { GONE, readRetryAfter } from './retry-schedule.js'
import type { WebhooksSettings } from './settings.js'
import type { SignatureHeaders } from '../signer/protocol.js'

export const USER_AGENT = 'svc-webhooks/1'
const CONNECT_TIMEOUT_MS = 5_000
const BODY_BYTES_MAX = 4 * 1024
/** Maximum time to read the response body after the status. */
const BODY_MS_MAX = 1_000
/** Receivers with open connections. */
const ORIGINS_MAX = 2_048

export type SenderSettings = Pick<
  WebhooksSettings,
  'max_age_secs' | 'timeout_secs' | 'allow_private_networks' | 'ca_pem_path'
> & {
  readonly nonStandardPorts: boolean
  readonly ownNames: readonly string[]
  /** `[proxy]`. */
  readonly proxy?: ProxySettings | undefined
  /** Options of the DNS look-ups. */
  readonly names?: NameLookupOptions | undefined
}

type SenderOptions = {
  readonly settings: SenderSettings
  readonly clock: Clock
  /** Default: tenants are in no group. */
  readonly groups?: TenantGroups | undefined
  /** DNS resolver. Injected by tests. */
  readonly resolve?: Resolver | undefined
}

export function createSender({ settings, clock, groups, resolve }: SenderOptions): Sender {
  const { allow_private_networks: privateNetworks, ca_pem_path: caPath } = settings
  const upstreams = createUpstreams(
    createDialer({
      privateNetworks,
      ownNames: settings.ownNames,
      dnsOverrides: {},
      ca: caPath === undefined ? undefined : readFileSync(caPath, 'utf8'),
      connectTimeoutMs: CONNECT_TIMEOUT_MS,
      proxy: settings.proxy,
      resolve: resolve ?? createNameLookup({ ...settings.names, groups }),
    }),
    ORIGINS_MAX,
  )
  const rules = { privateNetworks, nonStandardPorts: settings.nonStandardPorts }
  const timeoutMs = settings.timeout_secs * 1000
  /** Verdicts by URL. The rules never change. */
  const judged = new Map<string, TargetVerdict>()
  const judge = (url: string): TargetVerdict => {
    let verdict = judged.get(url)
    if (verdict === undefined) {
      verdict = judgeTarget(url, rules)
      if (judged.size >= ORIGINS_MAX) judged.delete(judged.keys().next().value!)
      judged.set(url, verdict)
    }
    return verdict
  }

  return {
    async send(outgoing, signer, signal) {
      const attemptedAt = clock.now()
      const unsent = (error: string): AttemptResult => ({
        attemptedAt,
        durationMs: 0,
        responseStatus: null,
        error,
        retryAfterSecs: null,
      })
      const target = judge(outgoing.url)
      if (target.tag === 'refused') return unsent(target.fault)
      const payload = Buffer.from(outgoing.body, 'utf8')
      const { tenantId, webhookId, secret, previousSecret, deliveryId, eventType } = outgoing
      const timestampSecs = Math.floor(attemptedAt.getTime() / 1000)
      const signed = await signer.signDelivery({
        tenantId,
        webhookId,
        secret,
        previousSecret,
        timestampSecs,
        maxAgeSecs: settings.max_age_secs,
        deliveryId,
        eventType,
        payload,
      })
      if (signed.tag === 'refused') return unsent(`unsignable_${signed.field}`)
      const startMs = clock.monotonicMs()
      const post = {
        tenantId,
        url: target.url,
        headers: signed.headers,
        payload,
        timeoutMs,
        signal,
      }
      const { status, error, retryAfter } = await traced(outgoing, () => exchange(upstreams, post))
      return {
        attemptedAt,
        durationMs: Math.round(clock.monotonicMs() - startMs),
        responseStatus: status,
        error: error ?? errorOf(status),
        retryAfterSecs: readRetryAfter(retryAfter, clock.now()),
      }
    },
    close: () => upstreams.destroy(),
  }
}

/** The span of an attempt. It belongs to the trace of the request that caused the event. */
async function traced(
  { body, eventType, deliveryId }: Outgoing,
  post: () => Promise<Answer>,
): Promise<Answer> {
  if (tracing === undefined) return post()
  const requestId = REQUEST_ID.exec(body)?.[1]
  const span = tracing.begin(`webhook ${eventType}`, {
    traceId: requestId === undefined ? undefined : traceIdOf(requestId),
    attributes: {
      'svc.webhook.delivery_id': deliveryId,
      ...(requestId === undefined ? {} : { 'svc.request_id': requestId }),
    },
  })
  const answer = await tracing.within(span, post)
  span.end(answer.error ?? errorOf(answer.status) ?? undefined)
  return answer
}

/** The member of the envelope's data. A request id has no characters that JSON escapes. */
const REQUEST_ID = /"request_id":"([A-Za-z0-9._-]{1,128})"/

/** The error code of a status. Null for success. */
function errorOf(status: number | null): string | null {
  if (status === null) return 'no_response'
  if (status >= 200 && status < 300) return null
  if (status === GONE) return 'gone'
  return status < 400 ? 'redirect' : 'unexpected_status'
}

type Post = {
  readonly tenantId: string
  readonly url: URL
  readonly headers: SignatureHeaders
  readonly payload: Buffer
  readonly timeoutMs: number
  readonly signal: AbortSignal
}
type Answer = {
  readonly status: number | null
  readonly error: string | null
  readonly retryAfter?: string | undefined
}

/** Posts once. Settles when the response has ended or the read limit is reached. */
function exchange(upstreams: Upstreams, post: Post): Promise<Answer> {
  return new Promise((resolve) => {
    let controller: Dispatcher.DispatchController | undefined
    let answer: Answer | undefined
    let bodyBytes = 0
    let over = false
    const finish = (outcome: Answer) => {
      if (over) return
      over = true
      clearTimeout(timer)
      running.delete(onAbort)
      resolve(outcome)
    }
    /** Aborts the exchange, keeping the status if it has arrived. */
    const breakOff = (error: string) => {
      finish(answer ?? { status: null, error })
      controller?.abort(new AbortedByUs())
    }
    const onAbort = () => breakOff('cancelled')
    const running = listenersOf(post.signal)
    let timer = setTimeout(() => breakOff('timeout'), post.timeoutMs)
    if (post.signal.aborted) return breakOff('cancelled')
    running.add(onAbort)

    const options = {
      method: 'POST',
      path: post.url.pathname + post.url.search,
      headers: headersOf(post),
      body: post.payload,
    } as const
    try {
      upstreams.of(post.url.origin, post.tenantId, post.tenantId).dispatch(options, {
        onRequestStart(started) {
          controller = started
          if (over) started.abort(new AbortedByUs())
        },
        onResponseStart(_, status, headers) {
          // Interim responses are ignored (RFC 9110 section 15.2).
          if (status < 200 || over || answer !== undefined) return
          const retryAfter = [headers['retry-after']].flat()[0]
          answer = { status, error: null, retryAfter }
          clearTimeout(timer)
          timer = setTimeout(() => breakOff('timeout'), BODY_MS_MAX)
        },
        onResponseData(_, chunk) {
          bodyBytes += chunk.length
          if (bodyBytes > BODY_BYTES_MAX) breakOff('body')
        },
        onResponseEnd: () => finish(answer ?? { status: null, error: 'no_response' }),
        onResponseError: (_, error) =>
          finish(answer ?? { status: null, error: proxyErrorOf(error, false) }),
      })
    } catch (error) {
      finish({ status: null, error: proxyErrorOf(error, false) })
    }
  })
}

/** Names and values in turn: a spread object with further members costs four microseconds more. */
function headersOf({ headers, payload }: Post): string[] {
  const fields: string[] = []
  for (const name in headers) fields.push(name, headers[name as keyof SignatureHeaders])
  fields.push(
    'content-type',
    'application/json',
    'content-length',
    String(payload.length),
    'user-agent',
    USER_AGENT,
    'accept',
    '*/*',
  )
  return fields
}

const listeners = new WeakMap<AbortSignal, Set<() => void>>()

/** What an abort of the signal ends: a set behind one listener, because a signal searches its list for each removal. */
function listenersOf(signal: AbortSignal): Set<() => void> {
  let known = listeners.get(signal)
  if (known === undefined) {
    const set = new Set<() => void>()
    signal.addEventListener('abort', () => set.forEach((listener) => listener()), { once: true })
    listeners.set(signal, set)
    known = set
  }
  return known
}

/** Marks an abort of ours in undici. */
class AbortedByUs extends Error {
  override readonly name = 'AbortedByUs'
}
