/** Checks the content of DPoP proofs (RFC 9449 section 4.3). */
import { createHash } from 'node:crypto'
import { importPublicJwk } from '../../../platform/jose/external-jwk.js'
import {
  hasType,
  isSignedBy,
  isTime,
  readJws,
  untimely,
} from '../../../platform/jose/external-jws.js'
import { CLOCK_STEP_SECS_MAX } from '../../../../runtime/kernel/clock.js'

const ID_LENGTH_MAX = 256
/** Tolerance for a client clock that runs ahead: `iat` may be this far in the future. */
const AHEAD_SECS_MAX = 60

type ProofClaims = {
  readonly jkt: string
  readonly id: string
  readonly issuedAtSecs: number
  readonly nonce: string | null
}

export type ProofContext = {
  readonly httpMethod: string
  readonly httpUrl: string
  readonly nowSecs: number
  /** `dpop.proof_max_age_secs`. */
  readonly ageSecsMax: number
  /** With an access token, `ath` must be its hash. */
  readonly accessToken: string | null
}

/**
 * The checks of RFC 9449 section 4.3 that need only the proof. The caller checks the nonce and the
 * single use of the id.
 * @returns the claims, or the fault as a sentence for the client.
 */
export async function readProof(
  proof: string,
  { httpMethod, httpUrl, nowSecs, ageSecsMax, accessToken }: ProofContext,
): Promise<ProofClaims | { readonly fault: string }> {
  const jws = readJws(proof)
  if (jws === undefined) return { fault: 'the proof is not a well-formed JWT' }
  if (!hasType(jws, 'dpop+jwt')) return { fault: 'typ must be dpop+jwt' }
  const key = await importPublicJwk(jws.header.jwk)
  if (key === undefined) return { fault: 'jwk must be a public P-256 or Ed25519 key' }
  if (!(await isSignedBy(jws, key))) return { fault: 'the signature does not match alg and jwk' }

  const { jti, htm, htu, iat, nonce, ath } = jws.claims
  if (typeof jti !== 'string' || jti === '' || jti.length > ID_LENGTH_MAX)
    return { fault: 'jti must be a string of 1 to 256 characters' }
  if (htm !== httpMethod) return { fault: 'htm is not the method of the request' }
  if (typeof htu !== 'string' || !isSameAddress(htu, httpUrl))
    return { fault: 'htu is not the URL of the request' }
  if (!isTime(iat)) return { fault: 'iat must be a time in seconds' }
  if (iat > nowSecs + AHEAD_SECS_MAX) return { fault: 'iat is in the future' }
  if (iat < nowSecs - ageSecsMax) return { fault: 'the proof is too old' }
  const fault = untimely(jws.claims, nowSecs, AHEAD_SECS_MAX)
  if (fault !== undefined) return { fault }
  if (nonce !== undefined && typeof nonce !== 'string') return { fault: 'nonce must be a string' }
  if (accessToken !== null && ath !== accessTokenHash(accessToken))
    return { fault: 'ath is not the hash of the access token' }
  return { jkt: key.thumbprint, id: jti, issuedAtSecs: Math.floor(iat), nonce: nonce ?? null }
}

/** How long the id of a proof must be remembered to detect a replay, in seconds. */
export function proofMemorySecs(ageSecsMax: number): number {
  return ageSecsMax + AHEAD_SECS_MAX + CLOCK_STEP_SECS_MAX
}

/** The `ath` claim: base64url SHA-256 of the access token in ASCII (RFC 9449 section 4.2). */
export function accessTokenHash(accessToken: string): string {
  return createHash('sha256').update(accessToken, 'ascii').digest('base64url')
}

/** Compares scheme, host and path, normalised, without query and fragment (RFC 9449 section 4.3, check 9). */
function isSameAddress(one: string, other: string): boolean {
  if (!URL.canParse(one) || !URL.canParse(other)) return false
  const a = new URL(one)
  const b = new URL(other)
  return a.origin !== 'null' && a.origin === b.origin && a.pathname === b.pathname
}
