/**
 * Checks a password against known breaches by k-anonymity (Pwned Passwords range API). The service receives only the
 * first five hex digits of the SHA-1 and returns all suffixes with that prefix, padded to hide the response length. If
 * the check is unavailable, no password can be set.
 */
import { createHash } from 'node:crypto'
import { discard, readBody } from '../../platform/outbound-http/bounded-body.js'
import type { Resolver } from '../../platform/outbound-http/dialer.js'
import { proxyErrorOf } from '../../platform/outbound-http/failures.js'
import { type EgressSettings, outbound } from '../../platform/outbound-http/outbound.js'
import { judgeTarget } from '../../platform/outbound-http/targets.js'
import { createUpstreams } from '../../platform/outbound-http/upstreams.js'

const LIMIT_MS = 500
const PREFIX_LENGTH = 5
/** 800 to 1,000 suffixes of 38 characters, doubled. */
const ANSWER_BYTES_MAX = 128 * 1024
const ORIGINS_MAX = 2
const LINE = /^([0-9A-F]{35}):(\d{1,12})$/

type BreachVerdict = 'clean' | 'breached' | 'unknown'

export interface Breaches {
  /**
   * Never throws.
   * @param onFailure receives the reason of `unknown`, for the log only.
   */
  check(password: Uint8Array, onFailure?: (reason: string) => void): Promise<BreachVerdict>
  close(): Promise<void>
}

type BreachesOptions = {
  /** Base URL of the service, https. */
  readonly url: string
  readonly settings: EgressSettings
  readonly resolve?: Resolver | undefined
}

export function openBreaches({ url: base, settings, resolve }: BreachesOptions): Breaches {
  const { dialer, rules } = outbound(settings, {
    connectTimeoutMs: LIMIT_MS,
    resolve,
    isOperators: true,
  })
  const upstreams = createUpstreams(dialer, ORIGINS_MAX)

  return {
    async check(password, onFailure) {
      const unknown = (reason: string): BreachVerdict => {
        onFailure?.(reason)
        return 'unknown'
      }
      const digest = createHash('sha1').update(password).digest('hex').toUpperCase()
      const prefix = digest.slice(0, PREFIX_LENGTH)
      const target = judgeTarget(`${base.replace(/\/$/, '')}/range/${prefix}`, rules)
      if (target.tag === 'refused') return unknown('address_refused')
      const { origin, pathname } = target.url
      const signal = AbortSignal.timeout(LIMIT_MS)
      try {
        const { statusCode, body } = await upstreams.of(origin).request({
          method: 'GET',
          path: pathname,
          headers: { 'add-padding': 'true', accept: 'text/plain', 'user-agent': 'svc' },
          signal,
        })
        if (statusCode !== 200) {
          discard(body)
          return unknown(`status_${statusCode}`)
        }
        const bytes = await readBody(body, ANSWER_BYTES_MAX)
        if (bytes === undefined) return unknown('too_long')
        const verdict = judgeRange(bytes.toString('latin1'), digest.slice(PREFIX_LENGTH))
        return verdict === 'unknown' ? unknown('no_list_of_hashes') : verdict
      } catch (error) {
        return unknown(signal.aborted ? 'timeout' : proxyErrorOf(error, false))
      }
    },
    close: () => upstreams.destroy(),
  }
}

/** Padding entries have the count 0. An invalid response is treated as unavailable. */
function judgeRange(answer: string, suffix: string): BreachVerdict {
  const lines = answer.split(/\r?\n/).filter((line) => line !== '')
  if (lines.length === 0) return 'unknown'
  let verdict: BreachVerdict = 'clean'
  for (const line of lines) {
    const [, found, count] = LINE.exec(line) ?? []
    if (found === undefined) return 'unknown'
    if (found === suffix && Number(count) > 0) verdict = 'breached'
  }
  return verdict
}
