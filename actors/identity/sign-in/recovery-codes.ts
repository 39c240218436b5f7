/** Recovery codes: ten per account, each valid for one sign-in, shown once, stored as hashes. */
import { createHash } from 'node:crypto'
import type { Random } from '../../../runtime/kernel/random.js'
import { base32 } from './totp.js'

const CODES = 10
/** 80 bits: a stolen hash cannot be brute-forced. */
const CODE_BYTES = 10

/** `ABCD-EFGH-IJKL-MNOP`, in the alphabet of RFC 4648 section 6. */
export function newRecoveryCodes(random: Random): string[] {
  return Array.from({ length: CODES }, () =>
    base32(random.bytes(CODE_BYTES)).replaceAll(/(.{4})(?=.)/g, '$1-'),
  )
}

/** The hash of a code as typed by the user; null when the format is invalid. */
export function recoveryCodeSha256(accountId: string, typed: string): Uint8Array | null {
  const code = typed.toUpperCase().replaceAll(/[\s-]/g, '')
  if (!/^[A-Z2-7]{16}$/.test(code)) return null
  return createHash('sha256').update(`svc-recovery-code-v1\n${accountId}\n${code}`).digest()
}
