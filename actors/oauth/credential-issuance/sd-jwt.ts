/** Selective disclosure for JWTs (RFC 9901 sections 4.2 and 4.3). */
import { createHash } from 'node:crypto'
import type { Random } from '../../../runtime/kernel/random.js'

const SALT_BYTES = 16
const DECOYS_MIN = 2
const DECOYS_MAX = 5

export type Disclosable = {
  /** The members `_sd` and `_sd_alg` of the payload. */
  readonly payload: { readonly _sd: readonly string[]; readonly _sd_alg: 'sha-256' }
  readonly disclosures: readonly string[]
}

/**
 * Makes each claim selectively disclosable. Two to five decoy digests hide how many claims there are, and the
 * digests are sorted, so that their order tells nothing.
 */
export function disclosable(
  random: Random,
  claims: Readonly<Record<string, unknown>>,
): Disclosable {
  const disclosures = Object.entries(claims).map(([name, value]) =>
    Buffer.from(JSON.stringify([random.token(SALT_BYTES), name, value])).toString('base64url'),
  )
  const span = DECOYS_MAX - DECOYS_MIN + 1
  const decoys = Array.from({ length: DECOYS_MIN + (random.bytes(1)[0]! % span) }, () =>
    digest(random.token(32)),
  )
  const digests = [...disclosures.map(digest), ...decoys].toSorted()
  return { payload: { _sd: digests, _sd_alg: 'sha-256' }, disclosures }
}

/** The issued form: the JWT, the disclosures and no key binding JWT (RFC 9901 section 4). */
export function withDisclosures(jwt: string, disclosures: readonly string[]): string {
  return `${[jwt, ...disclosures].join('~')}~`
}

function digest(text: string): string {
  return createHash('sha256').update(text, 'ascii').digest('base64url')
}
