/**
 * The built-in CAPTCHA: the browser does a proof of work instead of asking a provider. It needs no third party and
 * shows nothing to solve. It makes guessing passwords cost processor time; it does not tell people from programs.
 *
 * A challenge is stateless: `base64url(id, expiry, bits).base64url(HMAC-SHA-256)`, keyed by `challenge.captcha_secret`, so every
 * process accepts the challenges of all. The answer is `{challenge}.{counter}`, where SHA-256 of the answer has `bits`
 * leading zero bits. The coordination backend accepts each challenge once.
 */
import { createHash, createHmac, timingSafeEqual } from 'node:crypto'
import type { Clock } from '../../../../runtime/kernel/clock.js'
import type { Random } from '../../../../runtime/kernel/random.js'
import type { AttemptCounts } from '../../../platform/attempts.js'
import type { Captcha, CaptchaVerdict } from './captcha.js'

/** Time to fill in the form. */
const LIFETIME_SECS = 600
const ID_BYTES = 16
const SEAL_BYTES = 16
const BODY_BYTES = ID_BYTES + 4 + 1
const ANSWER = /^([A-Za-z0-9_-]{28})\.([A-Za-z0-9_-]{22})\.([0-9]{1,12})$/
/** Separates this use of the secret from others. */
const PURPOSE = 'svc captcha 1'

type PowCaptchaNeeds = {
  /** `challenge.captcha_secret`. */
  readonly secret: string
  /** `challenge.captcha_pow_bits`. */
  readonly bits: number
  readonly counts: AttemptCounts
  readonly clock: Clock
  readonly random: Random
}

interface PowCaptcha extends Captcha {
  /** A fresh challenge for one page. */
  challenge(): string
}

export function openPowCaptcha({
  secret,
  bits,
  counts,
  clock,
  random,
}: PowCaptchaNeeds): PowCaptcha {
  const key = createHash('sha256').update(`${PURPOSE}\0${secret}`, 'utf8').digest()
  const sealOf = (body: Uint8Array) =>
    createHmac('sha256', key).update(body).digest().subarray(0, SEAL_BYTES)

  /** The id and remaining seconds of a valid, unexpired and solved challenge; otherwise null. */
  function solved(response: string): { readonly id: string; readonly leftSecs: number } | null {
    const parts = ANSWER.exec(response)
    if (parts === null) return null
    const body = Buffer.from(parts[1]!, 'base64url')
    const seal = Buffer.from(parts[2]!, 'base64url')
    if (body.length !== BODY_BYTES || seal.length !== SEAL_BYTES) return null
    if (!timingSafeEqual(seal, sealOf(body))) return null
    const leftSecs = body.readUInt32BE(ID_BYTES) - clock.nowSecs()
    if (leftSecs <= 0) return null
    if (!hasLeadingZeroBits(response, body.readUInt8(ID_BYTES + 4))) return null
    return { id: body.toString('base64url', 0, ID_BYTES), leftSecs }
  }

  return {
    challenge() {
      const body = Buffer.alloc(BODY_BYTES)
      body.set(random.bytes(ID_BYTES))
      body.writeUInt32BE(clock.nowSecs() + LIFETIME_SECS, ID_BYTES)
      body.writeUInt8(bits, ID_BYTES + 4)
      return `${body.toString('base64url')}.${sealOf(body).toString('base64url')}`
    },
    async verify(response): Promise<CaptchaVerdict> {
      const found = solved(response)
      if (found === null) return 'refused'
      const once = { limit: 1, windowSecs: found.leftSecs }
      const { allowed } = await counts.take(`captcha:solved:${found.id}`, once)
      return allowed ? 'person' : 'refused'
    },
    close: () => Promise.resolve(),
  }
}

function hasLeadingZeroBits(answer: string, bits: number): boolean {
  const digest = createHash('sha256').update(answer, 'latin1').digest()
  return Math.clz32(digest.readUInt32BE(0)) >= bits
}
