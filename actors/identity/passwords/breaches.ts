/**
 * Whether a password is known from breaches, asked of a range service so that it learns neither the
 * password nor its hash: five hexadecimal digits of the SHA-1 go out, every suffix that shares them
 * comes back, padded so that the length of the answer says nothing (the Pwned Passwords API).
 * No answer in time is no answer: nobody sets a password that could not be checked.
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
/** Some 800 to 1,000 suffixes of 38 characters; twice that. */
const ANSWER_BYTES_MAX = 128 * 1024
const ORIGINS_MAX = 2
const LINE = /^([0-9A-F]{35}):(\d{1,12})$/

export type BreachVerdict = 'clean' | 'breached' | 'unknown'

export interface Breaches {
  /**
   * Never throws.
   * @param told hears why the verdict is `unknown`: for the log, never for whoever chose the password.
   */
  check(password: Uint8Array, told?: (reason: string) => void): Promise<BreachVerdict>
  close(): Promise<void>
}

export type BreachesOptions = {
  /** Base address of the service, https. */
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
    async check(password, told) {
      const unknown = (reason: string): BreachVerdict => {
        told?.(reason)
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

/** Padding has the count 0. What is no list of suffixes is no answer. */
export function judgeRange(answer: string, suffix: string): BreachVerdict {
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
