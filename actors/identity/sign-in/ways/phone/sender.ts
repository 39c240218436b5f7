/**
 * Sends text messages: to the log, to an HTTP endpoint of the operator, or to an API of Twilio's shape. Requests use
 * the outbound dialer, follow no redirects, and are bounded in bytes and time. A message is attempted up to three
 * times with one id, and is lost when the process ends before that: the user requests another one.
 */
import { createHmac } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Registry } from 'prom-client'
import type { Logger } from '../../../../../runtime/kernel/log.js'
import { counter } from '../../../../platform/metrics.js'
import { readBody } from '../../../../platform/outbound-http/bounded-body.js'
import { type EgressSettings, outbound } from '../../../../platform/outbound-http/outbound.js'
import { judgeTarget } from '../../../../platform/outbound-http/targets.js'
import { createUpstreams } from '../../../../platform/outbound-http/upstreams.js'
import type { PhoneSettings } from './settings.js'

const LIMIT_MS = 5_000
const ANSWER_BYTES_MAX = 16 * 1024
const UNDER_WAY_MAX = 256
const WAITS_MS = [1_000, 4_000]

type TextMessage = {
  /** The same for every attempt. */
  readonly id: string
  readonly tenantId: string
  /** E.164. */
  readonly to: string
  readonly text: string
}

/** `later`: another attempt may succeed. `never`: the provider refuses the message. */
type SendResult = 'sent' | 'later' | 'never'

/** The port of a provider. */
interface TextProvider {
  /** Never throws. */
  send(message: TextMessage): Promise<SendResult>
  close(): Promise<void>
}

export interface TextSender {
  /** Sends in the background. Drops the message when too many are under way. */
  post(message: TextMessage): void
  /** Ends the attempts under way. */
  close(): Promise<void>
}

export function textSender(provider: TextProvider, registry: Registry, log: Logger): TextSender {
  const outcomes = counter(registry, 'svc_text_messages_total', 'Text messages by outcome.', [
    'outcome',
  ])
  const stop = new AbortController()
  let underWay = 0

  async function attempt(message: TextMessage): Promise<SendResult> {
    for (const waitMs of WAITS_MS) {
      const result = await provider.send(message)
      if (result !== 'later') return result
      await sleep(waitMs, undefined, { signal: stop.signal, ref: false })
    }
    return provider.send(message)
  }

  return {
    post(message) {
      if (underWay >= UNDER_WAY_MAX) return outcomes.inc({ outcome: 'dropped' })
      underWay += 1
      attempt(message)
        .then((result) => {
          const outcome = result === 'sent' ? 'sent' : 'failed'
          outcomes.inc({ outcome })
          if (outcome === 'failed') log.warn({ text_message: message.id }, 'text message not sent')
        })
        .catch(() => outcomes.inc({ outcome: 'dropped' }))
        .finally(() => (underWay -= 1))
    },
    async close() {
      stop.abort()
      await provider.close()
    },
  }
}

/** @throws when the settings of the provider are missing. */
export function textProvider(
  phone: PhoneSettings,
  settings: EgressSettings,
  log: Logger,
  nowSecs: () => number,
): TextProvider {
  if (phone.provider === 'http') return httpProvider(phone, settings, nowSecs)
  if (phone.provider === 'twilio') return twilioProvider(phone, settings)
  return {
    async send({ id, to, text }) {
      log.info({ text_message: { id, to, text } }, 'text message')
      return 'sent'
    },
    close: () => Promise.resolve(),
  }
}

/**
 * A POST of `{id, to, text, tenant_id}` as JSON, signed as in Standard Webhooks (`v1`, HMAC-SHA-256 over
 * `id.timestamp.body`). Any 2xx response means sent.
 */
function httpProvider(
  { http_url: url, http_secret: secret }: PhoneSettings,
  settings: EgressSettings,
  nowSecs: () => number,
): TextProvider {
  if (url === undefined || secret === undefined) throw new Error('phone.http_url and its secret')
  const { request, close } = requester(url, settings)
  return {
    send({ id, to, text, tenantId }) {
      const body = JSON.stringify({ id, to, text, tenant_id: tenantId })
      const timestamp = String(nowSecs())
      const mac = createHmac('sha256', secret).update(`${id}.${timestamp}.${body}`)
      return request('', body, {
        'content-type': 'application/json',
        'webhook-id': id,
        'webhook-timestamp': timestamp,
        'webhook-signature': `v1,${mac.digest('base64')}`,
      })
    },
    close,
  }
}

/** `POST /2010-04-01/Accounts/{sid}/Messages.json` with Basic authentication. */
function twilioProvider(phone: PhoneSettings, settings: EgressSettings): TextProvider {
  const { twilio_account_sid: sid, twilio_auth_token: token, twilio_from: from } = phone
  if (sid === undefined || token === undefined || from === undefined)
    throw new Error('phone.twilio_*')
  const { request, close } = requester(phone.twilio_url, settings)
  const path = `/2010-04-01/Accounts/${encodeURIComponent(sid)}/Messages.json`
  const authorization = `Basic ${Buffer.from(`${sid}:${token}`).toString('base64')}`
  const sender = from.startsWith('MG') ? { MessagingServiceSid: from } : { From: from }
  return {
    send: ({ to, text }) =>
      request(path, new URLSearchParams({ To: to, ...sender, Body: text }).toString(), {
        'content-type': 'application/x-www-form-urlencoded',
        authorization,
      }),
    close,
  }
}

function requester(url: string, settings: EgressSettings) {
  const { dialer, rules } = outbound(settings, { connectTimeoutMs: LIMIT_MS, isOperators: true })
  const upstreams = createUpstreams(dialer, 1)
  const target = judgeTarget(url, rules)
  return {
    async request(
      under: string,
      body: string,
      headers: Readonly<Record<string, string>>,
    ): Promise<SendResult> {
      if (target.tag === 'refused') return 'never'
      const { origin, pathname, search } = target.url
      try {
        const answer = await upstreams.of(origin).request({
          method: 'POST',
          path: under === '' ? pathname + search : pathname.replace(/\/$/, '') + under,
          headers: { 'user-agent': 'svc', accept: 'application/json', ...headers },
          body,
          signal: AbortSignal.timeout(LIMIT_MS),
        })
        await readBody(answer.body, ANSWER_BYTES_MAX)
        if (answer.statusCode >= 200 && answer.statusCode < 300) return 'sent'
        return answer.statusCode === 429 || answer.statusCode >= 500 ? 'later' : 'never'
      } catch {
        return 'later'
      }
    },
    close: () => upstreams.destroy(),
  }
}
