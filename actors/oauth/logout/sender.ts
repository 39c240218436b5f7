/**
 * Posts a logout token to an application, through the dialer (OpenID Connect Back-Channel Logout 1.0 section 2.5). Redirects
 * are not followed, and no cookies are stored or sent.
 */
import type { Resolver } from '../../platform/outbound-http/dialer.js'
import { proxyErrorOf } from '../../platform/outbound-http/failures.js'
import { type EgressSettings, outbound } from '../../platform/outbound-http/outbound.js'
import { judgeTarget } from '../../platform/outbound-http/targets.js'
import { createUpstreams } from '../../platform/outbound-http/upstreams.js'
import type { TenantGroups } from '../../platform/tenant-groups.js'

const CONNECT_MS_MAX = 5_000
const ANSWER_BYTES_MAX = 4_096
const ORIGINS_MAX = 1_024

export type LogoutAnswer = {
  /** Null: no answer. */
  readonly status: number | null
  /** Null: the application has logged the person out. */
  readonly error: string | null
}

export interface LogoutSender {
  /** Never throws. */
  send(tenantId: string, uri: string, token: string, signal: AbortSignal): Promise<LogoutAnswer>
  /** Breaks off what is under way. */
  close(): Promise<void>
}

type LogoutSenderNeeds = {
  readonly settings: EgressSettings
  readonly groups?: TenantGroups | undefined
  /** Injected by tests. */
  readonly resolve?: Resolver | undefined
}

export function createLogoutSender({ settings, ...more }: LogoutSenderNeeds): LogoutSender {
  const { dialer, rules } = outbound(settings, { ...more, connectTimeoutMs: CONNECT_MS_MAX })
  const upstreams = createUpstreams(dialer, ORIGINS_MAX)
  return {
    async send(tenantId, uri, token, signal) {
      const target = judgeTarget(uri, rules)
      if (target.tag === 'refused') return { status: null, error: target.fault }
      const { origin, pathname, search } = target.url
      try {
        const { statusCode: status, body } = await upstreams
          .of(origin, tenantId, tenantId)
          .request({
            method: 'POST',
            path: pathname + search,
            headers: {
              'content-type': 'application/x-www-form-urlencoded',
              'user-agent': 'svc-logout/1',
              accept: '*/*',
            },
            body: new URLSearchParams({ logout_token: token }).toString(),
            signal,
          })
        // Read, so that the connection can be used again.
        void body.dump({ limit: ANSWER_BYTES_MAX }).catch(() => undefined)
        return { status, error: errorOf(status) }
      } catch (error) {
        return { status: null, error: signal.aborted ? 'timeout' : proxyErrorOf(error, false) }
      }
    },
    close: () => upstreams.destroy(),
  }
}

function errorOf(status: number): string | null {
  if (status >= 200 && status < 300) return null
  if (status === 400) return 'refused'
  return status < 400 ? 'redirect' : 'unexpected_status'
}
