/**
 * Posts what applications and receivers asked for to their address, through the dialer. Redirects are not followed, and no cookies
 * are stored or sent.
 */
import type { TenantGroups } from '../tenant-groups.js'
import type { Resolver } from './dialer.js'
import { proxyErrorOf } from './failures.js'
import { type EgressSettings, outbound } from './outbound.js'
import { judgeTarget } from './targets.js'
import { createUpstreams } from './upstreams.js'

const CONNECT_MS_MAX = 5_000
const ANSWER_BYTES_MAX = 4_096
const ORIGINS_MAX = 1_024

export type PostAnswer = {
  /** Null: no answer. */
  readonly status: number | null
  /** Null: the receiver has it. `refused`: it answered 400. */
  readonly error: string | null
}

export type Post = {
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

export interface Poster {
  /** Never throws. */
  post(tenantId: string, uri: string, post: Post, signal: AbortSignal): Promise<PostAnswer>
  /** Breaks off what is under way. */
  close(): Promise<void>
}

type PosterNeeds = {
  readonly settings: EgressSettings
  readonly groups?: TenantGroups | undefined
  /** Injected by tests. */
  readonly resolve?: Resolver | undefined
}

export function createPoster({ settings, ...more }: PosterNeeds): Poster {
  const { dialer, rules } = outbound(settings, { ...more, connectTimeoutMs: CONNECT_MS_MAX })
  const upstreams = createUpstreams(dialer, ORIGINS_MAX)
  return {
    async post(tenantId, uri, { headers, body: sent }, signal) {
      const target = judgeTarget(uri, rules)
      if (target.tag === 'refused') return { status: null, error: target.fault }
      const { origin, pathname, search } = target.url
      try {
        const { statusCode: status, body } = await upstreams
          .of(origin, tenantId, tenantId)
          .request({ method: 'POST', path: pathname + search, headers, body: sent, signal })
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

/** True where another attempt changes nothing: the receiver refuses, or its URI cannot be called. */
export const isFinal = (error: string): boolean => error === 'refused' || error.startsWith('url_')

function errorOf(status: number): string | null {
  if (status >= 200 && status < 300) return null
  if (status === 400) return 'refused'
  return status < 400 ? 'redirect' : 'unexpected_status'
}
