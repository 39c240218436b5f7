/** Recovery codes: ten per account, each valid for one sign-in, shown once, stored as hashes. */
import type { Random } from '../../../../runtime/kernel/random.js'
import { replaceRecoveryCodes } from '../../../../storage/identity/second-factors.js'
import type { Transaction } from '../../../../storage/platform/sql.js'
import { codeSha256 } from '../../../domain/secret-hashes.js'
import { base32 } from './totp.js'

const CODES = 10
/** 80 bits: a stolen hash cannot be brute-forced. */
const CODE_BYTES = 10

/** `ABCD-EFGH-IJKL-MNOP`, in the alphabet of RFC 4648 section 6. */
function newRecoveryCodes(random: Random): string[] {
  return Array.from({ length: CODES }, () =>
    base32(random.bytes(CODE_BYTES)).replaceAll(/(.{4})(?=.)/g, '$1-'),
  )
}

/** Replaces the codes of an account. The new ones are shown once. */
export async function renewRecoveryCodes(
  tx: Transaction,
  random: Random,
  accountId: string,
  now: Date,
): Promise<string[]> {
  const codes = newRecoveryCodes(random)
  const hashes = codes.map((code) => recoveryCodeSha256(accountId, code)!)
  await replaceRecoveryCodes(tx, accountId, hashes, now)
  return codes
}

/** The hash of a code as typed by the user; null when the format is invalid. */
export function recoveryCodeSha256(accountId: string, typed: string): Uint8Array | null {
  const code = typed.toUpperCase().replaceAll(/[\s-]/g, '')
  if (!/^[A-Z2-7]{16}$/.test(code)) return null
  return codeSha256('svc-recovery-code-v1', accountId, code)
}
