/** Time-based one-time passwords (RFC 6238) as authenticator apps use them: SHA-1, 6 digits, 30 s. */
import { createHmac, timingSafeEqual } from 'node:crypto'

/** RFC 4226 section 4: at least 128 bits, 160 recommended. */
export const TOTP_SECRET_BYTES = 20
const STEP_SECS = 30
const DIGITS = 6
/** One step to either side, for clock skew and typing time (RFC 6238 section 5.2). */
const DRIFT_STEPS = 1

/** HOTP value for one counter (RFC 4226 section 5.3). */
export function totpCode(secret: Uint8Array, step: number): string {
  const counter = Buffer.alloc(8)
  counter.writeBigUInt64BE(BigInt(step))
  const mac = createHmac('sha1', secret).update(counter).digest()
  const offset = mac[mac.length - 1]! & 0x0f
  const value = (mac.readUInt32BE(offset) & 0x7fffffff) % 10 ** DIGITS
  return String(value).padStart(DIGITS, '0')
}

export const stepAt = (secs: number): number => Math.floor(secs / STEP_SECS)

/** The time step of the code, the nearest to now; null when it matches none. */
export function totpStepOf(secret: Uint8Array, code: string, nowSecs: number): number | null {
  if (!/^[0-9]{6}$/.test(code)) return null
  const now = stepAt(nowSecs)
  const sent = Buffer.from(code)
  let found: number | null = null
  // Compute every step, also after a match (constant time).
  for (let drift = DRIFT_STEPS; drift >= -DRIFT_STEPS; drift -= 1) {
    const step = now + drift
    if (timingSafeEqual(sent, Buffer.from(totpCode(secret, step))) && found === null) found = step
  }
  return found
}

const BASE32 = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567'

/** RFC 4648 section 6, without padding. */
export function base32(bytes: Uint8Array): string {
  let text = ''
  let bits = 0
  let buffer = 0
  for (const byte of bytes) {
    buffer = ((buffer << 8) | byte) & 0xffff
    bits += 8
    while (bits >= 5) {
      bits -= 5
      text += BASE32[(buffer >> bits) & 31]
    }
  }
  return bits === 0 ? text : text + BASE32[(buffer << (5 - bits)) & 31]
}

/** The URI that authenticator apps read from a QR code (Key URI Format). */
export function otpauthUri(issuer: string, account: string, secret: string): string {
  const label = `${encodeURIComponent(issuer)}:${encodeURIComponent(account)}`
  const query = new URLSearchParams({
    secret,
    issuer,
    algorithm: 'SHA1',
    digits: String(DIGITS),
    period: String(STEP_SECS),
  })
  // Apps decode the query as a URI, where "+" is a literal plus.
  return `otpauth://totp/${label}?${query.toString().replaceAll('+', '%20')}`
}
