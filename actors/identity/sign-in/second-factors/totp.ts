/** Time-based one-time passwords (RFC 6238) as authenticator apps expect them: SHA-1, 6 digits, 30 s. */
import { timingSafeEqual } from 'node:crypto'
import { HOTP, Secret, TOTP } from 'otpauth'

/** RFC 4226 section 4: at least 128 bits, 160 recommended. */
export const TOTP_SECRET_BYTES = 20
const STEP_SECS = 30
const ALGORITHM = 'SHA1'
const DIGITS = 6
/** One step to either side allows for clock drift and typing time (RFC 6238 section 5.2). */
const DRIFT_STEPS = 1

/** HOTP value for one counter (RFC 4226 section 5.3). */
export function totpCode(secret: Uint8Array, step: number): string {
  const copy = secretOf(secret)
  try {
    return HOTP.generate({ secret: copy, algorithm: ALGORITHM, digits: DIGITS, counter: step })
  } finally {
    copy.bytes.fill(0)
  }
}

export const stepAt = (secs: number): number => Math.floor(secs / STEP_SECS)

/** The latest time step that has this code, at most one step from now, or null. */
export function totpStepOf(secret: Uint8Array, code: string, nowSecs: number): number | null {
  if (!/^[0-9]{6}$/.test(code)) return null
  const now = stepAt(nowSecs)
  const sent = Buffer.from(code)
  let found: number | null = null
  // `TOTP.validate` stops at the first match. This compares every step, so that the time is the same.
  for (let drift = DRIFT_STEPS; drift >= -DRIFT_STEPS; drift -= 1) {
    const step = now + drift
    if (timingSafeEqual(sent, Buffer.from(totpCode(secret, step))) && found === null) found = step
  }
  return found
}

/** RFC 4648 section 6, without padding. */
export const base32 = (bytes: Uint8Array): string => secretOf(bytes).base32

/** The URI that authenticator apps read from a QR code (Key URI Format). */
export function otpauthUri(issuer: string, account: string, secret: Uint8Array): string {
  return new TOTP({
    issuer,
    label: account,
    secret: secretOf(secret),
    algorithm: ALGORITHM,
    digits: DIGITS,
    period: STEP_SECS,
  }).toString()
}

/** On a copy: the library keeps the whole buffer behind a view. */
const secretOf = (bytes: Uint8Array) => new Secret({ buffer: Uint8Array.from(bytes).buffer })
