/**
 * One attempt: signs, posts through the dialer, and looks at the status. No redirect is followed,
 * no cookie kept, and of the answer's body no more read than lets the connection be used again.
 */
import { readFileSync } from 'node:fs'
import type { Dispatcher } from 'undici'
import type { Clock } from '../../../runtime/kernel/clock.js'
import { createDialer, type Resolver } from '../../platform/outbound-http/dialer.js'
import { proxyErrorOf } from '../../platform/outbound-http/failures.js'
import {
  createNameLookup,
  type NameLookupOptions,
} from '../../platform/outbound-http/name-lookup.js'
import { judgeTarget } from '../../platform/outbound-http/targets.js'
import { createUpstreams, type Upstreams } from '../../platform/outbound-http/upstreams.js'
import { type AttemptResult, GONE, readRetryAfter } from './retry-schedule.js'
import type { SignatureHeaders } from './signer.js'
import type { WebhooksSettings } from './settings.js'
import { createSigner } from './signer.js'

export const USER_AGENT = 'svc-webhooks/1'
const CONNECT_TIMEOUT_MS = 5_000
const BODY_BYTES_MAX = 4 * 1024
/** What is left of an answer after its status is waited for this long. */
const BODY_MS_MAX = 1_000
/** Receivers that keep connections open. */
const ORIGINS_MAX = 2_048

export type SenderSettings = Pick<
  WebhooksSettings,
  'max_age_secs' | 'timeout_secs' | 'allow_private_networks' | 'ca_pem_path'
> & {
  readonly nonStandardPorts: boolean
  readonly ownNames: readonly string[]
  /** How the names of receivers are looked up. */
  readonly names?: NameLookupOptions | undefined
}

export type SenderOptions = {
  readonly settings: SenderSettings
  readonly clock: Clock
  /** Resolver of names. Given by tests. */
  readonly resolve?: Resolver | undefined
}

export type Outgoing = {
  readonly tenantId?: string | undefined
  readonly url: string
  readonly secret: string
  /** The secret before the last rotation while both are in force, else null. */
  readonly previousSecret: string | null
  readonly deliveryId: string
  readonly eventType: string
  readonly body: string
}

export interface Sender {
  /** Never throws: what goes wrong is part of the result. */
  send(outgoing: Outgoing, signal: AbortSignal): Promise<AttemptResult>
  close(): Promise<void>
}

export function createSender({ settings, clock, resolve }: SenderOptions): Sender {
  const { allow_private_networks: privateNetworks, ca_pem_path: caPath } = settings
  const upstreams = createUpstreams(
    createDialer({
      privateNetworks,
      ownNames: settings.ownNames,
      dnsOverrides: {},
      ca: caPath === undefined ? undefined : readFileSync(caPath, 'utf8'),
      connectTimeoutMs: CONNECT_TIMEOUT_MS,
      resolve: resolve ?? createNameLookup(settings.names),
    }),
    ORIGINS_MAX,
  )
  const rules = { privateNetworks, nonStandardPorts: settings.nonStandardPorts }
  const timeoutMs = settings.timeout_secs * 1000
  const signer = createSigner()

  return {
    async send(outgoing, signal) {
      const attemptedAt = clock.now()
      const result = (responseStatus: number | null, error: string | null, startMs?: number) => ({
        attemptedAt,
        durationMs: startMs === undefined ? 0 : Math.round(clock.monotonicMs() - startMs),
        responseStatus,
        error,
        retryAfterSecs: null,
      })
      const target = judgeTarget(outgoing.url, rules)
      if (target.tag === 'refused') return result(null, target.fault)
      const payload = Buffer.from(outgoing.body, 'utf8')
      const signed = signer.sign({
        secret: outgoing.secret,
        previousSecret: outgoing.previousSecret,
        timestampSecs: Math.floor(attemptedAt.getTime() / 1000),
        maxAgeSecs: settings.max_age_secs,
        deliveryId: outgoing.deliveryId,
        eventType: outgoing.eventType,
        payload,
      })
      if (signed.tag === 'refused') return result(null, `unsignable_${signed.field}`)
      const startMs = clock.monotonicMs()
      const { tenantId = '' } = outgoing
      const post = {
        tenantId,
        url: target.url,
        headers: signed.headers,
        payload,
        timeoutMs,
        signal,
      }
      const { status, error, retryAfter } = await exchange(upstreams, post)
      return {
        ...result(status, error ?? errorOf(status), startMs),
        retryAfterSecs: readRetryAfter(retryAfter, clock.now()),
      }
    },
    close: () => upstreams.destroy(),
  }
}

/** What to call a status that is not success; null for one that is. */
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

/** Posts once. Settles when the answer has ended, or as much of it as anybody waits for. */
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
      post.signal.removeEventListener('abort', onAbort)
      resolve(outcome)
    }
    /** Ends the exchange from our side, with the status if it has come. */
    const breakOff = (error: string) => {
      finish(answer ?? { status: null, error })
      controller?.abort(new BrokenOff())
    }
    const onAbort = () => breakOff('cancelled')
    let timer = setTimeout(() => breakOff('timeout'), post.timeoutMs)
    if (post.signal.aborted) return breakOff('cancelled')
    post.signal.addEventListener('abort', onAbort, { once: true })

    const options = {
      method: 'POST',
      path: post.url.pathname + post.url.search,
      headers: {
        ...post.headers,
        'content-type': 'application/json',
        'content-length': String(post.payload.length),
        'user-agent': USER_AGENT,
        accept: '*/*',
      },
      body: post.payload,
    } as const
    try {
      upstreams.of(post.url.origin, post.tenantId, post.tenantId).dispatch(options, {
        onRequestStart(started) {
          controller = started
          if (over) started.abort(new BrokenOff())
        },
        onResponseStart(_, status, headers) {
          // Interim answers say nothing of the delivery (RFC 9110 section 15.2).
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

/** Given to undici as the reason of an end that we wanted. */
class BrokenOff extends Error {
  override readonly name = 'BrokenOff'
}
